"""Finds the decoding step at which a word was chosen, and the rival's token at that step."""

from collections import defaultdict
from typing import NamedTuple

from vidrio.errors import AddressError, nearest
from vidrio.look.parts import Decision, decisions, runner_up
from vidrio.look.run import Look
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import token_places, word_of_each, words


class Step(NamedTuple):
    """A decoder row, and the token chosen from its prediction."""

    row: int
    this: int


def is_word(seen: Look, word: str) -> bool:
    """Return whether `word` is a word or a label rather than an address."""
    return bool(_steps_of(seen, word)) or not ("." in word or "[" in word or word in seen.trace.stages)


def decide(seen: Look, word: str, rival: str | None = None) -> Decision:
    """Return the decision between a word and `rival`, by default the runner-up at the word's first step."""
    found = _steps_of(seen, word)
    if not found:
        raise AddressError(
            f"there is no {word!r} in the translation",
            found=", ".join(names_of(seen)),
            do="name one of these words or tokens, or the address of a number",
        )
    if len(found) > 1:
        raise AddressError(
            f"{word!r} occurs more than once in the translation",
            found=f"rows {', '.join(str(steps[0].row) for steps in found)}",
            do="use a text whose translation contains it only once",
        )
    return _decided(seen, *_rivals(seen, found[0], rival))


def decide_step(seen: Look, row: int, rival: str | None = None) -> Decision:
    """Return the decision between the token chosen at a step, or a classifier's class, and `rival`, by default the
    runner-up."""
    if seen.stopped:
        raise AddressError(f"there is no decoding step {row}", found="no choice could be made")
    taken = seen.chosen_ids if seen.model.config.has_decoder else [names_of(seen).index(seen.translation)]
    if not 0 <= row < len(taken):
        raise AddressError(f"there is no decoding step {row}", found=f"{len(taken)} steps")
    step = Step(row, taken[row])
    tokens = list(seen.trace.vocabulary if seen.model.config.has_decoder else names_of(seen))
    if rival in tokens and rival != tokens[step.this]:
        return _decided(seen, step, tokens.index(rival))
    return _decided(seen, *_rivals(seen, [step], rival))


def _decided(seen: Look, step: Step, that: int) -> Decision:
    this = seen.chosen_ids if seen.model.config.has_decoder else [step.this]
    other = [*this[: step.row], that, *this[step.row + 1 :]]
    return decisions(seen.trace, this, other)[step.row]


def _steps_of(seen: Look, word: str) -> list[list[Step]]:
    """Return the steps that produced each occurrence of a word in the translation or, if there is none, of a token."""
    if seen.stopped or seen.empty:
        return []
    if not seen.model.config.has_decoder:
        return [[Step(0, names_of(seen).index(word))]] if word == seen.translation else []
    ids = seen.chosen_ids
    if seen.result:
        text, steps = seen.translation, defaultdict(list)
        places = token_places(seen.result.ids, seen.model.target_tokenizer)
        of = words(text)
        for row, (n, (start, end)) in enumerate(zip(word_of_each(places, of), places, strict=True)):
            if n >= 0 and start < end:
                steps[n].append(Step(row, ids[row]))
        for same in (str, str.casefold):
            named = [steps[n] for n, (a, b) in enumerate(of) if same(text[a:b]) == same(word) and steps[n]]
            if named:
                return named
    tokens = seen.trace.chosen_tokens
    return [[Step(row, ids[row])] for row, token in enumerate(tokens) if token in (word, f"▁{word}")]


def _rivals(seen: Look, steps: list[Step], rival: str | None) -> tuple[Step, int]:
    """Return the first step at which a word and its rival differ, and the rival's token at that step."""
    if rival is None:
        return steps[0], runner_up(seen.trace, *steps[0])
    if not seen.model.config.has_decoder:
        labels = names_of(seen)
        if rival not in labels:
            raise AddressError(f"there is no class {rival!r}", found=f"closest matches: {nearest(rival, labels)}")
        spelled = [labels.index(rival)]
    else:
        spelled = _spelled(seen.model.target_tokenizer, rival, seen.trace.vocabulary[steps[0].this])
    for step, token in zip(steps, spelled, strict=False):
        if step.this != token:
            return step, token
    raise AddressError(
        f"{rival!r} begins with the same tokens, so no step decides between the two",
        found=" ".join(seen.trace.vocabulary[step.this] for step in steps) if seen.trace.vocabulary else rival,
        do="name another word",
    )


def _spelled(tokenizer: Tokenizer, rival: str, this: str) -> list[int]:
    """Return the token ids of a rival. If `this` continues a word and the rival names a token, return only that token.
    Otherwise, encode the rival as a word, and drop any leading case tokens."""
    inside = None if this.startswith("▁") else tokenizer.id(rival)
    ids = tokenizer.encode(rival) if inside is None else [inside]
    while len(ids) > 1 and not tokenizer.decode(ids[:1]).strip():
        ids = ids[1:]
    if not ids or tokenizer.special.unk in ids or not tokenizer.spells(rival):
        raise AddressError(f"the vocabulary cannot spell {rival!r}", do="name a word that it can")
    return ids


def names_of(seen: Look) -> list[str]:
    """Return the words, tokens or labels that can be explained."""
    if seen.model.config.has_decoder:
        return list(
            dict.fromkeys([*(seen.translation[a:b] for a, b in words(seen.translation)), *seen.trace.chosen_tokens])
        )
    return list(seen.trace.labels) or [f"class {c}" for c in range(seen.model.config.n_classes)]
