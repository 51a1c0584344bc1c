"""What of a text a model is given to translate: whole sentences, or parts of one where it has to be cut.

Sentences begin and end in English and Spanish text by rule, in that of other languages as `sentencex` says. A mark that
ends a sentence (. ! ? …) does so unless a rule says that it does not: the next word is in lower case (where not all
words are), an abbreviation or an initial stands before it, or the number of a list. A line break ends a sentence too,
unless the line is long and unfinished, as in text wrapped at a fixed width.

All functions give places in the text, never copies of it: what lies between two sentences is white space only, so that
a translation can be put together with every byte of it kept.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial

from vidrio.text.lexicon import lexicon
from vidrio.text.mask import Masker, plain
from vidrio.text.protect import Span, spans, touches
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import Place

OWN = ("en", "es")  # the languages that are split by rule
_LONGEST_ABBREVIATION = 20  # characters that are looked at before a full stop
_WRAPPED = 40  # characters; a shorter line is a heading or an entry of a list and ends where it ends

_END = r"(?P<mark>[.!?…]+|[。！？]+)(?P<close>[\"'”’»)\]*_]*)"
_OPENING = "\"'“‘«([{*_"
# What follows a mark: a word or a sign, behind what opens; a dash without a space opens speech.
_NEXT = rf"\s+[{re.escape(_OPENING)}]*(?:[—–-](?!\s))?(?P<next>[^\W\d_]+|\S)"
_BEFORE_A_WORD = r"[\s\"“‘«(\[¿¡—–]"
_LIST_MARK = r"(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})\Z"
_NUMERAL = r"\d|[IVXLC]+|[A-Z]"
_INITIALS = r"(?:[^\W\d_]\.)*[^\W\d_]"  # J. R. R. Tolkien, 323 a. C.
_LIST_ITEM = r"[-*•·–—+#>|]|(?:\d{1,3}|[a-zA-Z])[.)]\s"


def split(text: str, language: str = "") -> list[Place]:
    """The sentences of a text, in order; without a language, or with another code for one of ours, by our rules."""
    code = language.lower().replace("_", "-").partition("-")[0]
    sentences = _sentences if code in ("", *OWN) else partial(_by_library, code)
    return [sentence for paragraph in _paragraphs(text) for sentence in sentences(text, paragraph)]


def _paragraphs(text: str) -> Iterator[Place]:
    """What stands between line breaks that end a sentence by themselves, or between the tabs of a table."""
    start = 0
    for space in re.finditer(r"\s+", text):
        breaks = re.search(r"[\n\r\u2028\u2029]", space[0])
        if not _wrapped(text, start, space) if breaks else "\t" in space[0]:
            yield from trimmed(text, start, space.start())
            start = space.end()
    yield from trimmed(text, start, len(text))


def _wrapped(text: str, start: int, space: re.Match[str]) -> bool:
    """Does a sentence go on after this line break?"""
    if len(space[0].split("\n")) > 2 or space.end() == len(text):
        return False
    line = text[max(start, text.rfind("\n", start, space.start()) + 1) : space.start()]
    return len(line) >= _WRAPPED and not re.compile(_LIST_ITEM).match(text, space.end())


def _sentences(text: str, paragraph: Place) -> Iterator[Place]:
    start, limit = paragraph
    small = text[start:limit].islower()
    for end in re.compile(_END).finditer(text, start, limit):
        before = text[max(start, end.start() - _LONGEST_ABBREVIATION) : end.start()]
        following = re.compile(_NEXT).match(text, end.end(), limit)
        if end["mark"][0] in "。！？" or (following and _ends(before, end, following["next"], small=small)):
            yield from trimmed(text, start, end.end())
            start = end.end()
    yield from trimmed(text, start, limit)


def _by_library(language: str, text: str, paragraph: Place) -> Iterator[Place]:
    from sentencex import get_sentence_boundaries

    start, end = paragraph
    for found in get_sentence_boundaries(language, text[start:end]):
        yield from trimmed(text, start + found["start_index"], start + found["end_index"])


def _ends(before: str, end: re.Match[str], following: str, *, small: bool) -> bool:
    """Does a sentence end with this mark? `before` is what stands right before it, `following` the next word or sign;
    `small`: no sentence here begins with a capital letter."""
    if following in "¿¡":
        return True
    if following in ",;:)]}%/&+=":
        return False
    in_small = small and before[-1:].isalpha() and not end["close"] and end["mark"] in (".", "?", "!", "?!", "!?")
    if following.islower() and not in_small:
        return False
    if end["mark"] != "." or end["close"]:
        return True
    word = re.split(_BEFORE_A_WORD, before)[-1]
    if re.match(_LIST_MARK, word) and not before.removesuffix(word).strip(_OPENING + " \t¿¡"):
        return False  # "1. Open the door."
    begins = not small and following.lower() in _known("starters")
    if word.lower() in _known("may_end") or re.fullmatch(_INITIALS, word):
        return begins
    if word.lower() in _known("before_numbers"):
        return begins or not re.fullmatch(_NUMERAL, following)
    return word.lower() not in _known("before_words")


@lru_cache
def _known(kind: str) -> frozenset[str]:
    """The words of a kind in all languages that are split by rule."""
    return frozenset[str]().union(*(lexicon(code).sentences[kind] for code in OWN))


def trimmed(text: str, start: int, end: int) -> Iterator[Place]:
    """The span without white space at its ends; none if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


# --- what of a sentence is translated ---------------------------------------------------------------------------------

