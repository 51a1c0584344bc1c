"""Prepare a sentence for the model: hide text to copy behind symbols, and simplify unusual characters.

Addresses, placeholders, code, rare names and rare characters are hidden, because a model is likely to misspell them. A
model that has learned to copy the symbols ①②③… (`About.symbols`) receives "Click ① to go on." instead of "Click
{next_button} to go on.", and only has to put ① in the right place. `Masked.restore` returns None unless each symbol
occurs exactly once in the translation.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

from vidrio.text.fold import Table
from vidrio.text.protect import Span, is_free, reaches, spans, touches
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.tokens.vocabulary import BYTES

HIDDEN = frozenset(("code", "url", "email", "tag", "placeholder", "path", "domain", "version", "emoji"))
# Titles. The word after a title is hidden as a name, even if the word is common.
_ADDRESS = r"\b(?:Mrs?|Ms|Dra?|Prof|Sra?|Srta|Dña)\b\.? "
# A name begins with a capital and ends with a lower-case letter. Adjacent names form a group: Mary-Ann J. O'Neill.
_CAPITAL = "".join(letter for letter in map(chr, range(0x41, 0x250)) if letter.isupper())
_MARK = r"\u0300-\u036f"  # combining accents
_NAME = rf"[{_CAPITAL}](?:[\w{_MARK}]|[-'’](?=[{_CAPITAL}]))*[^\W\d_{_CAPITAL}][{_MARK}]*(?![\w{_MARK}])"
_NAMES = rf"(?<![\w'’])(?P<address>{_ADDRESS})?(?P<names>{_NAME}(?: (?:[{_CAPITAL}]\.? )?(?!{_ADDRESS}){_NAME})*)"
# Names with at least this many tokens are hidden, because models misspell them. The limit is higher for the first word
# of a sentence, which is capitalised anyway.
RARE, RARE_FIRST = 5, 7
LONG = 3  # a name with at least this many tokens may be misspelled
LONGEST = 100  # characters before and after a rare character that may be hidden with it
UNSPELLABLE = 100  # the token count assigned to a word with letters outside the vocabulary
# Replacements for quotation marks and dashes that are not in the vocabulary.
SIMPLER = dict(zip("“”„‘’–—", '"""\'\'--', strict=True))
_DRAWN_OUT = r"([^\W\d_])\1{5}"  # six or more of the same letter: "aaaaaah" is in no vocabulary
_SIGN = r"[^\w\s.,:;!?¡¿'`«»„\"“”‘’()\[\]…–—/-]"  # characters that may be rare
# Characters in more than a hundred pairs of the packaged models' training data, but in no token of several characters.
_USUAL = "°•€£¥äàãçčèôöšü"
REMEMBERED = 10_000  # the maximum number of words whose token counts are cached


class Masked(NamedTuple):
    """A sentence and the model's input for it."""

    source: str
    given: str
    symbols: str = ""
    hidden: Mapping[Span, str] = {}  # the hidden spans of the sentence, each with the text to write in its place
    capitals: bool = False  # whether the sentence is all in capitals and was lower-cased for the model

    @property
    def things(self) -> dict[str, str]:
        """The text that replaces each symbol."""
        return dict(zip(self.symbols, self.hidden.values(), strict=True))

    def restore(self, translation: str) -> str | None:
        """Return the translation with each symbol replaced by the text that it stands for. Return None if a symbol is
        missing, repeated or next to a letter, or if the model's input contains words but the translation does not."""
        if self.capitals:
            translation = outside(translation, str.upper)
        letter = rf"[^\W_{re.escape(self.symbols)}]"
        for symbol in self.symbols:
            at_a_word = rf"{letter}{re.escape(symbol)}|{re.escape(symbol)}{letter}"
            if translation.count(symbol) != 1 or re.search(at_a_word, translation):
                return None
        if self.symbols and any(map(str.isalpha, self.given)) and not any(map(str.isalpha, translation)):
            return None  # only the symbols are left
        return translation.translate({ord(symbol): thing for symbol, thing in self.things.items()})


