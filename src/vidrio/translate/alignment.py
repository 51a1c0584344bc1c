"""Which word of the translation came from which word of the source, by what the decoder looked at.

The rule, for both engines. The attention of a target token is the last decoder layer's cross-attention at the step that
chose the token, the mean over its heads. A target word's attention to a source word is the sum over the source word's
tokens, and the mean over its own. It is aligned with the source word that it attends to most; that share of its
attention is the link's weight. A word that has a letter or a digit is never aligned with a sign that has none: full
stops draw attention that is meant for nothing. End tokens are no words, so a word's shares may sum to less than 1.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from vidrio.text.reading.capitals import BLANK_AFTER, put_after
from vidrio.text.reading.prepared import DOLLARS, Prepared, in_money, lacks_capital, reveal
from vidrio.text.reading.quotes import FIRST
from vidrio.text.reading.signs import SET_OTHERWISE, plain_signs
from vidrio.text.reading.words import Place, before_edits, token_places, word_of_each, worded, words
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.translation import Link, word_at


def shares(
    attention_TS: np.ndarray, target_T: Sequence[int], source_S: Sequence[int], targets: int, sources: int
) -> np.ndarray:
    """Which share of the attention of each target word falls on each source word. `target_T` and `source_S` tell the
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
    share_WW = shares(
        attention_TS[: len(target_tokens), : len(source_tokens)],
        word_of_each(target_tokens, target_places),
        word_of_each(source_tokens, source_places),
        len(target_words),
        len(source_words),
    )
    of_letters = [[worded(word.text) for word in some] for some in (target_words, source_words)]
    share_WW[np.logical_and.outer(of_letters[0], np.logical_not(of_letters[1]))] = 0
    if not source_words:
        return ()
    rows = zip(share_WW.argmax(axis=1), target_words, share_WW, strict=True)
    return tuple(Link(source_words[n], word, float(share_W[n])) for n, word, share_W in rows if share_W[n] > 0)


# --- where tokens stand, when the model read and wrote symbols in place of what is copied -----------------------------


def source_tokens(read: Prepared, tokenizer: Tokenizer) -> list[Place]:
    """The places in the sentence of the tokens that the model read, the end token left out."""
    length, (before, after) = len(read.source.text), map(len, read.marks)
    plainer = ((*match.span(), len(plain_signs(match))) for match in SET_OTHERWISE.finditer(read.hidden))
    to_hidden = before_edits(plainer, len(read.hidden))
    hidden = ((place.start, place.end, 1) for place in read.places)
    to_source = before_edits(((0, 0, before), *hidden, (length, length, after)), length)
    pieces = tokenizer.pieces(read.given)
    return [(to_source[to_hidden[piece.start]], to_source[to_hidden[piece.end]]) for piece in pieces]


def target_tokens(ids: Sequence[int], read: Prepared, tokenizer: Tokenizer) -> list[Place]:
    """The places in the translation of the tokens that the model wrote."""
    written = tokenizer.decode(ids)
    revealed = list(_revealed(written, read))
    length = len(written) + sum(end - start - instead for start, end, instead in revealed)
    to_translation = before_edits(revealed, length)
    return [(to_translation[start], to_translation[end]) for start, end in token_places(ids, tokenizer.decode)]


def _revealed(written: str, read: Prepared) -> Iterator[tuple[int, int, int]]:
    """Where in the translation what the symbols stand for stands, in the place of one character each; euros in the
    place of dollars; a mark that was put back, and nothing for the blank after ¿ or for a mark that goes."""
    edits = [(written.index(s), 1, end - start) for s, (start, end, _) in zip(read.symbols, read.places, strict=True)]
    if read.money:
        found = DOLLARS.finditer(written)
        edits += ((sign.start(), len(sign[0]), len(in_money(sign[0], read.money))) for sign in found)
    if lacks_capital(written, read) and (blank := BLANK_AFTER.match(written)):
        edits.append((blank.end(1), blank.end() - blank.end(1), 0))
    if not FIRST.search(written) and FIRST.search(reveal(written, read) or ""):
        edits.append((0, 0, 1))
    edits += ((at, 1, 0) for at in put_after(written, read.marks[1]))
    longer = 0
    for at, length, instead in sorted(edits):
        yield at + longer, at + longer + instead, length
        longer += instead - length
