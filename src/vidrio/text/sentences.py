"""Where sentences begin and end: in English and Spanish text by rule, in that of other languages as `sentencex` says.

`split` gives places in the text, never copies of it: what lies between two sentences is white space only, so that a
translation can be put together with every byte of it kept. A mark that ends a sentence (. ! ? …) does so unless a rule
says that it does not: the next word is in lower case (where not all words are), an abbreviation or an initial stands
before it, or the number of a list. A line break ends a sentence too, unless the line is long and unfinished, as in text
wrapped at a fixed width.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from vidrio.text.pattern import pattern, word_set

OWN = ("en", "es")  # the languages whose abbreviations and words are told here
_LONGEST_ABBREVIATION = 20  # characters that are looked at before a full stop
_WRAPPED = 40  # characters; a shorter line is a heading or an entry of a list and ends where it ends


# Abbreviations, without their last full stop, in lower case. A name or more words follow these:
_BEFORE_WORDS = word_set(
    """
    mr mrs ms messrs dr drs prof rev fr sr st hon gen brig col maj capt cmdr lt sgt gov sen rep pres supt mt ft
    vs cf viz approx e.g i.e
    sra srta sres dra profa lic ing arq dª dña mons excmo excma ilmo ilma sto sta gral cnel cap tte alm
    ej p.ej trad coord av avda ctra pza urb prov aprox ext dpto depto apdo admón
    """
)
# A number follows these; with anything else they are words, or the sentence is over.
_BEFORE_NUMBERS = word_set(
    """
    no nos vol vols fig figs p pp ch chap sec art arts eq c ca núm núms nº n.º pág págs máx mín tel tfno
    jan feb mar apr jun jul aug sept sep oct nov dec ene abr ago dic
    """
)
# These may also end a sentence: they do when the next word usually begins one.
_MAY_END = word_set(
    """
    etc a.m p.m am pm u.s u.s.a u.k u.n e.u d.c inc ltd co corp llc bros jr sr ph.d m.d b.a m.a b.c a.d al ed eds
    ee.uu ee uu ss rr hh ss.mm rr.hh s.a s.l s.l.u a.c d.c d.e.p ud uds vd vds ib ibíd op cit cía
    """
)
_ABBREVIATIONS = (_BEFORE_WORDS | _BEFORE_NUMBERS | _MAY_END) - {"no"}
# Words that begin a sentence far more often than they are a name after an abbreviation.
_STARTERS = word_set(
    """
    a an the this that these those there here he she it we you they i his her its our your their my who what when where
    why how if in on at by for from with as after before while when since although because but and or so yet however
    then now no not yes also some many most all each every one two
    el la los las un una unos unas este esta estos estas ese esa esos esas aquel aquella esto eso yo tú él ella ellos
    ellas nosotros usted ustedes su sus mi mis tu tus nuestro nuestra quien qué que cuándo cuando dónde donde cómo como
    por para con sin en de desde hasta según si no sí y o pero porque aunque mientras entonces ahora luego también
    además después antes hoy ayer se lo le les me te nos al del hay es son fue era cada todo toda todos todas
    """
)

_END = pattern(r"(?P<mark>[.!?…]+|[。！？]+)(?P<close>[\"'”’»)\]*_]*)")
_BREAK = pattern(r"[\n\r\u2028\u2029]")
_SPACE = pattern(r"\s+")
_OPENING = "\"'“‘«([{*_"
_WORD_BEFORE = pattern(r"[^\s\"“‘«(\[¿¡—–]*\Z")
_WORD_AFTER = pattern(r"[^\W\d_]+")
_LIST_MARK = pattern(r"(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})\Z")
_NUMERAL = pattern(r"[IVXLC]+|[A-Z]")
_INITIALS = pattern(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J. R. R. Tolkien, 323 a. C.
_LIST_ITEM = pattern(r"[-*•·–—+#>|]|(?:\d{1,3}|[a-zA-Z])[.)]\s")


class Span(NamedTuple):
    """A sentence: the text from `start` to `end`, without white space around it."""

    start: int
    end: int


def split(text: str, language: str = "") -> list[Span]:
    """The sentences of a text, in order; without a language, or with another code for one of ours, by our rules."""
    code = language.lower().replace("_", "-").partition("-")[0]
    sentences = _sentences if code in ("", *OWN) else partial(_by_library, code)
    return [sentence for paragraph in _paragraphs(text) for sentence in sentences(text, paragraph)]


def _paragraphs(text: str) -> Iterator[Span]:
    """What stands between line breaks that end a sentence by themselves, or between the tabs of a table."""
    start = 0
    for space in _SPACE.finditer(text):
        if not _wrapped(text, start, space) if _BREAK.search(space[0]) else "\t" in space[0]:
            yield from trimmed(text, start, space.start())
            start = space.end()
    yield from trimmed(text, start, len(text))


def _wrapped(text: str, start: int, space: re.Match[str]) -> bool:
    """Does a sentence go on after this line break?"""
    if len(space[0].split("\n")) > 2 or space.end() == len(text):
        return False
    line = text[max(start, text.rfind("\n", start, space.start()) + 1) : space.start()]
    return len(line) >= _WRAPPED and not _LIST_ITEM.match(text, space.end())


def _sentences(text: str, paragraph: Span) -> Iterator[Span]:
    start = paragraph.start
    small = text[paragraph.start : paragraph.end].islower()
    for end in _END.finditer(text, paragraph.start, paragraph.end):
        if end.start() >= start and _ends(text, start, end, paragraph.end, small=small):
            yield from trimmed(text, start, end.end())
            start = end.end()
    yield from trimmed(text, start, paragraph.end)


def _by_library(language: str, text: str, paragraph: Span) -> Iterator[Span]:
    from sentencex import get_sentence_boundaries

    for found in get_sentence_boundaries(language, text[paragraph.start : paragraph.end]):
        yield from trimmed(text, paragraph.start + found["start_index"], paragraph.start + found["end_index"])


def _ends(text: str, start: int, end: re.Match[str], limit: int, *, small: bool) -> bool:
    """Does the sentence that began at `start` end with this mark? `small`: no sentence here begins with a capital."""
    after = _SPACE.match(text, end.end(), limit)
    if end["mark"][0] in "。！？":
        return True
    if not after or after.end() == limit:
        return False  # in the middle of a number, an address, a word; or there is nothing left to part
    at = after.end()
    while at < limit and text[at] in _OPENING:
        at += 1
    if at < limit and text[at] in "—–-" and not text[at + 1 : at + 2].isspace():
        at += 1  # a dash that opens speech
    following = text[at : at + 1]
    if following in "¿¡":
        return True
    if following in ",;:)]}%/&+=" or not following:
        return False
    if following.islower():
        return small and _ends_small(text, start, end)
    return end["mark"] != "." or _full_stop_ends(text, start, end, _WORD_AFTER.match(text, at), following)


def _ends_small(text: str, start: int, end: re.Match[str]) -> bool:
    """Does the mark end the sentence, where all is typed in small letters, and a word follows?"""
    if end["close"] or end["mark"] not in (".", "?", "!", "?!", "!?"):
        return False
    word = _word_before(text, start, end.start())
    is_whole = not (word in _ABBREVIATIONS or _INITIALS.fullmatch(word) or _LIST_MARK.match(word))
    return end["mark"] != "." or (word[-1:].isalpha() and is_whole)


def _full_stop_ends(text: str, start: int, end: re.Match[str], after: re.Match[str] | None, following: str) -> bool:
    """Does one full stop end the sentence, though what follows could begin one?"""
    if end["close"]:
        return True
    word = _word_before(text, start, end.start())
    at = end.start() - len(word)
    if _LIST_MARK.match(word) and at - start < 5 and not text[start:at].strip(_OPENING + " \t¿¡"):
        return False  # "1. Open the door."
    lower = word.lower()
    begins = after is not None and after[0].lower() in _STARTERS
    if lower in _BEFORE_NUMBERS:
        return not following.isdecimal() and (begins or not (after and _NUMERAL.fullmatch(after[0])))
    if lower in _MAY_END or _INITIALS.fullmatch(word):
        return begins
    return lower not in _BEFORE_WORDS


def _word_before(text: str, start: int, end: int) -> str:
    """What stands right before a mark."""
    found = _WORD_BEFORE.search(text, max(start, end - _LONGEST_ABBREVIATION), end)
    return found[0] if found else ""


def trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without white space at its ends; none if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield Span(start, end)