class Masker:
    """Masks sentences for a model with this tokenizer. The model has learned to copy `symbols`."""

    def __init__(self, tokenizer: Tokenizer, symbols: str = "") -> None:
        self.symbols, self._tokenizer = symbols, tokenizer
        self._simpler = {
            ord(sign): simple
            for sign, simple in SIMPLER.items()
            if tokenizer.id(sign) is tokenizer.id(f"▁{sign}") is None is not tokenizer.id(simple)
        }
        # Without case tokens, all-caps text is split into tokens that the model has rarely seen.
        self._reads_capitals = tokenizer.has_case_tokens or tokenizer.of_whole_words
        self._tokens, self._is_rare_sign = lru_cache(REMEMBERED)(self._count), lru_cache(REMEMBERED)(self._hardly_seen)

    def mask(self, source: str, *, hide_names: bool = True, also: Mapping[Span, str] = {}) -> Masked:
        """Return the model's input for a sentence. `also` maps more spans to hide to their replacements."""
        symbols = "".join(symbol for symbol in self.symbols if symbol not in source)
        places = self._hidden(source, hide_names=hide_names)
        places = [*(place for place in also if is_free(place.start, place.end, places)), *places]
        hidden = {at: also.get(at, source[at.start : at.end]) for at in sorted(places[: len(symbols)])}
        symbols, shown, at = symbols[: len(hidden)], "", 0
        for symbol, place in zip(symbols, hidden, strict=True):
            shown += source[at : place.start] + symbol
            at = place.end
        given = plain(shown + source[at:]).translate(self._simpler)
        for start, end, kind in spans(source):  # keep the punctuation of an address that is not hidden: /a?b=1
            thing = source[start:end]
            if kind in HIDDEN and " " not in thing and " " in (spaced := plain(thing)):
                given = given.replace(spaced, thing)
        capitals = not self._reads_capitals and in_capitals(given)
        if capitals:
            first, small = next(n for n, sign in enumerate(given) if sign.isalpha()), outside(given, str.lower)
            given = small[:first] + given[first] + small[first + 1 :]
        return Masked(source, given, symbols, hidden, capitals)

    def is_long(self, name: str) -> bool:
        """Return whether a name has at least LONG tokens, so that it may be misspelled."""
        return self._tokens(name) >= LONG

    def is_rare(self, name: str) -> bool:
        """Return whether a name has at least RARE tokens, so that it is hidden."""
        return self._tokens(name) >= RARE

    def unspellable(self, source: str) -> list[Span]:
        """Return the spans of rare characters, and of words with rare or repeated letters."""
        words = list(self._strange_words(source))
        return sorted([*words, *(sign for sign in self.rare_signs(source) if is_free(sign.start, sign.end, words))])

    def rare_signs(self, source: str) -> list[Span]:
        """Return the characters that the vocabulary lacks or that were rare in the training texts: >, §, ≥."""
        protected = spans(source)
        signs = (sign.span() for sign in re.finditer(_SIGN, source) if self._is_rare_sign(sign[0]))
        return [Span(*sign, "sign") for sign in signs if not reaches(protected, *sign)]

    def can_hide(self, text: str, sign: Span) -> Span | None:
        """Return the span of a rare character and the text that touches it. Return None if this text contains words,
        which must be translated, or if the model has no symbols."""
        before = re.split(r"\s", text[max(0, sign.start - LONGEST) : sign.start])[-1]
        after = re.split(r"\s", text[sign.end : sign.end + LONGEST], maxsplit=1)[0].rstrip(".,:;!?)")
        place = Span(sign.start - len(before), sign.end + len(after), "sign")
        has_words = re.search(r"[^\W\d_]{3}", text[place.start : place.end])
        return place if self.symbols and not has_words else None

    def _strange_words(self, source: str) -> Iterator[Span]:
        if source.isascii() and not re.search(_DRAWN_OUT, source):
            return
        # A combining mark belongs to the letter before it.
        letters = "".join("x" if unicodedata.category(sign)[0] == "M" else sign for sign in source)
        for word in re.finditer(r"[\w'’-]+", letters):
            if self._is_strange(source[word.start() : word.end()]) and is_free(*word.span(), spans(source)):
                yield Span(*word.span(), "word")

    def _is_strange(self, word: str) -> bool:
        shown = plain(word)
        letters = {letter for letter in shown.lower() if letter.isalpha() and not letter.isascii()}
        is_rare = word[:1].isupper() and not letters <= self._common
        return is_rare or self._tokens(word) >= UNSPELLABLE or bool(re.search(_DRAWN_OUT, word))

    @cached_property
    def _common(self) -> frozenset[str]:
        """The characters in _USUAL or in tokens of several characters. The model has rarely seen any others."""
        tokens = (token.strip("▁") for token in self._tokenizer.vocabulary() if token not in BYTES)
        return frozenset(_USUAL).union("".join(token for token in tokens if len(token) > 1))

    def _hardly_seen(self, sign: str) -> bool:
        known = self._tokenizer.id(sign) is not None or self._tokenizer.id(f"▁{sign}") is not None
        is_mark = unicodedata.category(sign)[0] == "M"  # combining marks belong to the letter before them
        return not is_mark and plain(sign) == sign and not (known and (sign in self._common or sign.isascii()))

    def _count(self, word: str) -> int:
        given, count = plain(word), self._tokenizer.count
        return min(count(given), count(given.lower())) if self._tokenizer.spells(given) else UNSPELLABLE

    def _hidden(self, source: str, *, hide_names: bool) -> list[Span]:
        """Return the spans to hide, names last. A protected span that touches a word is not hidden, because a symbol in
        its place would change the word's tokens."""
        copied = [span for span in spans(source) if span.kind in HIDDEN and not touches(source, span)]
        names = list(self._names(source)) if hide_names else []
        strange = [word for word in self._strange_words(source) if is_free(word.start, word.end, names)]
        hidden = [*copied, *strange, *names]
        for sign in self.rare_signs(source):
            place = self.can_hide(source, sign)
            if place and is_free(place.start, place.end, hidden):
                hidden.append(place)
        return hidden

    def _names(self, source: str) -> Iterator[Span]:
        """Yield groups of capitalised words that contain a rare name. The first word of a sentence is included only if
        it has at least RARE_FIRST tokens, or if it has at least LONG tokens and a rare name follows."""
        for match in re.finditer(_NAMES, source):
            start, end = match.span("names")
            names = match["names"].split()
            rare = bool(match["address"]) or any(self.is_rare(name) for name in names[1:])
            if not any(map(str.isalpha, source[:start])) and self._tokens(names[0]) < (LONG if rare else RARE_FIRST):
                start += len(names.pop(0)) + 1
            if names and (rare or self.is_rare(names[0])) and is_free(start, end, spans(source)):
                yield Span(start, end, "name")


