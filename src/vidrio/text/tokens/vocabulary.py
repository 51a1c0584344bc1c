"""Train a vocabulary of byte-pair merges on texts, or create a vocabulary from a list of words.

Ids are assigned in this order: special tokens, the 256 bytes (so that no character is unknown), characters by
frequency, then merges. Hugging Face's `tokenizers` learns the merges. The same texts always give the same vocabulary.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import tokenizers
from tokenizers import Regex, models, normalizers

from vidrio.errors import TokenizerError
from vidrio.model.config import SpecialIds
from vidrio.text.tokens import case, normalise
from vidrio.text.tokens.normalise import ESCAPE, MARKS, SPACE

T = TypeVar("T")

NONE = -1  # the id of a special token that is not in the vocabulary
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
LARGEST_VOCABULARY = 1_000_000
MAX_TEXTS = 2_000_000  # maximum training texts in memory; if there are more, an evenly spaced sample is kept

# Signs and letters of European names. Vocabularies of at least this size contain them, however rare they are in texts.
ROOM_FOR_MORE = 4_000
MORE_LETTERS = "€£¥‘’“”«»–—…•×°¿¡ªº§àâäåãæçèêëìîïñòôöõøœùûüýÿßčćđěłńřśšžźżőű"


class SpecialNames(NamedTuple):
    """The names of the special tokens in a vocabulary. None means that the vocabulary has no such token."""

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
    """Train a tokenizer with at most `size` tokens, or fewer if the texts don't provide enough."""
    from tokenizers import trainers

    if not size <= LARGEST_VOCABULARY:
        raise TokenizerError(f"a vocabulary of {size:,} tokens is too large", do=f"at most {LARGEST_VOCABULARY:,}")
    sample, names = thin(map(normalise.valid, texts), MAX_TEXTS), SpecialNames()
    if not any(text.strip() for text in sample):
        raise TokenizerError("there is no text to learn a tokenizer from", found=f"{len(sample)} texts")
    letters, rare = alphabet(sample, coverage, case_tokens=case_tokens)
    if size >= ROOM_FOR_MORE:
        letters = list(dict.fromkeys([*letters, *MORE_LETTERS]))
        rare = [letter for letter in rare if letter not in MORE_LETTERS]
    case_tokens = case_tokens and any(map(case.capital_of, letters))
    pipeline = normalise.for_bpe(names.given(), cased="".join(letters) if case_tokens else "")
    if case_tokens:
        letters = list(dict.fromkeys([*MARKS, *letters]))
        rare = [*rare, *filter(None, map(case.capital_of, rare))]
    room = size - len(names.given()) - len(BYTES)
    if room < len(letters):
        raise TokenizerError(
            f"a vocabulary of {size} tokens is too small for these texts",
            found=f"{len(letters)} different characters, 256 bytes and {len(names.given())} special tokens",
            do=f"ask for {size - room + len(letters)} or more",
        )
    engine = tokenizers.Tokenizer(models.BPE())
    pipeline.install(engine)
    # Rare letters and escapes fall back to bytes. In training, a space replaces them, so that no merge crosses them.
    unlearned = [f"{normalise.literal(ESCAPE)}.", *map(normalise.literal, rare)]
    spaces = normalizers.Replace(Regex("|".join(unlearned)), SPACE)
    engine.normalizer = normalizers.Sequence([pipeline.normalizer, spaces])
    trainer = trainers.BpeTrainer(vocab_size=room, initial_alphabet=letters, show_progress=False)
    engine.train_from_iterator(sample, trainer)
    merges = [(a, b) for a, b in json.loads(engine.to_str())["model"]["merges"]]
    vocabulary = [*names.given(), *BYTES, *letters, *dict.fromkeys(a + b for a, b in merges)]
    ids = {token: i for i, token in enumerate(vocabulary)}
    engine.model = models.BPE(ids, merges, unk_token=names.unk, byte_fallback=True, fuse_unk=False)
    engine.normalizer = pipeline.normalizer
    return with_specials(engine, names)


def of_words(words: Iterable[str], names: SpecialNames, *, lowercase: bool) -> tokenizers.Tokenizer:
    """Create a word tokenizer with these words, in this order, after any special tokens that are not among them."""
    words, given = list(words), names.given()
    if len(set(given)) < len(given):
        raise TokenizerError("the special tokens' names are not all different", found=", ".join(given))
    vocabulary = list(dict.fromkeys([*(name for name in given if name not in words), *words]))
    ids = {word: i for i, word in enumerate(vocabulary)}
    unknown = {} if names.unk is None else {"unk_token": names.unk}
    engine = tokenizers.Tokenizer(models.WordLevel(ids, **unknown))
    normalise.for_words(given, lowercase=lowercase).install(engine)
    return with_specials(engine, names)


def with_specials(engine: tokenizers.Tokenizer, names: SpecialNames) -> tokenizers.Tokenizer:
    """Mark the special tokens for other programs that read the file."""
    from tokenizers import AddedToken

    engine.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names.given()])
    return engine


def thin(items: Iterable[T], most: int) -> list[T]:
    """Return at most `most` items, evenly spaced: all of them, or every second, or every fourth, and so on."""
    some: list[T] = []
    step = 1
    for i, item in enumerate(items):
        if i % step == 0:
            some.append(item)
        if len(some) == most:
            some, step = some[::2], step * 2
    return some


def alphabet(texts: list[str], coverage: float, *, case_tokens: bool) -> tuple[list[str], list[str]]:
    """Return the characters that get a token, by frequency, and the rare ones that fall back to bytes."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalise.normalise(text))
    if case_tokens:
        counts = case.in_small_letters(counts)
    counts[SPACE] += counts.total() + counts.pop(" ", 0)  # always a token, because it can precede every word
    ordered = sorted(counts, key=lambda letter: (-counts[letter], letter))
    needed, covered = coverage * counts.total(), 0
    for i, letter in enumerate(ordered):
        if covered >= needed:
            return ordered[:i], ordered[i:]
        covered += counts[letter]
    return ordered, []
