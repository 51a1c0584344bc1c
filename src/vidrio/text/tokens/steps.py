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


def steps(tokenizer: Tokenizer, text: str) -> Steps:
    """Every step from a text to its pieces."""
    pieces = iter(tokenizer.pieces(text))
    words = [_word(tokenizer, part, tuple(next(pieces) for _ in range(n))) for part, n in tokenizer.words(text)]
    return Steps(text, tokenizer.prepared(text), tuple(words))


def _word(tokenizer: Tokenizer, text: str, pieces: tuple[Piece, ...]) -> Word:
    if tokenizer.kind == "word":
        return Word(text, (text,), (), (), pieces)
    symbols = tuple(symbol for character in text for symbol in _spelled(tokenizer, character))
    if tokenizer.sentence_pieces:
        scores = tokenizer.sentence_pieces.scores
        return Word(text, symbols, (), tuple(scores.get(piece.token) for piece in pieces), pieces)
    merges = _merges(tokenizer.ranks, symbols)
    end, tokens = merges[-1].symbols if merges else symbols, tuple(piece.token for piece in pieces)
    if end != tokens:
        raise AssertionError(f"{text!r} was explained as {end}, but encoded as {tokens}")
    return Word(text, symbols, merges, (), pieces)


def _spelled(tokenizer: Tokenizer, character: str) -> list[str]:
    """The character, or its bytes if it has no token of its own."""
    return [character] if tokenizer.id(character) is not None else [BYTES[byte] for byte in character.encode()]


def _merges(ranks: dict[tuple[str, str], int], symbols: tuple[str, ...]) -> tuple[Merge, ...]:
    """Byte-pair encoding as Sennrich et al. (2016) give it: again and again the neighbours of the lowest rank."""
    merges: list[Merge] = []
    while True:
        known = [(ranks[pair], i) for i, pair in enumerate(pairwise(symbols)) if pair in ranks]
        if not known:
            return tuple(merges)
        rank, i = min(known)
        left, right = symbols[i : i + 2]
        symbols = (*symbols[:i], left + right, *symbols[i + 2 :])
        merges.append(Merge(left, right, rank, symbols))
