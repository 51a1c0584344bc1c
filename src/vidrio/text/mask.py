"""What a model is given for a sentence: symbols for addresses, placeholders, code and rare names, which it copies where
it would misspell them; capital letters as small ones; dollars for euros.

A model that has learned that ①②③… stand for names and addresses on both sides of its training pairs (`About.symbols`)
reads "Click ① to go on." for "Click {next_button} to go on.", and only has to put ① in its place. Where a symbol is not
exactly once in the translation, `Masked.restore` gives None.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from vidrio.text.casing import Form, Tokens, capital_first, read, written
from vidrio.text.chars import MARKS_AS_LETTERS, knows, plain, similar_in
from vidrio.text.pattern import pattern
from vidrio.text.protect import Protected, Span, is_free, touches
from vidrio.text.tokens.normalise import SPACE
from vidrio.text.tokens.tokenizer import Tokenizer

HIDDEN = frozenset(("code", "url", "email", "tag", "placeholder", "path", "domain", "version", "emoji"))
# Words with a capital letter first and a small one last, and neighbours like them: Mary-Ann O'Neill.
_NAME = r"[^\W\d_a-z](?:[\w-]|['’](?=[A-Z]))*[^\W\d_A-Z]\b"
NAME = pattern(rf"(?<![\w'’]){_NAME}(?: {_NAME})*")
ADDRESS = pattern(r"\b(?:Mrs?|Ms|Dra?|Prof|Sra?|Srta|Dña)\.? ")  # a name follows, though it be a common word
NAMED = "name"
# Tokens of a word that a model has to spell, and misspells. The first word of a sentence has its capital letter anyway.
RARE, RARE_FIRST = 3, 5
TITLE = 3  # words at least, all with a capital letter
UNSPELLABLE = 100  # the number of tokens of a word with letters that the vocabulary does not hold
WORD = pattern(r"[\w'’-]+")
DRAWN_OUT = pattern(r"([^\W\d_])\1{5}")  # "aaaaaah": no vocabulary has it
# What becomes of the words dólar, dólares, dollar, dollars in a translation that is of another currency.
DOLLAR = "$"
DOLLARS = pattern(r"(?:\bUS)?\$|\b[Dd](?:[oó]lar(?:es)?|ollars?)\b")
MONEY = {
    "€": ("euro", "euros", "euro", "euros"),
    "£": ("libra", "libras", "pound", "pounds"),
    "¥": ("yen", "yenes", "yen", "yen"),
}
CAPITALS = 0.01  # of the tokens, if a model has learned from sentences with capital letters
REMEMBERED = 10_000  # words whose number of tokens is kept


class Masked(NamedTuple):
    """A sentence, and what the model is given for it."""

    source: Protected
    given: str
    symbols: str = ""
    places: tuple[Span, ...] = ()  # in the sentence, of what the symbols stand for
    form: Form = Form.PLAIN  # how its letters looked; they are read as those of a sentence
    closed: bool = False  # by a full stop that only the model reads
    money: str = ""  # €, £ or ¥, which is read as $

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
        """The translation with what the symbols stand for, in the sentence's letters and money. None unless each
        symbol is in it once, and words where there were some."""
        if any(translation.count(symbol) != 1 for symbol in self.symbols):
            return None
        if self.symbols and any(map(str.isalpha, self.given)) and not any(map(str.isalpha, translation)):
            return None  # only the symbols are left
        return self.unmasked(translation)

    def unmasked(self, translation: str) -> str:
        """The same for as much of a translation as there is."""
        money = self.money
        if money:
            translation = DOLLARS.sub(lambda dollars: in_money(dollars[0], money), translation)
        if self.closed and translation.endswith(".") and not translation.endswith(".."):
            translation = translation[:-1]
        if self.form is not Form.PLAIN:
            translation = written(translation, self.source.text, self.form)
        return translation.translate({ord(symbol): thing for symbol, thing in self.things.items()})


class Masker:
    """Masks sentences for the model of a tokenizer. `symbols` are those that it has learned to copy; `translated` are
    words that are no rare names, with spaces between, since it has learned to translate them."""

    def __init__(self, tokenizer: Tokenizer, symbols: str = "", translated: str = "") -> None:
        self.symbols = symbols
        self._tokenizer, self._similar = tokenizer, similar_in(tokenizer)
        known = frozenset(translated.split())

        def count(word: str) -> int:
            given = plain(word, self._similar)
            return 1 if word in known else tokenizer.count(given) if tokenizer.spells(given) else UNSPELLABLE

        self._tokens: Tokens = lru_cache(REMEMBERED)(count)
        rare = [] if tokenizer.of_whole_words else [sign for sign in MONEY if not knows(sign, tokenizer)]
        self._money = {sign for sign in rare if tokenizer.count(sign) > tokenizer.count(DOLLAR)}

    @cached_property
    def knows_forms(self) -> bool:
        """Whether the model tells capital letters from small ones, having learned from text with both: some tokens are
        words that begin with a capital one."""
        beginnings = (token[1:3] for token in self._tokenizer.vocabulary() if token.startswith(SPACE))
        titles = sum(two[:1].isupper() and two[1:].islower() for two in beginnings)
        return titles >= CAPITALS * self._tokenizer.size

    def mask(self, source: Protected, *, forms: bool = True, hide_names: bool = True) -> Masked:
        """What the model is given for a sentence. Without `forms`, titles and small letters are read as they stand."""
        text, form = read(source, self._tokens, forms=forms and self.knows_forms)
        places = self._hidden(source, text, form, hide_names=hide_names) if self.symbols else ()
        shown, at = "", 0
        for symbol, place in zip(self.symbols, places, strict=False):
            shown += text[at : place.start] + symbol
            at = place.end
        closed = form in (Form.SMALL, Form.TITLE) and text[-1:].isalnum()
        shown += text[at:] + "." * closed
        money = self._priced_in(source, shown)
        given = plain(shown.replace(money, DOLLAR) if money else shown, self._similar)
        return Masked(source, given, self.symbols[: len(places)], tuple(places), form, closed, money)

    def unspellable(self, source: Protected) -> list[Span]:
        """Words that cannot be spelled, with strange letters or one letter again and again; neighbours are one."""
        text, places = source.text, list[Span]()
        if text.isascii() and not DRAWN_OUT.search(text):
            return places
        for match in WORD.finditer(text.translate(MARKS_AS_LETTERS)):
            start, end = match.span()
            word = text[start:end]
            strange = not word.isascii() and self._fewest(word) >= UNSPELLABLE
            if (strange or DRAWN_OUT.search(word)) and is_free(start, end, source.spans):
                if places and text[places[-1].end : start] == " ":
                    start = places.pop().start
                places.append(Span(start, end, "word"))
        return places

    def _hidden(self, source: Protected, text: str, form: Form, *, hide_names: bool) -> Sequence[Span]:
        """What symbols stand for; nothing, if one of them is in the text already, and would stay. What touches a word
        is not hidden: with a symbol in its place the word would be split into other tokens."""
        spelled = self.unspellable(source._replace(text=text))
        apart = (span for span in joined(span for span in source.spans if span.kind in HIDDEN))
        places = [span for span in apart if not touches(text, span)] + spelled
        if hide_names:
            # Where all words began alike, the letter of the first one tells nothing.
            first = RARE_FIRST if form in (Form.PLAIN, Form.SMALL) else UNSPELLABLE
            places += self._names(text, [*source.spans, *spelled], first)
        places = sorted(places[: len(self.symbols)])
        there = (at for at, letter in enumerate(text) if letter in self.symbols)
        return () if any(is_free(at, at + 1, places) for at in there) else places

    def _names(self, text: str, taken: Sequence[Span], rare_first: int) -> Iterator[Span]:
        """Words with a capital letter of which one is rare, neighbours together. The first word must be rarer."""
        words = [word for word in text.split() if word[0].isalpha()]
        if len(words) >= TITLE and all(word[0].isupper() for word in words):
            return  # a title, where a capital letter tells nothing
        addressed = {address.end() for address in ADDRESS.finditer(text)}
        for match in NAME.finditer(text):
            start, end = match.span()
            names = match[0].split()
            if not any(map(str.isalpha, text[:start])) and self._fewest(names[0]) < rare_first:
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

    def _priced_in(self, source: Protected, shown: str) -> str:
        """The sign of the prices of a sentence, if it is at numbers only, and the only one: so it can be put back."""
        prices = [sign for start, end, _ in source.spans for sign in source.text[start:end] if sign in self._money]
        is_one = len(set(prices)) == 1 and shown.count(prices[0]) == len(prices) and not DOLLARS.search(shown)
        return prices[0] if is_one else ""


def in_money(dollars: str, money: str) -> str:
    """Euros for dollars, as a sign or as a word."""
    if dollars.endswith(DOLLAR):
        return money
    word = MONEY[money][2 * ("ll" in dollars) + dollars.endswith("s")]
    return capital_first(word) if dollars[0].isupper() else word


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
