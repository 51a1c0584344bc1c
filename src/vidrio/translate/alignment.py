"""Which word of the translation came from which word of the source, by what the decoder looked at.

The attention of a target token is the last decoder layer's cross-attention at the step that chose the token, the mean
over its heads; the search reports it. A target word's attention to a source word is the sum over the source word's
tokens, and the mean over its own. It is aligned with the source word that it attends to most; that share of its
attention is the link's weight. A word that has a letter or a digit is never aligned with a sign that has none: full
stops draw attention that is meant for nothing. End tokens are no words, so a word's shares may sum to less than 1.
"""

import math
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np

from vidrio.text.mask import Masked
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import Place, before_edits, token_places, word_of_each, worded, words
from vidrio.translate.translation import Link, Word, word_at


def shares(
    attention_TS: np.ndarray, target_T: Sequence[int], source_S: Sequence[int], targets: int, sources: int
) -> np.ndarray:
    """Which share of the attention of each target word falls on each source word. `target_T` and `source_S` hold the
    number of each token's word, −1 for a token that belongs to none."""
    belongs_TW = np.equal.outer(target_T, np.arange(targets))
    belongs_SW = np.equal.outer(source_S, np.arange(sources))
    tokens_W = belongs_TW.sum(axis=0)
    summed_WW: np.ndarray = belongs_TW.T @ attention_TS @ belongs_SW
    return summed_WW / np.maximum(tokens_W, 1)[:, None]


def links(
    source: tuple[str, Sequence[Place]], target: tuple[str, Sequence[Place]], attention_TS: np.ndarray
) -> tuple[Link, ...]:
    """The alignment of a sentence; of each side the text and the places of its tokens. The attention's columns that
    come after the source's tokens are those of its end token."""
    (source_text, source_tokens), (target_text, target_tokens) = source, target
    source_places, target_places = words(source_text), words(target_text)
    source_words = [word_at(source_text, place) for place in source_places]
    target_words = [word_at(target_text, place) for place in target_places]
    if not source_words:
        return ()
    share_WW = shares(
        np.asarray(attention_TS)[: len(target_tokens), : len(source_tokens)],
        word_of_each(target_tokens, target_places),
        word_of_each(source_tokens, source_places),
        len(target_words),
        len(source_words),
    )
    of_letters = [[worded(word.text) for word in some] for some in (target_words, source_words)]
    share_WW[np.logical_and.outer(of_letters[0], np.logical_not(of_letters[1]))] = 0
    rows = zip(share_WW.argmax(axis=1), target_words, share_WW, strict=True)
    return tuple(Link(source_words[n], word, float(share_W[n])) for n, word, share_W in rows if share_W[n] > 0)


def confident_words(text: str, tokens: Sequence[Place], token_log_probs: Sequence[float]) -> tuple[Word, ...]:
    """The words that have a letter or a digit, each with the mean probability of its tokens, whose places are given."""
    places = words(text)
    numbers = word_of_each(tokens, places)
    probs_of: list[list[float]] = [[] for _ in range(len(places) + 1)]  # the last for what belongs to no word, −1
    for number, log_prob in zip(numbers, token_log_probs, strict=False):  # the end token is left
        probs_of[number].append(math.exp(log_prob))
    found = (
        word_at(text, place)._replace(confidence=mean(probs)) for place, probs in zip(places, probs_of, strict=False)
    )
    return tuple(word for word in found if worded(word.text))


def mean(probs: Sequence[float]) -> float:
    return sum(probs) / len(probs) if probs else 1.0


# --- where tokens stand in the texts: the model read and wrote symbols and other signs in place of some of it ---------


def source_tokens(masked: Masked, tokenizer: Tokenizer) -> list[Place]:
    """The places in the sentence of the tokens that the model read, the end token left out."""
    text = masked.source.text
    hidden = text
    for symbol, place in reversed([*zip(masked.symbols, masked.places, strict=True)]):
        hidden = hidden[: place.start] + symbol + hidden[place.end :]
    to_hidden = origins(hidden, masked.given)
    to_text = before_edits([(place.start, place.end, 1) for place in masked.places], len(text))
    pieces = tokenizer.pieces(masked.given)
    return [(to_text[to_hidden[piece.start]], to_text[to_hidden[piece.end]]) for piece in pieces]


def target_tokens(ids: Sequence[int], masked: Masked, tokenizer: Tokenizer, translation: str) -> list[Place]:
    """The places in the translation of the tokens that the model wrote."""
    decoded = tokenizer.decode(ids)
    places = zip(masked.symbols, masked.places, strict=True)
    things = {symbol: masked.source.text[place.start : place.end] for symbol, place in places}
    revealed, edits = "", []
    for character in decoded:
        start = len(revealed)
        revealed += things.get(character, character)
        if character in things:
            edits.append((start, len(revealed), 1))
    to_revealed = before_edits(edits, len(revealed))
    to_translation = origins(translation, revealed)
    return [
        (to_translation[to_revealed[start]], to_translation[to_revealed[end]])
        for start, end in token_places(ids, tokenizer.decode)
    ]


def origins(before: str, after: str) -> list[int]:
    """For each place in the second text, and for its end, the one in the first: what they have in common, whatever its
    case, tells."""
    if len(before) == len(after) and before.lower() == after.lower():
        return list(range(len(after) + 1))
    matcher = SequenceMatcher(None, _small(before), _small(after), autojunk=False)
    edits = [(i, j, end - k) for kind, i, j, k, end in matcher.get_opcodes() if kind != "equal"]
    return before_edits(edits, len(before))


def _small(text: str) -> str:
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
