"""Which word of the translation came from which word of the source, by what the decoder looked at.

The attention of a target token is the last decoder layer's cross-attention at the step that chose the token, the mean
over its heads; the search reports it. A target word's attention to a source word is the sum over the source word's
tokens, and the mean over its own. It is aligned with the source word that it attends to most; that share of its
attention is the link's weight. A word that has a letter or a digit is never aligned with a sign that has none: full
stops draw attention that is meant for nothing. End tokens are no words, so a word's shares may sum to less than 1.
"""

import math
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

import numpy as np

from vidrio.text.mask import Masked
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import Place, token_places, word_of_each, worded, words
from vidrio.translate.translation import Link, Word, mean, word_at


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
    found = (word_at(text, at)._replace(confidence=mean(p, 1.0)) for at, p in zip(places, probs_of, strict=False))
    return tuple(word for word in found if worded(word.text))


# --- where tokens stand: the model read and wrote symbols, and other letters, in place of some of the text ------------


def source_tokens(masked: Masked, tokenizer: Tokenizer) -> list[Place]:
    """The places in a sentence of the tokens that the model read, the end token left out."""
    origin = origins(masked.source.text, masked.given, masked.things)
    return [(origin[piece.start], origin[piece.end]) for piece in tokenizer.pieces(masked.given)]


def target_tokens(ids: Sequence[int], masked: Masked, tokenizer: Tokenizer, translation: str) -> list[Place]:
    """The places in a translation of the tokens that the model wrote."""
    origin = origins(translation, tokenizer.decode(ids), masked.things)
    return [(origin[start], origin[end]) for start, end in token_places(ids, tokenizer.decode)]


def origins(text: str, given: str, things: Mapping[str, str]) -> list[int]:
    """For each place in what the model read or wrote, and for its end, the one in the text: what they have in common
    tells, whatever its case, once the things that its symbols stand for are in their places."""
    lengths = [len(things.get(letter, letter)) for letter in given]
    revealed = "".join(things.get(letter, letter) for letter in given)
    if len(text) == len(revealed) and text.lower() == revealed.lower():
        places = list(range(len(text) + 1))
    else:
        matcher = SequenceMatcher(None, _small(text), _small(revealed), autojunk=False)
        places = []
        for kind, i, j, k, end in matcher.get_opcodes():
            places += range(i, j) if kind == "equal" else [i] * (end - k)
        places.append(len(text))
    return [places[at] for at in accumulate(lengths, initial=0)]


def _small(text: str) -> str:
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
