"""Learning a vocabulary from texts: byte-pair merges, or whole words.

Ids are given in this order: the special tokens, the 256 bytes (so that no character is ever unknown), the characters
from frequent to rare, then what was learned. The learning itself is Hugging Face `tokenizers`'. The same texts give the
same vocabulary.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, models, normalizers, processors, trainers

from vidrio.errors import TokenizerError
from vidrio.text.tokens import case
from vidrio.text.tokens.normalise import MARKS, SPACE, decoder, literal, normalise, normalizer, pre_tokenizer, valid
from vidrio.text.tokens.special import BYTES, LARGEST_VOCABULARY, SpecialNames

KINDS = ("word", "bpe")
MOST_TEXTS = 2_000_000  # to learn from, held in memory; more are thinned out evenly
_ROUND = 10_000

# Signs and letters of European names that every vocabulary of this size or more holds, however rare in its texts.
ROOM_FOR_MORE = 4_000
MORE_LETTERS = "€£¥‘’“”«»–—…•×°¿¡ªº§àâäåãæçèêëìîïñòôöõøœùûüýÿßčćđěłńřśšžźżőű"


def learn(
    texts: Iterable[str],
    kind: str,
    size: int,
    *,
    names: SpecialNames,
    coverage: float,
    case_tokens: bool = False,
) -> tokenizers.Tokenizer:
    """A tokenizer of at most `size` tokens; fewer where the texts do not hold so many."""
    check(kind, size, names)
    sample = thin(texts, MOST_TEXTS)
    if not any(text.strip() for text in sample):
        raise TokenizerError("there is no text to learn a tokenizer from", found=f"{len(sample)} texts")
    engine = tokenizers.Tokenizer(models.BPE())
    engine.normalizer = normalizer(kind, names.given())
    engine.pre_tokenizer = pre_tokenizer(kind)
    if kind == "word":
        trainer = trainers.WordLevelTrainer(vocab_size=size, show_progress=False)
        places = _learned(engine, models.WordLevel(), trainer, sample)["vocab"]
        frequent = sorted(places, key=places.__getitem__)
        return of_words([*names.given(), *frequent][:size], names, lowercase=False)

    room = size - len(names.given()) - len(BYTES)
    counts = occurrences(sample)
    letters, rare = alphabet(case.in_small_letters(counts) if case_tokens else counts, coverage)
    if size >= ROOM_FOR_MORE:
        letters = list(dict.fromkeys([*letters, *MORE_LETTERS]))
        rare = "".join(letter for letter in rare if letter not in MORE_LETTERS)
    if case_tokens:
        engine.normalizer = normalizer(kind, names.given(), cased="".join(letters))
        engine.pre_tokenizer = pre_tokenizer(kind, cased=True)
        letters, rare = [*MARKS, *letters], rare + "".join(map(case.capital_of, rare))
    if room < len(letters):
        raise TokenizerError(
            f"a vocabulary of {size} tokens is too small for these texts",
            found=f"{len(letters)} different characters, 256 bytes and {len(names.given())} special tokens",
            do=f"ask for {size - room + len(letters)} or more",
        )
    bpe = trainers.BpeTrainer(vocab_size=room, initial_alphabet=letters, show_progress=False)
    merges = [(a, b) for a, b in _learned(engine, models.BPE(), bpe, sample, rare)["merges"]]
    vocabulary = [*names.given(), *BYTES, *letters, *dict.fromkeys(a + b for a, b in merges)]
    ids = {token: i for i, token in enumerate(vocabulary)}
    engine.model = models.BPE(ids, merges, unk_token=names.unk, byte_fallback=True, fuse_unk=False)
    return finish(engine, kind, names, cased=case_tokens)


def of_words(words: list[str], names: SpecialNames, *, lowercase: bool) -> tokenizers.Tokenizer:
    """A word tokenizer over just these words, in this order; special tokens not among them come first."""
    vocabulary = list(dict.fromkeys([*(name for name in names.given() if name not in words), *words]))
    ids = {word: i for i, word in enumerate(vocabulary)}
    unknown = {} if names.unk is None else {"unk_token": names.unk}
    engine = tokenizers.Tokenizer(models.WordLevel(ids, **unknown))
    engine.normalizer = normalizer("word", names.given(), lowercase=lowercase)
    engine.pre_tokenizer = pre_tokenizer("word")
    return finish(engine, "word", names)


def finish(
    engine: tokenizers.Tokenizer, kind: str, names: SpecialNames, *, cased: bool = False
) -> tokenizers.Tokenizer:
    """Write down, in the file's own terms, how to decode and which tokens are special."""
    engine.decoder = decoder(kind, cased=cased)
    engine.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names.given()])
    edges = [(name, engine.token_to_id(name)) for name in (names.start, names.end) if name is not None]
    single = [part for part in (names.start, "$A", names.end) if part is not None]
    engine.post_processor = processors.TemplateProcessing(single=single, special_tokens=edges)
    return engine


