"""How a model reads a sentence: addresses, placeholders and code behind symbols, which it can learn to copy where it
would misspell the thing; capital letters as small ones.

A model that has seen ①②③… stand for names and addresses on both sides of its training pairs (`About.symbols` says
which) reads "Click ① to go on." for "Click {next_button} to go on.", and only has to put ① in its place. Where it
fails to, exactly once for each, `reveal` says so, and the words around are translated by themselves.
"""

from typing import NamedTuple

from vidrio.text.capitals import lowered, raised, shouted
from vidrio.text.protect import Span, spans

HIDDEN = frozenset(("code", "url", "email", "tag", "placeholder", "path", "domain", "emoji"))


class Masked(NamedTuple):
    """A sentence as a model reads it, and what each of its symbols stands for."""

    text: str
    symbols: str
    places: tuple[Span, ...]  # in the sentence itself, in the order of the symbols
    loud: bool = False  # it is all in capitals, and read in small letters


def hide(sentence: str, symbols: str) -> Masked:
    """The sentence with symbols for what must be copied, unless one of them stands in it already; in small letters.

    What touches a word stays: with a symbol in its place the word would be split into other tokens.
    """
    loud = shouted(sentence)
    found = spans(sentence) if symbols else []
    places = [span for span in found if span.kind in HIDDEN and not touches(sentence, span)]
    if not places or any(symbol in sentence for symbol in symbols):
        return Masked(lowered(sentence) if loud else sentence, "", (), loud)
    written: list[str] = []
    at = 0
    for symbol, place in zip(symbols, places, strict=False):  # more places than symbols: the last ones stay
        written += (sentence[at : place.start], symbol)
        at = place.end
    count = len(written) // 2
    text = "".join((*written, sentence[at:]))
    return Masked(lowered(text) if loud else text, symbols[:count], tuple(places[:count]), loud)


def touches(sentence: str, span: Span) -> bool:
    """Whether a letter or digit stands directly before or after."""
    return sentence[span.start - 1 : span.start].isalnum() or sentence[span.end : span.end + 1].isalnum()


def reveal(translation: str, sentence: str, masked: Masked) -> str | None:
    """The translation with what the symbols stand for, in capitals if the sentence is; None unless each symbol is in
    it once."""
    if masked.loud:
        translation = raised(translation)
    for symbol, place in zip(masked.symbols, masked.places, strict=True):
        before, there, after = translation.partition(symbol)
        if not there or symbol in after:
            return None
        translation = before + sentence[place.start : place.end] + after
    return translation
