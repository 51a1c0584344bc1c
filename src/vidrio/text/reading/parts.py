"""What of a text a model is given to translate: whole sentences, or parts of one where it has to be cut."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary

from vidrio.text.pattern import pattern
from vidrio.text.reading import protect
from vidrio.text.reading.prepared import touches
from vidrio.text.reading.protect import Protected
from vidrio.text.reading.quotes import MARK
from vidrio.text.reading.sentences import split, trimmed
from vidrio.text.reading.signs import UNSEEN, is_unread
from vidrio.text.tokens.tokenizer import Tokenizer

Span = tuple[int, int]

CLOSING = ",;:.!?…)]}»”—–-"  # a clause may end here
QUOTES = "\"'’"  # after what is copied they close
CLOSED = pattern(rf"\A(?:[\s{re.escape(CLOSING)}]|[{QUOTES}](?=[\s{re.escape(CLOSING)}]))+")
OPENED = pattern(r"[^\w\s]+\Z")
MARKER = pattern(r"(?:(?:[-*•·‣◦▪■●→»>|+~–—]+|\#{1,6}|\[[ xX]\]|\d{1,3}[.)]|[A-Za-z]\))\s+)+")  # of a list, a heading
BRACKETS = {"(": ")", "[": "]", "{": "}"}
BRACKET = pattern(r"[()\[\]{}]")
SIGN = pattern(r"[<>=|\\^~*+#@_\u2581]|(?<=\w)&(?=\w)")  # no translation has more or fewer of these
QUOTED = pattern(r'«[^«»]*»|“[^“”]*”|(?<!\w)"[^"]+"(?!\w)')
_STOPPED = r"(?<!\w)(?:[^\W\d_]{1,2}\.\s?)+[^\W\d_]{1,2}"  # p. m, EE.UU
SHORTENED = pattern(rf"{_STOPPED}\.(?=\s[^\W\d_])")  # and a word after it
ENDS_SHORTENED = pattern(rf"{_STOPPED}\W*\Z")
WINDOW = 8  # characters for each token that may be in a part; texts have some four, so the limit is met within
# Neither are raised and lowered numbers and fractions, ligatures and letters of full width a script of their own.
NOT_LATIN = pattern(
    r"[^\W\d_\u0000-\u024f\u1e00-\u1eff\u2070-\u209c\u2150-\u2189\ufb00-\ufb06\uff01-\uff5e\U0001d400-\U0001d7ff]+"
)
SEPARATOR = pattern(r"(?<=\s)(?:[|•·→»]|[>/](?=\s+[A-ZÁÉÍÓÚÑ¿¡]))(?=\s|\Z)")
# Who speaks is told by dashes in Spanish: —¿Vienes? —preguntó Juan. A line that begins so, and the dashes in it at the
# edge of a word.
DASHES = "—―"
SPOKEN = pattern(rf"(?m)^[ \t]*[{DASHES}](?=\S)[^\n]*")
SPEECH_DASH = pattern(rf"[{DASHES}](?=\S)(?<!\w.)|(?<=\S)[{DASHES}](?!\w)")
PLAIN = re.compile("[A-Za-z]([A-Za-z ,']*[A-Za-z,'])?[.?!]?")
LONG = 32  # characters; what is protected and longer than this is taken out of a sentence that has to be cut


# Of each tokenizer that is in use: which signs beyond ASCII it would read byte by byte, as far as they came up.
UNREAD: WeakKeyDictionary[Tokenizer, dict[str, bool]] = WeakKeyDictionary()


def is_plain(text: str, longest: int) -> bool:
    """Whether a text is one sentence at first sight, with nothing that is protected: most are, and this is quick."""
    return len(text) < longest and PLAIN.fullmatch(text) is not None


def translatable(
    source: Protected, tokenizer: Tokenizer, longest: int, split: Callable[[str], Iterable[Span]] = split
) -> Iterator[Span]:
    """The sentences of a text that have words, as `split` finds them, those of more than `longest` tokens in parts.

    Symbols, numbers and addresses that stand alone are no sentences: they are their own translation. So are the signs
    between the parts of a menu or a row ("File > Open | Yes / No"), and words in a script that the vocabulary does not
    hold: all that a model could do with them is invent.
    """
    text, protected = source
    # Emoji that touch a word are signs, too; others are hidden (prepared.py). Within addresses nothing is apart.
    whole = [span for span in protected if span.kind != "emoji" or not touches(text, span)]
    strange = [span for span in apart(text, tokenizer) if not reaches(whole, span.start, span.end)]
    for first, end in undivided(split(text), protected):
        start = unmarked(text, first, end, within(protected, first, end))
        taken = within(strange, start, end)
        for a, b in around(text, start, end, taken) if taken else [(start, end)]:
            inside = within(protected, a, b)
            if not any(around(text, a, b, inside)):
                continue
            if len(text[a:b].encode()) < longest:  # a token is a byte or more, and a space is put before the first
                yield a, b
            else:
                for c, d in around(text, a, b, [span for span in inside if span.end - span.start > LONG]):
                    yield from in_parts(text, c, d, tokenizer, longest)


def apart(text: str, tokenizer: Tokenizer) -> list[protect.Span]:
    """What parts a sentence without being a sentence: signs that stand alone, the dashes of those who speak, signs that
    the vocabulary lacks, and words in letters that are not Latin and of which it does not hold half."""
    places = [protect.Span(*sign.span(), "sign") for sign in SEPARATOR.finditer(text)]
    spoken = (SPEECH_DASH.finditer(text, *line.span()) for line in SPOKEN.finditer(text))
    places += [protect.Span(*dash.span(), "sign") for dashes in spoken for dash in dashes]
    places += [protect.Span(start, end, "sign") for start, end in unread(text, tokenizer)]
    for word in NOT_LATIN.finditer(text) if not tokenizer.of_whole_words else ():
        letters = set(word[0])
        if 2 * sum(tokenizer.id(letter) is not None for letter in letters) < len(letters):
            places.append(protect.Span(*word.span(), "foreign"))
    return sorted({span.start: span for span in places}.values())


def unread(text: str, tokenizer: Tokenizer) -> Iterator[tuple[int, int]]:
    """Where signs stand that are part of no word and would be read byte by byte; neighbours together."""
    if text.isascii() or tokenizer.of_whole_words:  # which has other means
        return
    looked_up = UNREAD.setdefault(tokenizer, {})
    strange = {sign for sign in set(text) if not sign.isascii()}
    if new := strange - looked_up.keys():
        looked_up |= {sign: is_unread(sign, tokenizer) for sign in new}
    signs = "".join(re.escape(sign) for sign in sorted(strange) if looked_up[sign])
    for found in re.finditer(f"[{signs}][{signs}{UNSEEN}]*", text) if signs else ():
        yield found.span()


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


def around(text: str, start: int, end: int, taken: Iterable[protect.Span]) -> Iterator[Span]:
    """What of text[start:end] has words, but for the places that are taken and the quotes and brackets at them."""
    at = start
    for place in taken:
        yield from worded(text, at, place.start, touches=True)
        at = place.end + (text[place.end : place.end + 1] in QUOTES and place.end < end)
    yield from worded(text, at, end)


def worded(text: str, start: int, end: int, *, touches: bool = False) -> Iterator[Span]:
    """The span without white space, and without what closed the clause before it; nothing if it has no letter.

    `touches`: something copied follows, and the marks right before it go with it.
    """
    part = text[start:end]
    if not any(character.isalpha() for character in part):
        return
    first = len(part) - len(CLOSED.sub("", part))
    last = len((OPENED.sub("", part) if touches else part).rstrip())
    if (part[:first] + part[last:]).strip() and (inside := protect.spans(part)):
        first, last = min(first, inside[0].start), max(last, inside[-1].end)  # marks may belong to such a thing
    yield start + first, start + last


def unmarked(text: str, start: int, end: int, inside: Sequence[protect.Span]) -> int:
    """Where text[start:end] begins without the bullet or number of a list, which is copied."""
    mark = MARKER.match(text, start, end)
    return mark.end() if mark and not reaches(inside, mark.end(), mark.end()) else start


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


def in_halves(sentence: str) -> list[Span] | None:
    """Its two halves, cut at the white space nearest to the middle, if there is any; one without words is left out."""
    middle = len(sentence) / 2
    spaces = [i for i, character in enumerate(sentence) if character.isspace()]
    if not spaces:
        return None
    place = min(spaces, key=lambda i: abs(i - middle))
    return [*worded(sentence, 0, place), *worded(sentence, place, len(sentence))]


# --- what of a sentence to translate by itself, so that the rest can be copied; None if its translation is well -------


def without_lost(source: Protected, translation: str) -> list[Span] | None:
    """The words around everything protected that the translation has lost, or around all of it, where there is more
    than there should be, or nothing else."""
    if not source.spans:
        return None
    written, end = protect.protected(translation), len(source.text)
    if protect.added(source, written):
        return list(around(source.text, 0, end, source.spans))
    lost = protect.check(source, written)
    if not lost and has_words(source) and not has_words(written):  # what is left are the things alone
        lost = list(source.spans)
    return list(around(source.text, 0, end, lost)) if lost else None


def has_words(text: Protected) -> bool:
    """Whether anything but what is protected has letters."""
    return any(around(text.text, 0, len(text.text), text.spans))


def without_brackets(source: Protected, translation: str) -> list[Span] | None:
    """What stands within and around brackets; None also if they come in no pairs."""
    return without_signs(source, translation, BRACKET) if paired(source.text) else None


def without_signs(source: Protected, translation: str, signs: re.Pattern[str] = SIGN) -> list[Span] | None:
    """What stands between signs that no language has, but for those within what is protected."""
    here = signs.findall(source.text)
    if not here or Counter(here) == Counter(signs.findall(translation)):
        return None
    places = [protect.Span(*sign.span(), "sign") for sign in signs.finditer(source.text)]
    free = [place for place in places if not reaches(source.spans, place.start, place.end)]
    return list(around(source.text, 0, len(source.text), free)) if free else None


def without_quotes(source: Protected, translation: str) -> list[Span] | None:
    """What stands within and around quotation marks; None if the translation has as many, of whatever kind."""
    sentence = source.text
    quoted = list(QUOTED.finditer(sentence))
    if len(MARK.findall(translation)) >= 2 * len(quoted):
        return None
    marks = [at for quote in quoted for at in (quote.start(), quote.end() - 1)]
    free = [at for at in marks if not reaches(source.spans, at, at + 1)]
    between = zip([0, *(at + 1 for at in free)], [*free, len(sentence)], strict=True)
    return [part for start, end in between for part in worded(sentence, start, end)] if free else None


def without_early_end(source: Protected, translation: str) -> list[Span] | None:
    """What stands before the end of an abbreviation, and after it, where the translation ends at one and the sentence
    does not: models take its full stop for that of the sentence."""
    text = source.text
    if not ENDS_SHORTENED.search(translation) or ENDS_SHORTENED.search(text):
        return None
    ends = [abbreviation.end() for abbreviation in SHORTENED.finditer(text)]
    return [*worded(text, 0, ends[-1]), *worded(text, ends[-1], len(text))] if ends else None


def broken(source: Protected, translation: str) -> list[Span] | None:
    """The first that something was lost of which should have come through."""
    for without in (without_brackets, without_signs, without_quotes, without_early_end, without_lost):
        if (spans := without(source, translation)) is not None:
            return spans
    return None


def paired(sentence: str) -> bool:
    """Whether each bracket is closed in its turn."""
    waiting: list[str] = []
    for sign in BRACKET.findall(sentence):
        if sign in BRACKETS:
            waiting.append(BRACKETS[sign])
        elif not waiting or waiting.pop() != sign:
            return False
    return not waiting