def check(kind: str, size: int, names: SpecialNames) -> None:
    """Refuse an impossible wish, with all that is wrong with it."""
    problems = []
    if kind not in KINDS:
        problems.append(f"kind is {kind!r}, not one of {', '.join(KINDS)}")
    if not 0 < size <= LARGEST_VOCABULARY:
        problems.append(f"size is {size:,}, not between 1 and {LARGEST_VOCABULARY:,}")
    given = names.given()
    if len(set(given)) < len(given):
        problems.append(f"the special tokens' names are not all different: {', '.join(given)}")
    problems += [f"{name!r} cannot name a special token" for name in given if len(name) < 2 or not name.isprintable()]
    if kind == "bpe":
        if names.unk is None:
            problems.append("a BPE tokenizer needs a token for the unknown")
        least = len(given) + len(BYTES) + 1
        if 0 < size < least:
            problems.append(f"size is {size}, a BPE tokenizer has {least} or more: 256 bytes and the special tokens")
    if problems:
        raise TokenizerError("this tokenizer cannot be made", found="; ".join(problems), do="change the values named")


def thin(texts: Iterable[str], most: int) -> list[str]:
    """At most `most` texts, evenly spread over all of them: every one, or every second, or every fourth …"""
    kept: list[str] = []
    step = 1
    for i, text in enumerate(texts):
        if i % step:
            continue
        kept.append(valid(text))
        if len(kept) == most:
            kept, step = kept[::2], step * 2
    return kept


def occurrences(texts: list[str]) -> Counter[str]:
    """How often each character occurs in the texts, a space counted as what it is written as."""
    import numpy as np

    times = np.zeros(sys.maxunicode + 1, dtype=np.int64)
    for i in range(0, len(texts), _ROUND):
        text = normalise("".join(texts[i : i + _ROUND])).replace(" ", SPACE)
        times += np.bincount(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32), minlength=len(times))
    return Counter({chr(code): int(times[code]) for code in np.flatnonzero(times)})


def alphabet(counts: Counter[str], coverage: float) -> tuple[list[str], str]:
    """The characters to give a token of their own, frequent first, and the rare ones that are left to bytes."""
    counts = counts + Counter({SPACE: counts.total()})  # always a token, since it may stand before every word
    ordered = sorted(counts, key=lambda letter: (-counts[letter], letter))
    needed, covered = coverage * counts.total(), 0
    for i, letter in enumerate(ordered):
        if covered >= needed:
            return ordered[:i], "".join(ordered[i:])
        covered += counts[letter]
    return ordered, ""


def _learned(
    engine: tokenizers.Tokenizer, model: models.Model, trainer: trainers.Trainer, texts: list[str], rare: str = ""
) -> dict[str, Any]:
    """What a model learns from the texts; a space stands for each rare character, so that nothing joins across it."""
    learner = tokenizers.Tokenizer(model)
    learner.pre_tokenizer = engine.pre_tokenizer
    learner.normalizer = engine.normalizer
    if rare:
        letters = normalizers.Replace(Regex(f"[{''.join(map(literal, rare))}]"), SPACE)
        learner.normalizer = normalizers.Sequence([engine.normalizer, letters])
    learner.train_from_iterator(texts, trainer)
    learned: dict[str, Any] = json.loads(learner.to_str())["model"]
    return learned
