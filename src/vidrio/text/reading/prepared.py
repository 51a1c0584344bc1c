"""How a model reads a sentence: addresses, placeholders and code behind symbols, which it can learn to copy where it
would misspell the thing; capital letters as small ones.

A model that has seen ①②③… stand for names and addresses on both sides of its training pairs (`About.symbols` says
which) reads "Click ① to go on." for "Click {next_button} to go on.", and only has to put ① in its place. Where it
fails to, exactly once for each, `reveal` says so, and the words around are translated by themselves.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vidrio.text.reading.capitals import SEVERAL, Form, Tokens, lowered, read, shouted, written
from vidrio.text.reading.protect import Span, spans

HIDDEN = frozenset(("code", "url", "email", "tag", "placeholder", "path", "domain", "version", "emoji"))

# Words with a capital letter first and a small one last, and neighbours like them: Mary-Ann O'Neill. Letters beyond
# ASCII may be either here; is_name looks at them.
_NAME = r"[^\W\d_a-z](?:[\w-]|['’](?=[A-Z]))*[^\W\d_A-Z]\b"
NAME = re.compile(rf"(?<![\w'’]){_NAME}(?: {_NAME})*")
ADDRESS = re.compile(r"\b(?:Mrs?|Ms|Dra?|Prof|Sra?|Srta|Dña)\.? ")  # a name follows, though it be a common word
# Tokens of a word that a model has to spell, and misspells. The first word of a sentence has its capital letter anyway.
RARE, RARE_FIRST = 3, 4
NAMED = "name"
TITLE = 3  # words at least, all with a capital letter
UNSPELLABLE = 100  # what counts as so many: a word with letters that the vocabulary does not hold
WORD = re.compile(r"[\w'’-]+")
DRAWN_OUT = re.compile(r"([^\W\d_])\1{5}")  # "aaaaaah": no vocabulary has it


class Masked(NamedTuple):
    """A sentence as a model reads it, and what each of its symbols stands for."""

    text: str
    symbols: str
    places: tuple[Span, ...]  # in the sentence itself, in the order of the symbols
    form: Form = Form.PLAIN  # how its letters looked; they are read as those of a sentence
    closed: bool = False  # it has a full stop that the sentence does not have
    named: bool = False  # names are among what is hidden, which can be read as they stand


def hide(
    sentence: str,
    symbols: str,
    tokens: Tokens = lambda word: 1,
    *,
    forms: bool = True,
    hide_names: bool = True,
    several: int = SEVERAL,
) -> Masked:
    """The sentence with symbols for what must be copied, unless one of them stands in it already; with the letters of a
    sentence, unless the model knows no such `forms`: then only capitals become small.

    What touches a word stays: with a symbol in its place the word would be split into other tokens. `tokens` tells how
    many a word has: names that have many are hidden, too, and every word that cannot be spelled.
    """
    text, form = read(sentence, tokens, several) if forms else shouting(sentence)
    closed = form in (Form.SMALL, Form.TITLE) and text[-1:].isalnum()
    found = spans(sentence) if symbols else []
    hidden = joined(span for span in found if span.kind in HIDDEN)
    places = [span for span in hidden if not touches(sentence, span)]
    first = RARE_FIRST if form in (Form.PLAIN, Form.SMALL) else UNSPELLABLE  # where all began alike it tells nothing
    spelled = unspellable(text, found, tokens) if symbols else []
    named = list(names(text, [*found, *spelled], tokens, first)) if symbols and hide_names else []
    if any(symbol in sentence for symbol in symbols):
        places, spelled, named = [], [], []
    pieces: list[str] = []
    at = 0
    places = sorted([*places, *spelled, *named][: len(symbols)])
    for symbol, place in zip(symbols, places, strict=False):  # more places than symbols: the last ones stay
        pieces += (text[at : place.start], symbol)
        at = place.end
    given = "".join((*pieces, text[at:], "." * closed))
    return Masked(given, symbols[: len(places)], tuple(places), form, closed, any(one.kind == NAMED for one in places))


def shouting(sentence: str) -> tuple[str, Form]:
    return (lowered(sentence), Form.CAPITALS) if shouted(sentence) else (sentence, Form.PLAIN)


def unspellable(sentence: str, taken: Sequence[Span], tokens: Tokens) -> list[Span]:
    """Words that cannot be spelled, with letters that the model does not know or one letter again and again; neighbours
    are one."""
    found: list[Span] = []
    for match in () if sentence.isascii() and not DRAWN_OUT.search(sentence) else WORD.finditer(sentence):
        start, end = match.span()
        strange = not match[0].isascii() and fewest(match[0], tokens) >= UNSPELLABLE
        if (strange or DRAWN_OUT.search(match[0])) and is_free(start, end, taken):
            if found and sentence[found[-1].end : start] == " ":
                start = found.pop().start
            found.append(Span(start, end, "word"))
    return found


def names(sentence: str, taken: Sequence[Span], tokens: Tokens, rare_first: int) -> Iterator[Span]:
    """Words with a capital letter that are rare: of neighbours with one, all are one name if one of them is rare. The
    first word must be rarer."""
    firsts = [word[0] for word in sentence.split() if word[0].isalpha()]
    if len(firsts) >= TITLE and all(map(str.isupper, firsts)):
        return  # a title, where a capital letter tells nothing
    addressed = {address.end() for address in ADDRESS.finditer(sentence)}
    for match in NAME.finditer(sentence):
        start, end = match.span()
        words = match[0].split()
        first = not any(map(str.isalpha, sentence[:start]))
        if first and fewest(words[0], tokens) < rare_first and not (words[1:] and seldom_small(words[0], tokens)):
            start += len(words.pop(0)) + 1
        if words and start + len(words[0]) + 1 in addressed:
            start += len(words.pop(0)) + 1
        known = start not in addressed and all(fewest(word, tokens) < RARE for word in words)
        if words and not known and all(map(is_name, words)) and is_free(start, end, taken):
            yield Span(start, end, NAMED)


def seldom_small(word: str, tokens: Tokens) -> bool:
    """Whether the vocabulary knows a word no better in small letters than with a capital one: Helen, but not After."""
    return tokens(word) == tokens(word.lower()) > 1


def is_name(word: str) -> bool:
    """Whether a word could be one by its letters."""
    return word[0].isupper() and word[-1].islower()


def fewest(word: str, tokens: Tokens) -> int:
    """How many tokens it has, with or without its capital letter."""
    return min(tokens(word), tokens(word.lower()))


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
    translation = written(translation, sentence, masked.form, closed=masked.closed)
    for symbol, place in zip(masked.symbols, masked.places, strict=True):
        before, there, after = translation.partition(symbol)
        if not there or symbol in after:
            return None
        translation = before + sentence[place.start : place.end] + after
    return translation
