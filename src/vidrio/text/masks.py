"""How a model reads a sentence: addresses, placeholders and code behind symbols, which it can learn to copy where it
would misspell the thing; capital letters as small ones.

A model that has seen ①②③… stand for names and addresses on both sides of its training pairs (`About.symbols` says
which) reads "Click ① to go on." for "Click {next_button} to go on.", and only has to put ① in its place. Where it
fails to, exactly once for each, `reveal` says so, and the words around are translated by themselves.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from vidrio.text.capitals import lowered, raised, shouted
from vidrio.text.protect import Span, spans

HIDDEN = frozenset(("code", "url", "email", "tag", "placeholder", "path", "domain", "version", "emoji"))

NAME = re.compile(r"(?<![\w'’])[^\W\d_a-z][\w-]*[a-z](?: [^\W\d_a-z][\w-]*[a-z])*\b")
# Tokens of a word that a model has to spell, and misspells. The first word of a sentence has its capital letter anyway.
RARE, RARE_FIRST = 3, 4
TITLE = 3  # words at least, all with a capital letter
UNSPELLABLE = 100  # what counts as so many: a word with letters that the vocabulary does not hold
WORD = re.compile(r"[\w'’-]+")


class Masked(NamedTuple):
    """A sentence as a model reads it, and what each of its symbols stands for."""

    text: str
    symbols: str
    places: tuple[Span, ...]  # in the sentence itself, in the order of the symbols
    loud: bool = False  # it is all in capitals, and read in small letters
    named: bool = False  # names are among what is hidden


def hide(sentence: str, symbols: str, tokens: Callable[[str], int] = lambda word: 1) -> Masked:
    """The sentence with symbols for what must be copied, unless one of them stands in it already; in small letters.

    What touches a word stays: with a symbol in its place the word would be split into other tokens. `tokens` tells how
    many a word has: names that have many are hidden, too, and every word that cannot be spelled.
    """
    loud = shouted(sentence)
    found = spans(sentence) if symbols else []
    hidden = joined(span for span in found if span.kind in HIDDEN)
    places = [span for span in hidden if not touches(sentence, span)]
    named = [] if loud or not symbols else list(names(sentence, found, tokens))
    if not (places or named) or any(symbol in sentence for symbol in symbols):
        return Masked(lowered(sentence) if loud else sentence, "", (), loud)
    written: list[str] = []
    at = 0
    places = sorted((*places[: len(symbols)], *named[: max(0, len(symbols) - len(places))]))
    for symbol, place in zip(symbols, places, strict=False):  # more places than symbols: the last ones stay
        written += (sentence[at : place.start], symbol)
        at = place.end
    text = "".join((*written, sentence[at:]))
    return Masked(lowered(text) if loud else text, symbols[: len(places)], tuple(places), loud, bool(named))


def names(sentence: str, taken: Sequence[Span], tokens: Callable[[str], int]) -> Iterator[Span]:
    """Words with a capital letter that are rare (of neighbours with one, all are one name if one of them is rare), and
    words with letters that the model does not know."""
    for match in () if sentence.isascii() else WORD.finditer(sentence):
        start, end = match.span()
        if not match[0].isascii() and is_free(start, end, taken) and tokens(match[0]) >= UNSPELLABLE:
            span = Span(start, end, "word")
            taken = (*taken, span)
            yield span
    firsts = [word[0] for word in sentence.split() if word[0].isalpha()]
    if len(firsts) >= TITLE and all(map(str.isupper, firsts)):
        return  # a title, where a capital letter tells nothing
    for match in NAME.finditer(sentence):
        start, end = match.span()
        words = match[0].split()
        if not any(map(str.isalpha, sentence[:start])) and tokens(words[0]) < RARE_FIRST:
            start += len(words.pop(0)) + 1
        if is_free(start, end, taken) and any(tokens(word) >= RARE for word in words):
            yield Span(start, end, "name")


def is_free(start: int, end: int, taken: Sequence[Span]) -> bool:
    """Whether no other place reaches into this one."""
    return not any(span.start < end and start < span.end for span in taken)


def joined(places: Iterable[Span]) -> list[Span]:
    """Neighbours with nothing between them as one."""
    found: list[Span] = []
    for place in places:
        if found and found[-1].end == place.start:
            place = found.pop()._replace(end=place.end)
        found.append(place)
    return found


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
