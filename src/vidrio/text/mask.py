"""What a model is given for a sentence: symbols for addresses, placeholders, code and rare names, which it copies where
it would misspell them, and plain characters for those that its vocabulary lacks.

A model that has learned that ①②③… stand for names and addresses on both sides of its training pairs (`About.symbols`)
reads "Click ① to go on." for "Click {next_button} to go on.", and only has to put ① in its place. Where a symbol is not
exactly once in the translation, `Masked.restore` gives None.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from vidrio.text.pattern import pattern
from vidrio.text.protect import Protected, Span, is_free, touches
from vidrio.text.tokens.tokenizer import Tokenizer

HIDDEN = frozenset(("code", "url", "email", "tag", "placeholder", "path", "domain", "version", "emoji"))
# Words with a capital letter first and a small one last, and neighbours like them: Mary-Ann O'Neill.
_NAME = r"[^\W\d_a-z](?:[\w-]|['’](?=[A-Z]))*[^\W\d_A-Z]\b"
NAME = pattern(rf"(?<![\w'’]){_NAME}(?: {_NAME})*")
ADDRESS = pattern(r"\b(?:Mrs?|Ms|Dra?|Prof|Sra?|Srta|Dña)\.? ")  # a name follows, though it be a common word
NAMED = "name"
# Tokens of a word that a model has to spell, and misspells. The first word of a sentence has its capital letter anyway.
RARE, RARE_FIRST = 5, 7
TITLE = 3  # words at least, all with a capital letter
UNSPELLABLE = 100  # the number of tokens of a word with letters that the vocabulary does not hold
WORD = pattern(r"[\w'’-]+")
DRAWN_OUT = pattern(r"([^\W\d_])\1{5}")  # "aaaaaah": no vocabulary has it
REMEMBERED = 10_000  # words whose number of tokens is kept


class Masked(NamedTuple):
    """A sentence, and what the model is given for it."""

    source: Protected
    given: str
    symbols: str = ""
    places: tuple[Span, ...] = ()  # in the sentence, of what the symbols stand for

    @property
    def named(self) -> bool:
        """Whether names are hidden, which can be read as they stand."""
        return any(place.kind == NAMED for place in self.places)

    @property
    def things(self) -> dict[str, str]:
        """What each symbol stands for."""
        text = self.source.text
        return {symbol: text[at.start : at.end] for symbol, at in zip(self.symbols, self.places, strict=True)}

    def restore(self, translation: str) -> str | None:
        """The translation with what the symbols stand for. None unless each symbol is in it once, and at a word only if
        it was at one; and there are words where there were some."""
        if any(translation.count(symbol) != 1 for symbol in self.symbols):
            return None
        if any(at_a_word(translation, symbol) and not at_a_word(self.given, symbol) for symbol in self.symbols):
            return None
        if self.symbols and any(map(str.isalpha, self.given)) and not any(map(str.isalpha, translation)):
            return None  # only the symbols are left
        return self.unmasked(translation)

    def unmasked(self, translation: str) -> str:
        """The same for as much of a translation as there is."""
        return translation.translate({ord(symbol): thing for symbol, thing in self.things.items()})


def at_a_word(text: str, symbol: str) -> bool:
    """Whether the symbol stands directly before or after a letter or a digit."""
    before, _, after = text.partition(symbol)
    return before[-1:].isalnum() or after[:1].isalnum()


class Masker:
    """Masks sentences for the model of a tokenizer. `symbols` are those that it has learned to copy."""

    def __init__(self, tokenizer: Tokenizer, symbols: str = "") -> None:
        self.symbols = symbols

        def count(word: str) -> int:
            given = plain(word)
            return tokenizer.count(given) if tokenizer.spells(given) else UNSPELLABLE

        self._tokens = lru_cache(REMEMBERED)(count)

    def mask(self, source: Protected, *, hide_names: bool = True) -> Masked:
        """What the model is given for a sentence."""
        places = self._hidden(source, hide_names=hide_names) if self.symbols else ()
        shown, at = "", 0
        for symbol, place in zip(self.symbols, places, strict=False):
            shown += source.text[at : place.start] + symbol
            at = place.end
        shown += source.text[at:]
        return Masked(source, plain(shown), self.symbols[: len(places)], tuple(places))

    def unspellable(self, source: Protected) -> list[Span]:
        """Words that cannot be spelled, with strange letters or one letter again and again; neighbours are one."""
        text, places = source.text, list[Span]()
        if text.isascii() and not DRAWN_OUT.search(text):
            return places
        for match in WORD.finditer("".join("x" if is_mark(sign) else sign for sign in text)):
            start, end = match.span()
            word = text[start:end]
            strange = not word.isascii() and self._fewest(word) >= UNSPELLABLE
            if (strange or DRAWN_OUT.search(word)) and is_free(start, end, source.spans):
                if places and text[places[-1].end : start] == " ":
                    start = places.pop().start
                places.append(Span(start, end, "word"))
        return places

    def _hidden(self, source: Protected, *, hide_names: bool) -> Sequence[Span]:
        """What symbols stand for; nothing, if one of them is in the text already, and would stay. What touches a word
        is not hidden: with a symbol in its place the word would be split into other tokens."""
        text, spelled = source.text, self.unspellable(source)
        apart = (span for span in joined(span for span in source.spans if span.kind in HIDDEN))
        places = [span for span in apart if not touches(text, span)] + spelled
        if hide_names:
            places += self._names(text, [*source.spans, *spelled])
        places = sorted(places[: len(self.symbols)])
        there = (at for at, letter in enumerate(text) if letter in self.symbols)
        return () if any(is_free(at, at + 1, places) for at in there) else places

    def _names(self, text: str, taken: Sequence[Span]) -> Iterator[Span]:
        """Words with a capital letter of which one is rare, neighbours together. The first word must be rarer."""
        words = [word for word in text.split() if word[0].isalpha()]
        if len(words) >= TITLE and all(word[0].isupper() for word in words):
            return  # a title, where a capital letter tells nothing
        addressed = {address.end() for address in ADDRESS.finditer(text)}
        for match in NAME.finditer(text):
            start, end = match.span()
            names = match[0].split()
            if not any(map(str.isalpha, text[:start])) and self._fewest(names[0]) < RARE_FIRST:
                start += len(names.pop(0)) + 1
            while names and start + len(names[0]) + 1 in addressed:
                start += len(names.pop(0)) + 1
            rare = start in addressed or any(self._fewest(name) >= RARE for name in names)
            if names and rare and all(map(is_name, names)) and is_free(start, end, taken):
                yield Span(start, end, NAMED)

    def _fewest(self, word: str) -> int:
        """How many tokens it has, with or without its capital letter, or with the s of a plural (Tuesdays); of words
        that are joined (Spanish-speaking) those of the longest."""
        forms = word, word.lower()
        counts = [*map(self._tokens, forms)]
        if word.endswith("s") and any(self._tokens(form[:-1]) == 1 for form in forms):
            counts.append(2)
        if len(parts := [part for part in word.split("-") if part]) > 1:
            counts.append(max(map(self._fewest, parts)))
        return min(counts)


def is_name(word: str) -> bool:
    """Whether a word could be one by its letters."""
    return word[0].isupper() and word[-1].islower()


def joined(places: Iterable[Span]) -> list[Span]:
    """Neighbours with nothing between them as one."""
    merged: list[Span] = []
    for place in places:
        if merged and merged[-1].end == place.start:
            place = merged.pop()._replace(end=place.end)
        merged.append(place)
    return merged


# --- characters -------------------------------------------------------------------------------------------------------
#
# What the vocabulary lacks would be spelled byte by byte, and spoil the words around it. Some characters are read as
# plainer ones, what is invisible is left out, and the rest is copied.

HYPHENS = "\u2010\u2011"
BLANKS = "\x0b\x0c\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Compatibility forms of ASCII: ligatures, full-width and mathematical letters. Not №, ½, x², which mean more, nor ＜
# and ＃, which are copied like < and #.
FOLDED = (
    "\u0132\u0133\u017f\u01c7-\u01cc\u01f1-\u01f3\ufb00-\ufb06"
    "\uff01\uff02\uff04-\uff09\uff0c-\uff1b\uff1f\uff21-\uff3b\uff3d\uff40-\uff5a"
    "\U0001d400-\U0001d454\U0001d456-\U0001d49c\U0001d49e\U0001d49f\U0001d4a2\U0001d4a5\U0001d4a6\U0001d4a9-\U0001d4ac"
    "\U0001d4ae-\U0001d4b9\U0001d4bb\U0001d4bd-\U0001d4c3\U0001d4c5-\U0001d505\U0001d507-\U0001d50a\U0001d50d-\U0001d514"
    "\U0001d516-\U0001d51c\U0001d51e-\U0001d539\U0001d53b-\U0001d53e\U0001d540-\U0001d544\U0001d546\U0001d54a-\U0001d550"
    "\U0001d552-\U0001d6a3\U0001d7ce-\U0001d7ff"
)
# Control characters, and what Unicode calls default ignorable: soft hyphens, variation selectors, tags …
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ROW = rf" *[{BLANKS}][ {BLANKS}]*"  # of blanks
_OTHER_BLANKS = rf"{_ROW}(?![\d {BLANKS}])|(?<![\d {BLANKS}]){_ROW}"  # between the digits of a number they stay
_MISPLACED = r" +[,.?!](?=\s|\Z)|(?<=[^\W\d_])[,;?!](?=[^\W\d_])"  # yes , no; yes,no
_UNUSUAL = pattern(
    rf"\s*[\r\n]\s*|{_OTHER_BLANKS}|{_MISPLACED}| {{2,}}|[{HYPHENS}]|(?P<folded>[{FOLDED}]+)|[{INVISIBLE}]+"
)
_READ_OTHERWISE = pattern(f"[{HYPHENS}{FOLDED}{INVISIBLE}]")
# Quotation marks and dashes that few vocabularies hold are read as others.
_SIMILAR = str.maketrans("‛‚‹›′„‟″‒―", "'''''\"\"\"––")


def plain(text: str) -> str:
    """The text on one line, in usual characters and spacing."""
    return _UNUSUAL.sub(_usual, text).translate(_SIMILAR)


def _usual(match: re.Match[str]) -> str:
    found = match[0]
    if found.isspace():
        return " "
    if found in HYPHENS:
        return "-"
    if match["folded"]:
        return unicodedata.normalize("NFKC", found)
    if found[-1] in ",.;?!":
        return f"{found} " if len(found) == 1 else found[-1]
    return ""


def knows(sign: str, tokenizer: Tokenizer) -> bool:
    """Whether the vocabulary holds a character, by itself or with a space before it; a capital letter may be a small
    one after a token for capitals."""
    if tokenizer.has_case_tokens and len(small := sign.lower()) == 1:
        sign = small
    return tokenizer.id(sign) is not None or tokenizer.id(f"▁{sign}") is not None


def is_copied(sign: str, tokenizer: Tokenizer) -> bool:
    """Whether a character is part of no word and would be read byte by byte."""
    of_words = sign.isalnum() or sign.isspace() or unicodedata.category(sign)[0] == "M"
    return not (of_words or ord(sign) in _SIMILAR or _READ_OTHERWISE.match(sign) or knows(sign, tokenizer))


def is_mark(sign: str) -> bool:
    """Whether it is a combining mark, which belongs to the letter before it."""
    return unicodedata.category(sign)[0] == "M" and not _READ_OTHERWISE.match(sign)
