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

from vidrio.text import protect
from vidrio.text.mask import INVISIBLE, is_copied
from vidrio.text.pattern import pattern
from vidrio.text.protect import Protected, touches
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import Place

OWN = ("en", "es")  # the languages whose abbreviations and words are told here
_LONGEST_ABBREVIATION = 20  # characters that are looked at before a full stop
_WRAPPED = 40  # characters; a shorter line is a heading or an entry of a list and ends where it ends


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations, without their last full stop, in lower case. A name or more words follow these:
_BEFORE_WORDS = _words(
    """
    mr mrs ms messrs dr drs prof rev fr sr st hon gen brig col maj capt cmdr lt sgt gov sen rep pres supt mt ft
    vs cf viz approx e.g i.e
    sra srta sres dra profa lic ing arq dª dña mons excmo excma ilmo ilma sto sta gral cnel cap tte alm
    ej p.ej trad coord av avda ctra pza urb prov aprox ext dpto depto apdo admón
    """
)
# A number follows these; with anything else they are words, or the sentence is over.
_BEFORE_NUMBERS = _words(
    """
    no nos vol vols fig figs p pp ch chap sec art arts eq c ca núm núms nº n.º pág págs máx mín tel tfno
    jan feb mar apr jun jul aug sept sep oct nov dec ene abr ago dic
    """
)
# These may also end a sentence: they do when the next word usually begins one.
_MAY_END = _words(
    """
    etc a.m p.m am pm u.s u.s.a u.k u.n e.u d.c inc ltd co corp llc bros jr sr ph.d m.d b.a m.a b.c a.d al ed eds
    ee.uu ee uu ss rr hh ss.mm rr.hh s.a s.l s.l.u a.c d.c d.e.p ud uds vd vds ib ibíd op cit cía
    """
)
_ABBREVIATIONS = (_BEFORE_WORDS | _BEFORE_NUMBERS | _MAY_END) - {"no"}
# Words that begin a sentence far more often than they are a name after an abbreviation.
_STARTERS = _words(
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


def split(text: str, language: str = "") -> list[Place]:
    """The sentences of a text, in order; without a language, or with another code for one of ours, by our rules."""
    code = language.lower().replace("_", "-").partition("-")[0]
    sentences = _sentences if code in ("", *OWN) else partial(_by_library, code)
    return [sentence for paragraph in _paragraphs(text) for sentence in sentences(text, paragraph)]


def _paragraphs(text: str) -> Iterator[Place]:
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


def _sentences(text: str, paragraph: Place) -> Iterator[Place]:
    start, limit = paragraph
    small = text[start:limit].islower()
    for end in _END.finditer(text, start, limit):
        if end.start() >= start and _ends(text, start, end, limit, small=small):
            yield from trimmed(text, start, end.end())
            start = end.end()
    yield from trimmed(text, start, limit)


def _by_library(language: str, text: str, paragraph: Place) -> Iterator[Place]:
    from sentencex import get_sentence_boundaries

    start, end = paragraph
    for found in get_sentence_boundaries(language, text[start:end]):
        yield from trimmed(text, start + found["start_index"], start + found["end_index"])


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
QUOTES = "\"'’"  # after what is copied they close
CLOSED = pattern(rf"\A(?:[\s{re.escape(CLOSING)}]|[{QUOTES}](?=[\s{re.escape(CLOSING)}]))+")
OPENED = pattern(r"[^\w\s]+\Z")
MARKER = pattern(r"(?:(?:[-*•·‣◦▪■●→»>|+~–—]+|\#{1,6}|\[[ xX]\]|\d{1,3}[.)]|[A-Za-z]\))\s+)+")  # of a list, a heading
WINDOW = 8  # characters for each token that may be in a part; texts have some four, so the limit is met within
# Raised and lowered numbers, fractions, ligatures and full-width letters are no script of their own.
NOT_LATIN = pattern(
    r"[^\W\d_\u0000-\u024f\u1e00-\u1eff\u2070-\u209c\u2150-\u2189\ufb00-\ufb06\uff01-\uff5e\U0001d400-\U0001d7ff]+"
)
SEPARATOR = pattern(r"(?<=\s)(?:[|•·→»]|[>/](?=\s+[A-ZÁÉÍÓÚÑ¿¡]))(?=\s|\Z)")
LONG = 32  # characters; what is protected and longer than this is taken out of a sentence that has to be cut


class Splitter:
    """Finds what of a text is translated, for the vocabulary of a tokenizer; sentences of more than `longest` tokens in
    parts."""

    def __init__(self, tokenizer: Tokenizer, longest: int) -> None:
        self._tokenizer, self._longest = tokenizer, longest
        self._is_copied = lru_cache(10_000)(lambda sign: is_copied(sign, tokenizer))

    def parts(self, source: Protected, sentences: Iterable[Place]) -> Iterator[Place]:
        """Those of a text's sentences that have words.

        Symbols, numbers and addresses that stand alone are no sentences: they are their own translation. So are the
        signs between the parts of a menu or a row ("File > Open | Yes / No"), and words in a script that the vocabulary
        does not hold: all that a model could do with them is invent.
        """
        text, protected = source
        # Emoji that touch a word are signs, too; others are hidden (mask.py). Within addresses nothing is apart.
        whole = [span for span in protected if span.kind != "emoji" or not touches(text, span)]
        strange = [span for span in self._apart(text) if not reaches(whole, span.start, span.end)]
        for first, end in undivided(sentences, protected):
            mark = MARKER.match(text, first, end)  # the bullet or number of a list is copied
            start = mark.end() if mark and not reaches(protected, mark.end(), mark.end()) else first
            for a, b in around(text, start, end, within(strange, start, end)):
                inside = within(protected, a, b)
                if not any(around(text, a, b, inside)):
                    continue
                if len(text[a:b].encode()) < self._longest:  # a token is a byte or more
                    yield a, b
                else:
                    for c, d in around(text, a, b, [span for span in inside if span.end - span.start > LONG]):
                        yield from in_parts(text, c, d, self._tokenizer, self._longest)

    def _apart(self, text: str) -> list[protect.Span]:
        """What parts a sentence without being a sentence: signs that stand alone, signs that the vocabulary lacks, and
        words in letters that are not Latin and of which it does not hold half."""
        places = [protect.Span(*sign.span(), "sign") for sign in SEPARATOR.finditer(text)]
        if not (text.isascii() or self._tokenizer.of_whole_words):
            copied = "".join(
                re.escape(sign) for sign in sorted({*text}) if not sign.isascii() and self._is_copied(sign)
            )
            found = re.finditer(f"[{copied}][{copied}{INVISIBLE}]*", text) if copied else ()
            places += [protect.Span(*signs.span(), "sign") for signs in found]
            for word in NOT_LATIN.finditer(text):
                letters = set(word[0])
                if 2 * sum(self._tokenizer.id(letter) is not None for letter in letters) < len(letters):
                    places.append(protect.Span(*word.span(), "foreign"))
        return sorted({span.start: span for span in places}.values())


def reaches(places: Sequence[protect.Span], start: int, end: int) -> bool:
    """Whether one of the places (in order) reaches into what stands from start to end, or over it."""
    before = bisect_left(places, (end,))
    return before > 0 and places[before - 1].end > start


def undivided(sentences: Iterable[Place], protected: Sequence[protect.Span]) -> list[Place]:
    """The sentences; neighbours as one, if something protected (a tag with a text in it) reaches over their border."""
    whole: list[Place] = []
    for start, end in sentences:
        if whole and reaches(protected, whole[-1][1], whole[-1][1]):
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((start, end))
    return whole


def within(protected: Sequence[protect.Span], start: int, end: int) -> Sequence[protect.Span]:
    """Those of the protected places (in order) that lie in text[start:end]."""
    return protected[bisect_left(protected, (start,)) : bisect_left(protected, (end,))]


def around(text: str, start: int, end: int, taken: Sequence[protect.Span]) -> Iterator[Place]:
    """What of text[start:end] has words, but for the places that are taken and the quotes and brackets at them."""
    if not taken:
        yield from [(start, end)] if any(map(str.isalpha, text[start:end])) else []
        return
    at = start
    for place in taken:
        yield from clause(text, at, place.start, touches_next=True)
        at = place.end + (text[place.end : place.end + 1] in QUOTES and place.end < end)
    yield from clause(text, at, end)


def clause(text: str, start: int, end: int, *, touches_next: bool = False) -> Iterator[Place]:
    """The span without white space, and without what closed the clause before it; nothing if it has no letter.

    `touches_next`: something copied follows, and the marks right before it go with it.
    """
    part = text[start:end]
    if not any(map(str.isalpha, part)):
        return
    first = len(part) - len(CLOSED.sub("", part))
    last = len((OPENED.sub("", part) if touches_next else part).rstrip())
    if (part[:first] + part[last:]).strip() and (inside := protect.spans(part)):
        first, last = min(first, inside[0].start), max(last, inside[-1].end)  # marks may belong to such a thing
    yield start + first, start + last


def in_parts(text: str, start: int, end: int, tokenizer: Tokenizer, longest: int) -> Iterator[Place]:
    """Spans of at most `longest` tokens that cover text[start:end], but for white space between them."""
    while start < end:
        window = text[start : min(end, start + WINDOW * longest)]
        size = len(window)
        if start + size < end or tokenizer.count(window) > longest:
            size = cut_place(window, tokenizer, longest)
            while size > 1 and len(tokenizer.encode(window[:size])) > longest:
                size //= 2  # by itself a part may need a token or two more
        yield from trimmed(text, start, start + size)
        start += size


def cut_place(window: str, tokenizer: Tokenizer, longest: int) -> int:
    """Where to end the first part: after a comma in its second half, else at a space, else between tokens."""
    starts = [piece.start for piece in tokenizer.pieces(window)]
    places = [place for place in starts[longest // 2 : longest + 1] if place] or starts[1:] or [len(window)]
    spaces = [place for place in places if window[place : place + 1].isspace() or window[place - 1].isspace()]
    clauses = [place for place in spaces if window[:place].rstrip()[-1:] in CLOSING]
    return (clauses or spaces or places)[-1] or len(window)
