"""Explain how a text was split into tokens, step by step.

The final pieces come from `encode`. The steps are recomputed here and must result in the same pieces; otherwise, an
AssertionError is raised, because a wrong explanation is worse than none.
"""

from dataclasses import dataclass
from itertools import pairwise

from vidrio.text.tokens.tokenizer import Piece, Tokenizer
from vidrio.text.tokens.vocabulary import BYTES


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of two adjacent symbols. Of all possible merges, the one with the lowest rank is applied first."""

    left: str
    right: str
    rank: int  # the index of this merge in the order of learning
    symbols: tuple[str, ...]  # all symbols of the word after the merge


@dataclass(frozen=True, slots=True)
class Word:
    """A part of the text whose boundaries no token crosses."""

    text: str  # the prepared text, such as `▁Hello`
    symbols: tuple[str, ...]  # the initial symbols: characters, or bytes for characters without a token
    merges: tuple[Merge, ...]  # for BPE; otherwise empty
    scores: tuple[float | None, ...]  # for unigram, the log p of each piece of the best split; None for a byte
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of tokenisation: text → prepared text → words → pieces."""

    text: str
    prepared: str
    words: tuple[Word, ...]


def steps(tokenizer: Tokenizer, text: str) -> Steps:
    """Return every step from a text to its pieces."""
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
    """Return the character, or its bytes if it has no token."""
    return [character] if tokenizer.id(character) is not None else [BYTES[byte] for byte in character.encode()]


def _merges(ranks: dict[tuple[str, str], int], symbols: tuple[str, ...]) -> tuple[Merge, ...]:
    """Merge as in Sennrich et al. (2016): repeatedly merge the adjacent pair with the lowest rank."""
    merges: list[Merge] = []
    while True:
        known = [(ranks[pair], i) for i, pair in enumerate(pairwise(symbols)) if pair in ranks]
        if not known:
            return tuple(merges)
        rank, i = min(known)
        left, right = symbols[i : i + 2]
        symbols = (*symbols[:i], left + right, *symbols[i + 2 :])
        merges.append(Merge(left, right, rank, symbols))
