"""Learning a vocabulary of byte-pair merges from texts; and vocabularies of given words.

Ids are given in this order: the special tokens, the 256 bytes (so that no character is ever unknown), the characters
from frequent to rare, then what was learned. The learning itself is Hugging Face `tokenizers`'. The same texts give the
same vocabulary.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import tokenizers
from tokenizers import Regex, models, normalizers

from vidrio.errors import TokenizerError
from vidrio.model.config import SpecialIds
from vidrio.text.tokens import case
from vidrio.text.tokens.normalise import MARKS, SPACE, decoder, literal, normalise, normalizer, pre_tokenizer, valid

T = TypeVar("T")

NONE = -1  # the id of a special token that a vocabulary does not have
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
LARGEST_VOCABULARY = 1_000_000
MOST_TEXTS = 2_000_000  # to learn from, held in memory; more are thinned out evenly
_ROUND = 10_000

# Signs and letters of European names that every vocabulary of this size or more holds, however rare in its texts.
ROOM_FOR_MORE = 4_000
MORE_LETTERS = "€£¥‘’“”«»–—…•×°¿¡ªº§àâäåãæçèêëìîïñòôöõøœùûüýÿßčćđěłńřśšžźżőű"


class SpecialNames(NamedTuple):
    """What the special tokens are called in a vocabulary; None where there is none."""

    pad: str | None = "<pad>"
    unk: str | None = "<unk>"
    start: str | None = "<s>"
    end: str | None = "</s>"

    def given(self) -> list[str]:
        return [name for name in self if name is not None]

    def ids(self, engine: tokenizers.Tokenizer) -> SpecialIds:
        vocabulary = engine.get_vocab()
        pad, unk, start, end = (NONE if name is None else vocabulary[name] for name in self)
        return SpecialIds(pad=pad, unk=unk, start=start, end=end)


def learn(texts: Iterable[str], size: int, *, coverage: float, case_tokens: bool) -> tokenizers.Tokenizer:
    """A tokenizer of at most `size` tokens; fewer where the texts do not hold so many."""
    if not size <= LARGEST_VOCABULARY:
        raise TokenizerError(f"a vocabulary of {size:,} tokens is too large", do=f"at most {LARGEST_VOCABULARY:,}")
    sample, names = thin(map(valid, texts), MOST_TEXTS), SpecialNames()
    if not any(text.strip() for text in sample):
        raise TokenizerError("there is no text to learn a tokenizer from", found=f"{len(sample)} texts")
    counts = occurrences(sample)
    letters, rare = alphabet(case.in_small_letters(counts) if case_tokens else counts, coverage)
    if size >= ROOM_FOR_MORE:
        letters = list(dict.fromkeys([*letters, *MORE_LETTERS]))
        rare = "".join(letter for letter in rare if letter not in MORE_LETTERS)
    engine = tokenizers.Tokenizer(models.BPE())
    engine.normalizer = normalizer("bpe", names.given(), cased="".join(letters) if case_tokens else "")
    engine.pre_tokenizer = pre_tokenizer("bpe", cased=case_tokens)
    if case_tokens:
        letters, rare = [*MARKS, *letters], rare + "".join(map(case.capital_of, rare))
    room = size - len(names.given()) - len(BYTES)
    if room < len(letters):
        raise TokenizerError(
            f"a vocabulary of {size} tokens is too small for these texts",
            found=f"{len(letters)} different characters, 256 bytes and {len(names.given())} special tokens",
            do=f"ask for {size - room + len(letters)} or more",
        )
    merges = _merges(engine, letters, room, sample, rare)
    vocabulary = [*names.given(), *BYTES, *letters, *dict.fromkeys(a + b for a, b in merges)]
    ids = {token: i for i, token in enumerate(vocabulary)}
    engine.model = models.BPE(ids, merges, unk_token=names.unk, byte_fallback=True, fuse_unk=False)
    return finish(engine, "bpe", names, cased=case_tokens)


def _merges(
    engine: tokenizers.Tokenizer, letters: list[str], size: int, texts: list[str], rare: str
) -> list[tuple[str, str]]:
    """The merges that the texts teach; a space stands for each rare character, so that nothing joins across it."""
    from tokenizers import trainers

    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = engine.pre_tokenizer
    learner.normalizer = engine.normalizer
    if rare:
        spaces = normalizers.Replace(Regex(f"[{''.join(map(literal, rare))}]"), SPACE)
        learner.normalizer = normalizers.Sequence([engine.normalizer, spaces])
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=letters, show_progress=False)
    learner.train_from_iterator(texts, trainer)
    return [(a, b) for a, b in json.loads(learner.to_str())["model"]["merges"]]


def of_words(words: Iterable[str], names: SpecialNames, *, lowercase: bool) -> tokenizers.Tokenizer:
    """A word tokenizer over just these words, in this order; special tokens not among them come first."""
    words, given = list(words), names.given()
    if len(set(given)) < len(given):
        raise TokenizerError("the special tokens' names are not all different", found=", ".join(given))
    vocabulary = list(dict.fromkeys([*(name for name in given if name not in words), *words]))
    ids = {word: i for i, word in enumerate(vocabulary)}
    unknown = {} if names.unk is None else {"unk_token": names.unk}
    engine = tokenizers.Tokenizer(models.WordLevel(ids, **unknown))
    engine.normalizer = normalizer("word", given, lowercase=lowercase)
    engine.pre_tokenizer = pre_tokenizer("word")
    return finish(engine, "word", names)


def finish(
    engine: tokenizers.Tokenizer, kind: str, names: SpecialNames, *, cased: bool = False
) -> tokenizers.Tokenizer:
    """Write down, in the file's own terms, how to decode and which tokens are special."""
    from tokenizers import AddedToken, processors

    engine.decoder = decoder(kind, cased=cased)
    engine.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names.given()])
    edges = [(name, engine.token_to_id(name)) for name in (names.start, names.end) if name is not None]
    single = [part for part in (names.start, "$A", names.end) if part is not None]
    engine.post_processor = processors.TemplateProcessing(single=single, special_tokens=edges)
    return engine


def thin(items: Iterable[T], most: int) -> list[T]:
    """At most `most` of them, evenly spread: every one, or every second, or every fourth …"""
    some: list[T] = []
    step = 1
    for i, item in enumerate(items):
        if i % step == 0:
            some.append(item)
        if len(some) == most:
            some, step = some[::2], step * 2
    return some


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
