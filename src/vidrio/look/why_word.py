"""Why one word and not another, as text and as JSON: the step that decided, its parts, and the strongest neurons."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np

from vidrio.errors import AddressError, nearest
from vidrio.look.deleted import Deleted
from vidrio.look.layer_by_layer import After, after_each, overtakes
from vidrio.look.parts import CHANGED, ROUNDING, SOURCE, Decision, Neuron, Part, decisions, neurons, runner_up
from vidrio.look.run import Look
from vidrio.look.writing import PRECISION, cut, note, number, table, visible
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import token_places, word_of_each, words

NEURONS = 5  # with the largest values
PUSHED = 3  # words that a neuron pushes most
SHOWN = 6  # groups of parts


class Step(NamedTuple):
    """The row that decided for a token, and which token that was."""

    row: int
    this: int


def is_word(seen: Look, asked: str) -> bool:
    """Whether a word is asked for (a classifier's label), rather than an address."""
    return bool(_steps_of(seen, asked)) or not ("." in asked or "[" in asked or asked in seen.trace.stages)


def decide(seen: Look, asked: str, rival: str | None = None) -> Decision:
    """Why the translation has a word. The rival is another word, or the runner-up at the word's first step."""
    found = _steps_of(seen, asked)
    if not found:
        raise AddressError(
            f"there is no {asked!r} in the translation",
            found=", ".join(_names(seen)),
            do="name one of these words or tokens, or the address of a number",
        )
    if len(found) > 1:
        raise AddressError(
            f"{asked!r} stands at more than one place in the translation",
            found=f"rows {', '.join(str(steps[0].row) for steps in found)}",
            do="give a text whose translation has it once",
        )
    step, that = _rivals(seen, found[0], rival)
    this = seen.chosen_ids if seen.model.config.has_decoder else [step.this]
    other = [*this[: step.row], that, *this[step.row + 1 :]]
    return decisions(seen.trace, this, other)[step.row]


def _steps_of(seen: Look, asked: str) -> list[list[Step]]:
    """The steps that wrote a word, for each place where it stands: as a word of the text, else as a token."""
    if seen.stopped or seen.empty:
        return []
    if not seen.model.config.has_decoder:
        return [[Step(0, _names(seen).index(asked))]] if asked == seen.translation else []
    ids = seen.chosen_ids
    if seen.result:
        text, steps = seen.translation, defaultdict(list)
        places = token_places(seen.result.ids, seen.model.target_tokenizer.decode)
        of = words(text)
        for row, (word, (start, end)) in enumerate(zip(word_of_each(places, of), places, strict=True)):
            if word >= 0 and start < end:
                steps[word].append(Step(row, ids[row]))
        for same in (str, str.casefold):
            named = [steps[n] for n, (a, b) in enumerate(of) if same(text[a:b]) == same(asked) and steps[n]]
            if named:
                return named
    tokens = seen.trace.chosen_tokens
    return [[Step(row, ids[row])] for row, token in enumerate(tokens) if token in (asked, f"▁{asked}")]


def _rivals(seen: Look, steps: list[Step], rival: str | None) -> tuple[Step, int]:
    """The first step at which a word and its rival differ, and the rival's token there."""
    if rival is None:
        return steps[0], runner_up(seen.trace, *steps[0])
    if not seen.model.config.has_decoder:
        labels = _names(seen)
        if rival not in labels:
            raise AddressError(f"there is no class {rival!r}", found=f"the nearest: {nearest(rival, labels)}")
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
    """A rival's tokens: the token of that name inside a word, else the word without its leading case tokens."""
    inside = None if this.startswith("▁") else tokenizer.id(rival)
    ids = tokenizer.encode(rival) if inside is None else [inside]
    while len(ids) > 1 and not tokenizer.decode(ids[:1]).strip():
        ids = ids[1:]
    if not ids or tokenizer.special.unk in ids or not tokenizer.spells(rival):
        raise AddressError(f"the vocabulary cannot spell {rival!r}", do="name a word that it can")
    return ids


def _names(seen: Look) -> list[str]:
    """What may be asked for."""
    if seen.model.config.has_decoder:
        return list(
            dict.fromkeys([*(seen.translation[a:b] for a, b in words(seen.translation)), *seen.trace.chosen_tokens])
        )
    return list(seen.trace.labels) or [f"class {c}" for c in range(seen.model.config.n_classes)]


# --- for people -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Why:
    """Why a translation has a word: an exact sum, which prints as text."""

    seen: Look
    decision: Decision

    @property
    def difference(self) -> float:
        """The word's logit minus its rival's."""
        return self.decision.difference

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.decision.parts

    @cached_property
    def layers(self) -> list[After]:
        """What the decoder would write after each sub-layer; nothing for a classifier."""
        made = self.decision
        return after_each(self.seen.trace, made.row, made.this, made.that) if self.seen.chosen_ids else []

    def __str__(self) -> str:
        return "\n".join(view(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def why_word(seen: Look, asked: str, rival: str | None = None) -> Why:
    """Why the translation has a word, and not a rival: another word, or else the runner-up at the word's first step."""
    return Why(seen, decide(seen, asked, rival))


def view(why: Why, precision: int = PRECISION, *, every: bool = False) -> Iterator[str]:
    """The difference and its parts, the largest first: summed by origin, or every one."""
    seen, made = why.seen, why.decision
    this, that = (visible(_token(seen, token)) for token in (made.this, made.that))
    yield note(f"{seen.text} → {seen.translation}", hang=2)
    row = f" after row {made.row}" if seen.model.config.has_decoder else ""
    count = len(made.parts)
    yield note(f"{this} and not {that}{row}: {number(made.difference, precision)} is the sum of {count} parts", hang=2)
    yield ""
    if every:
        rows = [[part.name, visible(_read(seen, part)), number(part.value, precision)] for part in _sorted(made.parts)]
        yield table(rows, align="ll.")
        return
    groups = _by_origin(seen, made)
    rows = [
        [cut(name, 36), number(math.fsum(part.value for part in parts), precision), _mostly(parts, precision)]
        for name, parts in groups[:SHOWN]
    ]
    if rest := [part for _, parts in groups[SHOWN:] for part in parts]:
        rows.append([f"{len(groups) - SHOWN} others", number(math.fsum(part.value for part in rest), precision)])
    yield table(rows, align="l.l", indent=2)
    yield from _layers(why)


def _layers(why: Why) -> Iterator[str]:
    """What the decoder would write after each sub-layer, and where the word overtakes its rival."""
    if not (found := why.layers):
        return
    vocabulary = why.seen.trace.vocabulary
    yield ""
    yield "If the decoder stopped after:"
    width = max(len(after.name) for after in found)
    for after in found:
        likely = ", ".join(f"{visible(vocabulary[i])} {p:.0%}" for i, p in after.tokens)
        yield note(f"{after.name:{width}}  {likely}", indent=2, hang=width + 4)
    if name := overtakes(found):
        this, that = (visible(vocabulary[token]) for token in (why.decision.this, why.decision.that))
        yield note(f"{this} stays above {that} from {name} on.")


def deleted_view(why: Why, found: Sequence[Deleted], precision: int = PRECISION) -> Iterator[str]:
    """A line for each source word deleted: how much less likely the word's token became, and the new translation."""
    yield f"log-probability that {visible(_token(why.seen, why.decision.this))} loses, and the translation, without:"
    losses = [one.losses[why.decision.row] for one in found]
    rows = [[visible(one.word), number(loss, precision), ""] for one, loss in zip(found, losses, strict=True)]
    lines = table(rows, align="l.l", indent=2).splitlines() if rows else []
    for line, one in zip(lines, found, strict=True):
        yield note(f"{line}  {one.translation}", hang=4)


def _by_origin(seen: Look, made: Decision) -> list[tuple[str, list[Part]]]:
    """The parts by what they come from: each token read, the feed-forward networks, all else; largest sum first."""
    groups: dict[str, list[Part]] = defaultdict(list)
    for part in made.parts:
        groups[_origin(seen, part)].append(part)
    return sorted(groups.items(), key=lambda group: -abs(math.fsum(part.value for part in group[1])))


def _mostly(parts: Sequence[Part], precision: int) -> str:
    """The largest of several parts."""
    largest = _sorted(parts)[0]
    return f"most: {largest.name} {number(largest.value, precision)}" if len(parts) > 1 else ""


def _origin(seen: Look, part: Part) -> str:
    if part.reads:
        where = "source" if part.reads == SOURCE else "written before"
        return f"{_read(seen, part)}  ({where}, {part.row})"
    if part.name.endswith(".ffn"):
        return "feed-forward networks"
    return part.name if part.name in (ROUNDING, CHANGED) else "biases and positions"


def _read(seen: Look, part: Part) -> str:
    if not part.reads:
        return ""
    return str((seen.trace.source_tokens if part.reads == SOURCE else seen.trace.target_tokens)[part.row])


def _token(seen: Look, token: int) -> str:
    return seen.trace.vocabulary[token] if seen.model.config.has_decoder else _names(seen)[token]


def _sorted(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: -abs(part.value))


# --- as data ----------------------------------------------------------------------------------------------------------


def data(why: Why) -> dict[str, Any]:
    """The difference, its parts and the strongest neurons, for a machine to read."""
    seen, made = why.seen, why.decision
    return {
        "text": seen.text,
        "translation": seen.translation,
        "row": made.row,
        "this": _token(seen, made.this),
        "that": _token(seen, made.that),
        "difference": made.difference,
        "parts": [
            {
                "name": part.name + (f"[{part.row}]" if part.reads else ""),
                "value": part.value,
                "side": part.reads or None,
                "token": _read(seen, part) or None,
            }
            for part in made.parts
        ],
        "neurons": [_neuron(seen, one) for one in neurons(seen.trace, made, NEURONS)],
        "layers": [
            {
                "after": after.name,
                "difference": after.difference,
                "tokens": [{"token": seen.trace.vocabulary[i], "prob": p} for i, p in after.tokens],
            }
            for after in why.layers
        ],
    }


def deleted_data(why: Why, found: Sequence[Deleted]) -> list[dict[str, Any]]:
    """Each source word deleted, for a machine to read."""
    return [
        {
            "word": one.word,
            "translation": one.translation,
            "loss": one.losses[why.decision.row],
            "loss_of_all": math.fsum(one.losses),
        }
        for one in found
    ]


def _neuron(seen: Look, one: Neuron) -> dict[str, Any]:
    order = np.argsort(-one.pushes)
    up, down = (
        [seen.trace.vocabulary[i] for i in some.tolist()] for some in (order[:PUSHED], order[: -PUSHED - 1 : -1])
    )
    return {"name": f"{one.name}.active[{one.unit}]", "value": one.value, "up": up, "down": down}
