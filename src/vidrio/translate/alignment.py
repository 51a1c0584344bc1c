"""Align the words of a translation with the words of its source, using the decoder's attention.

The search returns the attention of each target token: the last decoder layer's cross-attention at the step that chose
the token, averaged over heads. A target word's attention to a source word is summed over the tokens of the source word
and averaged over the tokens of the target word. Each target word is aligned with the source word that it attends to
most, whose share is the link's weight. A word with a letter or a digit is never aligned with punctuation, because full
stops attract attention without meaning. End tokens are not words, so a word's shares may sum to less than 1.
"""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

import numpy as np

from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import token_places, word_of_each, worded, words
from vidrio.translate.translation import Details, Link, Sentence, Word


def details(sentence: Sentence, source: Tokenizer, target: Tokenizer) -> Details:
    """Return the alignment of a translation, its words with their confidence, and its tokens."""
    masked, best, text = sentence.masked, sentence.best, sentence.text
    if not best.token_log_probs:
        return Details((), (), ())
    origin = origins(sentence.source, masked.given, masked.things)
    read_S = [(origin[piece.start], origin[piece.end]) for piece in source.pieces(masked.given)]
    origin = origins(text, target.decode(best.ids), masked.things)
    written_T = [(origin[start], origin[end]) for start, end in token_places(best.ids, target)]
    source_places, target_places = words(sentence.source), words(text)
    word_S, word_T = word_of_each(read_S, source_places), word_of_each(written_T, target_places)
    attention_TS = np.asarray(best.attention)[:, : len(read_S)]  # without the end token, which comes last
    share_WW = shares(attention_TS, word_T, word_S, len(target_places), len(source_places))
    prob_T1 = np.exp(best.token_log_probs[: len(word_T)])[:, None]
    confidence_W1 = mean_of_words(prob_T1, word_T, len(target_places))
    at = sentence.source_start
    source_words = [Word(sentence.source[a:b], at + a, at + b) for a, b in source_places]
    at = sentence.target_start
    target_words = [
        Word(text[a:b], at + a, at + b, float(confidence))
        for (a, b), [confidence] in zip(target_places, confidence_W1, strict=True)
    ]
    return Details(
        links(source_words, target_words, share_WW),
        tuple(word for word in target_words if worded(word.text)),
        tuple(map(target.token, (*best.ids, *[target.special.end] * best.ended))),
    )


def mean_of_words(values_TX: np.ndarray, word_T: Sequence[int], count: int) -> np.ndarray:
    """Return the mean over the tokens of each word. `word_T` contains the index of each token's word, or −1."""
    belongs_TW = np.equal.outer(word_T, np.arange(count))
    mean_WX: np.ndarray = belongs_TW.T @ values_TX / np.maximum(belongs_TW.sum(axis=0), 1)[:, None]
    return mean_WX


def shares(
    attention_TS: np.ndarray, word_T: Sequence[int], word_S: Sequence[int], targets: int, sources: int
) -> np.ndarray:
    """Return the share of each target word's attention that falls on each source word."""
    share_WW: np.ndarray = mean_of_words(attention_TS, word_T, targets) @ np.equal.outer(word_S, np.arange(sources))
    return share_WW


def links(source: Sequence[Word], target: Sequence[Word], share_WW: np.ndarray) -> tuple[Link, ...]:
    """Return a link from each target word to the source word that it is aligned with, if there is one."""
    are_words, are_signs = [worded(word.text) for word in target], [not worded(word.text) for word in source]
    share_WW = np.where(np.logical_and.outer(are_words, are_signs), 0, share_WW)
    rows = zip(share_WW.argmax(axis=1), target, share_WW, strict=True)
    return tuple(Link(source[n], word, float(share_W[n])) for n, word, share_W in rows if share_W[n] > 0)


def origins(text: str, given: str, things: Mapping[str, str]) -> list[int]:
    """Map each position in the model's input or output, including the end, to a position in the text. Symbols are first
    replaced by the text that they stand for; then the common parts of the two texts are found, ignoring case."""
    lengths = [len(things.get(letter, letter)) for letter in given]
    revealed = "".join(things.get(letter, letter) for letter in given)
    if len(text) == len(revealed) and text.lower() == revealed.lower():
        return list(accumulate(lengths, initial=0))
    places: list[int] = []
    for kind, i, j, k, end in SequenceMatcher(None, _small(text), _small(revealed), autojunk=False).get_opcodes():
        places += range(i, j) if kind == "equal" else [i] * (end - k)
    places.append(len(text))
    return [places[at] for at in accumulate(lengths, initial=0)]


def _small(text: str) -> str:
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
