"""What a model is given for a sentence: symbols for addresses, placeholders, code and rare names, which it can learn to
copy where it would misspell them; capital letters as small ones; dollars for euros.

A model that has learned that ①②③… stand for names and addresses on both sides of its training pairs (`About.symbols`
says which) reads "Click ① to go on." for "Click {next_button} to go on.", and only has to put ① in its place. Where it
fails to, exactly once for each, `reveal` says so, and the words around are translated by themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from vidrio.text.pattern import pattern, word_set
from vidrio.text.reading.capitals import (
    LITTLE,
    OPENING,
    Form,
    Tokens,
    as_entry,
    begins_large,
    begun_as,
    capital_first,
    is_rather_a_name,
    read,
    written,
)
from vidrio.text.reading.mending import ACCENTED, mended
from vidrio.text.reading.protect import Protected, Span
from vidrio.text.reading.questions import OPENING_MARK, SURELY, UNOPENED, opening
from vidrio.text.reading.quotes import requoted
from vidrio.text.reading.signs import (
    DOLLAR,
    MARKS_AS_LETTERS,
    MONEY,
    SET_OTHERWISE,
    UNUSUAL_BLANKS,
    knows,
    less_known_money,
    plain_signs,
    plainer,
)
from vidrio.text.tokens.normalise import SPACE
from vidrio.text.tokens.tokenizer import Tokenizer

HIDDEN = frozenset(("code", "url", "email", "tag", "placeholder", "path", "domain", "version", "emoji"))

# Words with a capital letter first and a small one last, and neighbours like them: Mary-Ann O'Neill. Letters beyond
# ASCII may be either here; is_name looks at them.
_NAME = r"[^\W\d_a-z](?:[\w-]|['’](?=[A-Z]))*[^\W\d_A-Z]\b"
NAME = pattern(rf"(?<![\w'’]){_NAME}(?: {_NAME})*")
ADDRESS = pattern(r"\b(?:Mrs?|Ms|Dra?|Prof|Sra?|Srta|Dña)\.? ")  # a name follows, though it be a common word
# Who or what it is that has the name that follows; this is translated: President Bill Clinton.
RANKS = word_set(
    "Prime Minister President Chairman Chancellor Governor Senator Ambassador Judge Mayor King Queen Prince Princess "
    "Emperor Pope Bishop Captain Colonel Inspector Professor Doctor Uncle Aunt Lake River Mount "
    "Primer Primera Ministro Ministra Presidente Presidenta Canciller Gobernador Senador Juez Alcalde Rey Reina "
    "Príncipe Princesa Capitán Profesor Profesora Tío Lago Río Avenida Universidad"
)
# Tokens of a word that a model has to spell, and misspells. The first word of a sentence has its capital letter anyway.
RARE, RARE_FIRST = 3, 5
NAMED = "name"
TITLE = 3  # words at least, all with a capital letter
UNSPELLABLE = 100  # what counts as so many: a word with letters that the vocabulary does not hold
WORD = pattern(r"[\w'’-]+")
DRAWN_OUT = pattern(r"([^\W\d_])\1{5}")  # "aaaaaah": no vocabulary has it
CAPITALS = 0.01  # of the tokens, if a model has learned from sentences with capital letters
# A word that says nothing about how its sentence is read, unless it is a rare name: Tom, isn't, well-known; ¿Quién?
USUAL = pattern(r"[¿¡]*(?:[^\W\d_]['’]?|[^\W\d_][a-zß-öø-ÿ]+(?:['’][a-zß-öø-ÿ]+)?|[a-z]+-[a-z]+)[,;:.?!…]*")
DOLLARS = pattern(r"(?:\bUS)?\$|\b[Dd](?:[oó]lar(?:es)?|ollars?)\b")
REMEMBERED = 10_000  # words whose number of tokens is kept
MOST_USUAL = 100_000  # words that are known to be usual


class Prepared(NamedTuple):
    """A sentence, what the model is given for it, and what each symbol in that stands for."""

    source: Protected
    hidden: str  # the sentence with symbols
    given: str  # the same on one line, in plain signs: that is what the model reads
    symbols: str = ""
    places: tuple[Span, ...] = ()  # in the sentence itself, in the order of the symbols
    form: Form = Form.PLAIN  # how its letters looked; they are read as those of a sentence
    marks: tuple[str, str] = ("", "")  # before and after it, which the sentence does not have
    named: bool = False  # names are among what is hidden, which can be read as they stand
    money: str = ""  # €, £ or ¥, which is read as $
    capital: bool = False  # its translation begins with a capital letter, as it does
    usual: bool = False  # at first sight there was nothing to prepare, and there is nothing to reveal


class Way(NamedTuple):
    """How a sentence is read."""

    forms: bool = True  # titles and small letters are read as sentences
    hide_names: bool = True
    otherwise: bool = False  # in its other form, where it has one


USUAL_WAY = Way()


class Reader:
    """Prepares sentences for the model of a tokenizer: `symbols` are those that it has learned to copy; words that it
    has learned to translate (`translated`, with blanks between) are no rare ones. The `language` tells which accents
    may be missing."""

    def __init__(self, tokenizer: Tokenizer, symbols: str = "", translated: str = "", language: str = "") -> None:
        self.symbols = symbols
        self.accents = ACCENTED.get(language, {})
        self._tokenizer = tokenizer
        forms = self._forms = plainer(tokenizer)  # each sign as it is read
        known = frozenset(translated.split())
        self._tokens = lru_cache(REMEMBERED)(
            lambda word: (
                1
                if word in known
                else tokenizer.count(plain)
                if tokenizer.spells(plain := SET_OTHERWISE.sub(plain_signs, word).translate(forms))
                else UNSPELLABLE
            )
        )
        self._money = less_known_money(tokenizer)  # signs that are read as $
        # The mark before a question, in a language that has one.
        self._opening = OPENING_MARK if language == "es" and knows(OPENING_MARK, tokenizer) else ""
        # Words (with the signs that touch them) that need no closer look, and those of them that stand in no title.
        self._usual: set[str] = set()
        self._small: set[str] = set()

    @cached_property
    def knows_forms(self) -> bool:
        """Whether the model tells capital letters from small ones, having learned from text with both: some tokens are
        words that begin with a capital one."""
        beginnings = (token[1:3] for token in self._tokenizer.vocabulary() if token.startswith(SPACE))
        titles = sum(two[:1].isupper() and two[1:].islower() for two in beginnings)
        return titles >= CAPITALS * self._tokenizer.size

    def prepare(self, source: Protected, way: Way = USUAL_WAY) -> Prepared:
        """What the model is given for a sentence."""
        return self.prepare_all([source], [way])[0]

    def prepare_all(self, sources: Sequence[Protected], ways: Sequence[Way]) -> list[Prepared]:
        """What the model is given for each sentence, read in its way."""
        forms = [way.forms and self.knows_forms for way in ways]
        usual = [not way.otherwise and self._is_usual(source) for source, way in zip(sources, ways, strict=True)]
        pairs = zip(sources, ways, strict=True)
        mended_sources = [self.mended(source) if way.otherwise else source for source, way in pairs]
        looks = [
            None
            if is_usual
            else (
                *read(as_meant, self._tokens, forms=has_forms, otherwise=way.otherwise),
                has_forms and begins_large(as_meant.text),
            )
            for is_usual, as_meant, way, has_forms in zip(usual, mended_sources, ways, forms, strict=True)
        ]
        return [
            Prepared(source, source.text, source.text, capital=has_forms and " " in source.text, usual=True)
            if look is None
            else self._hide(source, look, hide_names=way.hide_names)
            for source, way, look, has_forms in zip(sources, ways, looks, forms, strict=True)
        ]

    def mended(self, source: Protected) -> Protected:
        """The text with the accents and capital letters that it lacks, if it has none."""
        return mended(source, self.accents, self._tokens) if self.accents or source.text.islower() else source

    def may_be_entry(self, text: str, translation: str) -> bool:
        """Whether one or two words can be read as they stand in a dictionary; names cannot."""
        return as_entry(text, self._tokens) != text and not is_rather_a_name(text, translation, self._tokens)

    def _is_usual(self, source: Protected) -> bool:
        """Whether it begins with a capital letter, all its words are usual ones, on one line, and it is no title: then
        it is read as it stands, whether forms are told or not."""
        text = source.text
        if source.spans or not text[:1].isupper() or (text[-1].isalnum() and SURELY.match(text)):
            return False
        if self._opening and UNOPENED.fullmatch(text):
            return False
        words = text.split()
        if not self._usual.issuperset(words) and not all(map(self._is_usual_word, words)):
            return False
        return (len(words) == 1 or not self._small.isdisjoint(words)) and not UNUSUAL_BLANKS.search(text)

    def _is_usual_word(self, word: str) -> bool:
        if word in self._usual:
            return True
        if (
            not USUAL.fullmatch(word)
            or SET_OTHERWISE.search(word)
            or DRAWN_OUT.search(word)
            or ADDRESS.search(f"{word} ")
        ):
            return False
        if any(fewest(name, self._tokens) >= RARE for name in NAME.findall(word)):
            return False
        if any(fewest(part, self._tokens) >= UNSPELLABLE for part in WORD.findall(word) if not part.isascii()):
            return False
        if len(self._usual) < MOST_USUAL:
            if word[0].islower() and word not in LITTLE:
                self._small.add(word)
            self._usual.add(word)
        return True

    def _hide(self, source: Protected, look: tuple[str, Form, bool], *, hide_names: bool) -> Prepared:
        """The sentence as it looks (its letters, their form, whether it begins with a capital one), with symbols for
        what must be copied; unless one of them stands in it already, and would stay.

        What touches a word stays: with a symbol in its place the word would be split into other tokens. Names that have
        many tokens are hidden, too, and every word that cannot be spelled.
        """
        sentence, (text, form, is_large), symbols = source.text, look, self.symbols
        is_open = form in (Form.SMALL, Form.TITLE) and text[-1:].isalnum()
        marks = before, after = (
            (opening(text), "?")
            if form is Form.QUESTION
            else (self._opening if UNOPENED.fullmatch(text) else "", "." * is_open)
        )
        places: list[Span] = []
        if symbols:
            # Where all words began alike the letter of the first one tells nothing.
            first = RARE_FIRST if form in (Form.PLAIN, Form.SMALL, Form.QUESTION) else UNSPELLABLE
            hidden = joined(span for span in source.spans if span.kind in HIDDEN)
            spelled = unspellable(text, source.spans, self._tokens)
            places = [span for span in hidden if not touches(sentence, span)] + spelled
            if hide_names:
                places += names(text, [*source.spans, *spelled], self._tokens, first)
            places = sorted(places[: len(symbols)])  # more places than symbols: the last ones stay
            if any(symbol in symbols and is_free(at, at + 1, places) for at, symbol in enumerate(sentence)):
                places = []
        pieces = [before]
        at = 0
        for symbol, place in zip(symbols, places, strict=False):
            pieces += (text[at : place.start], symbol)
            at = place.end
        shown = "".join((*pieces, text[at:], after))
        given = SET_OTHERWISE.sub(plain_signs, shown).translate(self._forms)
        sign = priced_in(source, given, self._money)
        if sign:
            given = given.replace(sign, DOLLAR)
        used, named = symbols[: len(places)], any(place.kind == NAMED for place in places)
        capital = is_large and form is Form.PLAIN  # the other forms tell themselves how a translation begins
        return Prepared(source, shown, given, used, tuple(places), form, marks, named, sign, capital)


def priced_in(source: Protected, given: str, money: str) -> str:
    """The sign of the prices of a sentence, if it is in `money`, at numbers only, and the only one: it is put back."""
    prices = [sign for start, end, _ in source.spans for sign in source.text[start:end] if sign in money]
    is_one = len(set(prices)) == 1 and given.count(prices[0]) == len(prices) and not DOLLARS.search(given)
    return prices[0] if is_one else ""


def unspellable(sentence: str, taken: Sequence[Span], tokens: Tokens) -> list[Span]:
    """Words that cannot be spelled, with strange letters or one letter again and again; neighbours are one."""
    places: list[Span] = []
    if sentence.isascii() and not DRAWN_OUT.search(sentence):
        return places
    for match in WORD.finditer(sentence.translate(MARKS_AS_LETTERS)):
        start, end = match.span()
        word = sentence[start:end]
        strange = not word.isascii() and fewest(word, tokens) >= UNSPELLABLE
        if (strange or DRAWN_OUT.search(word)) and is_free(start, end, taken):
            if places and sentence[places[-1].end : start] == " ":
                start = places.pop().start
            places.append(Span(start, end, "word"))
    return places


def names(sentence: str, taken: Sequence[Span], tokens: Tokens, rare_first: int) -> Iterator[Span]:
    """Words with a capital letter that are rare: of neighbours with one, all are one name if one of them is rare. The
    first word must be rarer."""
    matches = list(NAME.finditer(sentence))
    firsts = [word[0] for word in sentence.split() if word[0].isalpha()] if matches else []
    if len(firsts) >= TITLE and all(map(str.isupper, firsts)):
        return  # a title, where a capital letter tells nothing
    addressed = {address.end() for address in ADDRESS.finditer(sentence)} if matches else set()
    for match in matches:
        start, end = match.span()
        words = match[0].split()
        first = not any(map(str.isalpha, sentence[:start]))
        if first and fewest(words[0], tokens) < rare_first and not (words[1:] and seldom_small(words[0], tokens)):
            start += len(words.pop(0)) + 1
        while words and (words[0] in RANKS or start + len(words[0]) + 1 in addressed):
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
    """How many tokens it has, with or without its capital letter, or with the s of a plural (Tuesdays); of words that
    are joined (Spanish-speaking) those of the longest."""
    forms = word, word.lower()
    counts = [*map(tokens, forms)]
    if word.endswith("s") and any(tokens(form[:-1]) == 1 for form in forms):
        counts.append(2)
    if len(joined_words := [part for part in word.split("-") if part]) > 1:
        counts.append(max(fewest(part, tokens) for part in joined_words))
    return min(counts)


def is_free(start: int, end: int, taken: Sequence[Span]) -> bool:
    """Whether no other place reaches into this one."""
    return not any(span.start < end and start < span.end for span in taken)


def joined(places: Iterable[Span]) -> list[Span]:
    """Neighbours with nothing between them as one."""
    merged: list[Span] = []
    for place in places:
        if merged and merged[-1].end == place.start:
            place = merged.pop()._replace(end=place.end)
        merged.append(place)
    return merged


def touches(sentence: str, span: Span) -> bool:
    """Whether a letter or digit stands directly before or after."""
    return sentence[span.start - 1 : span.start].isalnum() or sentence[span.end : span.end + 1].isalnum()


def reveal(translation: str, prepared: Prepared) -> str | None:
    """The translation with what the symbols stand for, in capitals if the sentence is; None unless each symbol is in
    it once, and words where there were some."""
    if prepared.usual:
        return begun_as(prepared.source.text, translation) if lacks_capital(translation, prepared) else translation
    if any(translation.count(symbol) != 1 for symbol in prepared.symbols):
        return None
    if prepared.symbols and any(map(str.isalpha, prepared.given)) and not any(map(str.isalpha, translation)):
        return None  # what is left are the symbols
    return requoted(prepared.source.text, as_written(translation, prepared))


def as_written(translation: str, prepared: Prepared) -> str:
    """What the model wrote, or has so far, with what its symbols stand for, in the sentence's letters and money."""
    sentence, money = prepared.source.text, prepared.money
    if money:
        translation = DOLLARS.sub(lambda dollars: in_money(dollars[0], money), translation)
    if prepared.form is not Form.PLAIN:
        translation = written(translation, sentence, prepared.form, prepared.marks[1])
    elif lacks_capital(translation, prepared):
        translation = begun_as(sentence, translation)
    places = zip(prepared.symbols, prepared.places, strict=True)
    return translation.translate({ord(symbol): sentence[place.start : place.end] for symbol, place in places})


def lacks_capital(translation: str, prepared: Prepared) -> bool:
    """Whether it may begin with a small letter, or with a blank after ¿, where the sentence does not."""
    return prepared.capital and (translation.lstrip(OPENING + " ")[:1].islower() or translation[1:2] == " ")


def in_money(dollars: str, money: str) -> str:
    """Euros for dollars, as a sign or as a word."""
    if dollars.endswith(DOLLAR):
        return money
    word = MONEY[money][2 * ("ll" in dollars) + dollars.endswith("s")]
    return capital_first(word) if dollars[0].isupper() else word