# --- characters -------------------------------------------------------------------------------------------------------


def _read_as(sign: str) -> str:
    """Return the plain form of a character. Invisible characters are removed; ligatures and full-width or mathematical
    letters and digits become ASCII. №, ½ and ² are kept, because their plain forms would change the meaning."""
    kind = unicodedata.category(sign)
    if (kind in ("Cc", "Cf") and not sign.isspace()) or "VARIATION SELECTOR" in unicodedata.name(sign, ""):
        return ""
    plainer = unicodedata.normalize("NFKC", sign)
    return plainer if plainer.isascii() and (kind in ("Lu", "Ll", "Nd") or "\uff01" <= sign <= "\uff5e") else sign


_READ_AS = Table(_read_as)
# Hyphens, quotation marks and dashes that few vocabularies contain.
_READ_AS.update(zip(map(ord, "\u2010\u2011‛‚‹›′´„‟″‒―"), "--''''''\"\"\"––", strict=True))


def in_capitals(text: str) -> bool:
    """Return whether all words are in capitals and at least one has five letters, so that NASA alone does not count."""
    words = outside(text, str, kept=" ")
    return words.upper() == words != words.lower() and bool(re.search(r"[^\W\d_]{5}", words))


def outside(text: str, change: Callable[[str], str], kept: str | None = None) -> str:
    """Apply `change` to the text outside protected spans. If `kept` is given, it replaces each protected span."""
    parts, at = list[str](), 0
    for start, end, _ in spans(text):
        parts += (change(text[at:start]), text[start:end] if kept is None else kept)
        at = end
    return "".join((*parts, change(text[at:])))


def plain(text: str) -> str:
    """Return the text on one line, with common characters and regular spacing. Characters outside the vocabulary would
    be encoded as bytes, which would also spoil the translation of the words around them."""
    if not (text.isascii() and text.isprintable()):
        text = text.translate(_READ_AS)
    text = re.sub(r" ([,.?!])(?= |\Z)", r"\1", " ".join(text.split()))  # yes , no
    return re.sub(r"(?<=[^\W\d_])([,;?!])(?=[^\W\d_])", r"\1 ", text)  # yes,no
