"""What of a text a model is given to translate: whole sentences, or parts of one where it has to be cut."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from vidrio.text import protect
from vidrio.text.chars import INVISIBLE, is_copied
from vidrio.text.pattern import pattern
from vidrio.text.protect import Protected, touches
from vidrio.text.sentences import trimmed
from vidrio.text.tokens.tokenizer import Tokenizer

Span = tuple[int, int]

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

    def parts(self, source: Protected, sentences: Iterable[Span]) -> Iterator[Span]:
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


def undivided(sentences: Iterable[Span], protected: Sequence[protect.Span]) -> list[Span]:
    """The sentences; neighbours as one, if something protected (a tag with a text in it) reaches over their border."""
    whole: list[Span] = []
    for start, end in sentences:
        if whole and reaches(protected, whole[-1][1], whole[-1][1]):
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((start, end))
    return whole


def within(protected: Sequence[protect.Span], start: int, end: int) -> Sequence[protect.Span]:
    """Those of the protected places (in order) that lie in text[start:end]."""
    return protected[bisect_left(protected, (start,)) : bisect_left(protected, (end,))]


def around(text: str, start: int, end: int, taken: Sequence[protect.Span]) -> Iterator[Span]:
    """What of text[start:end] has words, but for the places that are taken and the quotes and brackets at them."""
    if not taken:
        yield from [(start, end)] if any(map(str.isalpha, text[start:end])) else []
        return
    at = start
    for place in taken:
        yield from clause(text, at, place.start, touches_next=True)
        at = place.end + (text[place.end : place.end + 1] in QUOTES and place.end < end)
    yield from clause(text, at, end)


def clause(text: str, start: int, end: int, *, touches_next: bool = False) -> Iterator[Span]:
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


def in_parts(text: str, start: int, end: int, tokenizer: Tokenizer, longest: int) -> Iterator[Span]:
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


def in_halves(text: str) -> list[Span]:
    """The two halves of a text, cut at the white space nearest to the middle, without those that have no words; none if
    there is no white space."""
    spaces = [i for i, character in enumerate(text) if character.isspace()]
    if not spaces:
        return []
    place = min(spaces, key=lambda i: abs(i - len(text) / 2))
    return [*clause(text, 0, place), *clause(text, place, len(text))]
