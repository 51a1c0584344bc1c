"""How a text was split, step by step, for people to read.

The final pieces are `encode`'s own. The steps on the way are recomputed here and must end at the same pieces,
or an AssertionError says so: an explanation that drifts from the code that it explains is worse than none.
"""

from dataclasses import dataclass
from itertools import pairwise

from vidrio.text.tokens.tokenizer import Piece, Tokenizer
from vidrio.text.tokens.vocabulary import BYTES


@dataclass(frozen=True, slots=True)
class Merge:
    """Two neighbours became one. Of all neighbours that may merge, those with the lowest rank do so first."""

    left: str
    right: str
    rank: int  # the place of this merge in the order in which merges were learned
    symbols: tuple[str, ...]  # the whole word afterwards


@dataclass(frozen=True, slots=True)
class Word:
    """A part of the text that tokens never reach across."""

    text: str  # as prepared: `▁Hello`
    symbols: tuple[str, ...]  # what it starts from: characters, or bytes for a character without a token
    merges: tuple[Merge, ...]  # for BPE; none for the other kinds
    scores: tuple[float | None, ...]  # for unigram: log p of each piece, of all splits the best sum; None for a byte
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """text → prepared → words → pieces."""

    text: str
    prepared: str
    words: tuple[Word, ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for word in self.words for piece in word.pieces)


def steps(tokenizer: Tokenizer, text: str) -> Steps:
    """Every step from a text to its pieces."""
    pieces = iter(tokenizer.pieces(text))
    words = [_word(tokenizer, part, tuple(next(pieces) for _ in range(n))) for part, n in tokenizer.words(text)]
    return Steps(text, tokenizer.prepared(text), tuple(words))


def _word(tokenizer: Tokenizer, text: str, pieces: tuple[Piece, ...]) -> Word:
    tokens = tuple(piece.token for piece in pieces)
    if tokenizer.kind == "word":
        return Word(text, (text,), (), (), pieces)
    symbols = _symbols(tokenizer, text)
    if tokenizer.kind == "unigram":
        scored = tokenizer.model["vocab"]
        scores = tuple(None if p.token in BYTES else scored[p.id][1] for p in pieces)
        return Word(text, symbols, (), scores, pieces)
    merges = _merges(tokenizer.ranks, symbols)
    end = merges[-1].symbols if merges else symbols
    if end != tokens:
        raise AssertionError(f"{text!r} was explained as {end}, but encoded as {tokens}")
    return Word(text, symbols, merges, (), pieces)


def _symbols(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    """The characters of a word; the bytes of those without a token of their own."""
    symbols: list[str] = []
    for character in text:
        known = tokenizer.id(character) is not None
        symbols += [character] if known else [f"<0x{byte:02X}>" for byte in character.encode()]
    return tuple(symbols)


def _merges(ranks: dict[tuple[str, str], int], symbols: tuple[str, ...]) -> tuple[Merge, ...]:
    """Byte-pair encoding as Sennrich et al. (2016) give it: again and again the neighbours of the lowest rank."""
    merges: list[Merge] = []
    while True:
        pairs = list(pairwise(symbols))
        known = [(ranks[pair], i) for i, pair in enumerate(pairs) if pair in ranks]
        if not known:
            return tuple(merges)
        rank, i = min(known)
        left, right = pairs[i]
        symbols = (*symbols[:i], left + right, *symbols[i + 2 :])
        merges.append(Merge(left, right, rank, symbols))