CLOSING = ",;:.!?…)]}»”—–-"  # a clause may end here
CLOSED = rf"\A(?:[\"'’]?[\s{re.escape(CLOSING)}])+"  # after what is copied quotes close
OPENED = r"\s[^\w\s]+\Z"  # before what is copied
MARKER = r"(?:(?:[-*•·‣◦▪■●→»>|+~–—]+|\#{1,6}|\[[ xX]\]|\d{1,3}[.)]|[A-Za-z]\))\s+)+"  # of a list, a heading
NOT_LATIN = r"(?<![a-zA-Z\u00c0-\u024f])[^\W\d_\u0000-\u024f\u1e00-\u1eff]+(?![a-zA-Z\u00c0-\u024f])"
SEPARATOR = r"(?<=\s)(?:[|•·→»]|[>/](?=\s+[A-ZÁÉÍÓÚÑ¿¡]))(?=\s|\Z)"
LONG = 32  # characters; what is protected and longer than this is taken out of a sentence that has to be cut


class Splitter:
    """Finds what of a text is translated, for the vocabulary of a tokenizer; sentences of more than `longest` tokens in
    parts."""

    def __init__(self, tokenizer: Tokenizer, masker: Masker, longest: int) -> None:
        self._tokenizer, self._masker, self._longest = tokenizer, masker, longest

    def parts(self, text: str, sentences: Iterable[Place]) -> Iterator[Place]:
        """Those of a text's sentences that have words.

        Symbols, numbers and addresses that stand alone are no sentences: they are their own translation. So are the
        signs between the parts of a menu or a row ("File > Open | Yes / No"), and words in a script that the vocabulary
        does not hold: all that a model could do with them is invent.
        """
        protected = spans(text)
        # Emoji that touch a word are signs, too; others are hidden (mask.py). Within addresses nothing is apart.
        whole = [span for span in protected if span.kind != "emoji" or not touches(text, span)]
        strange = [span for span in self._apart(text) if not reaches(whole, span.start, span.end)]
        for first, end in undivided(sentences, protected):
            mark = re.compile(MARKER).match(text, first, end)  # the bullet or number of a list is copied
            start = mark.end() if mark else first
            for a, b in around(text, start, end, within(strange, start, end)):
                inside = within(protected, a, b)
                if not any(around(text, a, b, inside)):
                    continue
                if len(text[a:b].encode()) < self._longest:  # a token is a byte or more
                    yield a, b
                else:
                    for c, d in around(text, a, b, [span for span in inside if span.end - span.start > LONG]):
                        yield from in_parts(text, c, d, self._tokenizer, self._longest)

    def _apart(self, text: str) -> list[Span]:
        """What parts a sentence without being a sentence: signs that stand alone, rare signs that cannot be hidden, and
        words in letters that are not Latin and that the vocabulary does not hold."""
        places = [Span(*sign.span(), "sign") for sign in re.finditer(SEPARATOR, text)]
        if self._tokenizer.of_whole_words:
            return places
        places += [sign for sign in self._masker.rare_signs(text) if not self._masker.can_hide(text, sign)]
        for word in re.finditer(NOT_LATIN, text) if not text.isascii() else ():
            if not self._tokenizer.spells(plain(word[0]).lower()):
                places.append(Span(*word.span(), "foreign"))
        return sorted(places)


def reaches(places: Sequence[Span], start: int, end: int) -> bool:
    """Whether one of the places (in order) reaches into what stands from start to end, or over it."""
    before = bisect_left(places, (end,))
    return before > 0 and places[before - 1].end > start


def undivided(sentences: Iterable[Place], protected: Sequence[Span]) -> list[Place]:
    """The sentences; neighbours as one, if something protected (a tag with a text in it) reaches over their border."""
    whole: list[Place] = []
    for start, end in sentences:
        if whole and reaches(protected, whole[-1][1], whole[-1][1]):
            start = whole.pop()[0]
        whole.append((start, end))
    return whole


def within(protected: Sequence[Span], start: int, end: int) -> Sequence[Span]:
    """Those of the protected places (in order) that lie in text[start:end]."""
    return protected[bisect_left(protected, (start,)) : bisect_left(protected, (end,))]


def around(text: str, start: int, end: int, taken: Sequence[Span]) -> Iterator[Place]:
    """What of text[start:end] has words, but for the places that are taken and the quotes and brackets at them."""
    if not taken:
        yield from [(start, end)] if any(map(str.isalpha, text[start:end])) else []
        return
    at = start
    for place in taken:
        yield from clause(text, at, place.start)
        at = place.end
    yield from clause(text, at, end)


def clause(text: str, start: int, end: int) -> Iterator[Place]:
    """The span without white space, without what closed the clause before it, and without what opens the next one;
    nothing if it has no letter."""
    part = text[start:end]
    if any(map(str.isalpha, part)):
        first = len(part) - len(re.sub(CLOSED, "", part))
        yield start + first, start + len(re.sub(OPENED, "", part.rstrip()).rstrip())


def in_parts(text: str, start: int, end: int, tokenizer: Tokenizer, longest: int) -> Iterator[Place]:
    """Spans of at most `longest` tokens that cover text[start:end], but for white space between them: it is cut near
    its middle as often as it takes."""
    part = text[start:end]
    if len(part) < 2 or len(tokenizer.encode(part)) <= longest:
        yield from trimmed(text, start, end)
        return
    middle, margin = len(part) // 2, max(1, len(part) // 4)
    places: list[int] = []
    for mark in (rf"[{re.escape(CLOSING)}]\s", r"\s", ""):  # after a comma, else at a space, else anywhere
        places = places or [place.end() for place in re.compile(mark).finditer(part, margin, len(part) - margin)]
    cut = start + min(places, key=lambda place: abs(place - middle))
    yield from in_parts(text, start, cut, tokenizer, longest)
    yield from in_parts(text, cut, end, tokenizer, longest)
