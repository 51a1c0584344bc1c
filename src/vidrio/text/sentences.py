"""Find the parts of a text to translate: whole sentences, or pieces of sentences that are too long.

English and Spanish are split by rules, other languages by `sentencex`. The rules end a sentence at final punctuation (.
! ? …), except after an abbreviation, an initial or the number of a list item, or before a word in lower case (unless
the whole paragraph is in lower case). A line break also ends a sentence, unless the line is long and neither an empty
line nor a list item follows, as in text wrapped at a fixed width.

All functions return positions in the text, not copies. Only white space separates sentences, so a translation can
preserve it byte for byte.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial

from vidrio.text.lexicon import lexicon
from vidrio.text.mask import Masker, plain
from vidrio.text.protect import Span, gaps, reaches, spans, touches
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import Place

OWN = ("en", "es")  # the languages that are split by rules
_LONGEST_ABBREVIATION = 20  # the number of characters to inspect before a full stop
_WRAPPED = 40  # characters; a shorter line is a heading or a list item, and its line break ends a sentence

_END = r"(?P<mark>[.!?…]+|[。！？]+)(?P<close>[\"'”’»)\]*_]*)"
_OPENING = "\"'“‘«([{*_"
# The word or character after a mark, with any opening brackets or quotes. A dash without a space begins speech.
_NEXT = rf"\s+[{re.escape(_OPENING)}]*(?:[—–-](?!\s))?(?P<next>[^\W\d_]+|\S)"
_BEFORE_A_WORD = r"[\s\"“‘«(\[¿¡—–]"
_LIST_MARK = r"(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})\Z"
_NUMERAL = r"\d|[IVXLC]+|[A-Z]"
_INITIALS = r"(?:[^\W\d_]\.)*[^\W\d_]"  # J. R. R. Tolkien, 323 a. C.
_LIST_ITEM = r"[-*•·–—+#>|]|(?:\d{1,3}|[a-zA-Z])[.)]\s"


def split(text: str, language: str = "") -> list[Place]:
    """Return the sentences of a text, in order. If no language is given, the built-in rules apply."""
    code = language.lower().replace("_", "-").partition("-")[0]
    sentences = _sentences if code in ("", *OWN) else partial(_by_library, code)
    return [sentence for paragraph in _paragraphs(text) for sentence in sentences(text, paragraph)]


def _paragraphs(text: str) -> Iterator[Place]:
    """Yield the parts of a text separated by sentence-ending line breaks or, in a table, by tabs."""
    start = 0
    for space in re.finditer(r"\s+", text):
        breaks = re.search(r"[\n\r\u2028\u2029]", space[0])
        if not _wrapped(text, start, space) if breaks else "\t" in space[0]:
            yield from trimmed(text, start, space.start())
            start = space.end()
    yield from trimmed(text, start, len(text))


def _wrapped(text: str, start: int, space: re.Match[str]) -> bool:
    """Return whether a sentence continues after this line break."""
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
    """Return whether a sentence ends with this mark. `before` is the text directly before the mark, and `following` is
    the next word or character. `small` means that the paragraph is in lower case, including the starts of sentences."""
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
    """Return the words of this kind in all languages that are split by rules."""
    return frozenset[str]().union(*(lexicon(code).sentences[kind] for code in OWN))


def trimmed(text: str, start: int, end: int) -> Iterator[Place]:
    """Yield the span without surrounding white space, or nothing if it contains only white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


# --- the parts of a sentence to translate -----------------------------------------------------------------------------

CLOSING = ",;:.!?…)]}»”—–-"  # a clause may end after one of these
CLOSED = rf"\A(?:[\"'’]?[\s{re.escape(CLOSING)}])+"  # closing quotes and punctuation after a copied span
OPENED = r"\s[^\w\s]+\Z"  # opening quotes and punctuation before a copied span
MARKER = r"(?:(?:[-*•·‣◦▪■●→»>|+~–—]+|\#{1,6}|\[[ xX]\]|\d{1,3}[.)]|[A-Za-z]\))\s+)+"  # starts a list item or a heading
NOT_LATIN = r"(?<![a-zA-Z\u00c0-\u024f])[^\W\d_\u0000-\u024f\u1e00-\u1eff]+(?![a-zA-Z\u00c0-\u024f])"
SEPARATOR = r"(?<=\s)(?:[|•·→»]|[>/](?=\s+[A-ZÁÉÍÓÚÑ¿¡]))(?=\s|\Z)"
LONG = 32  # characters; if a sentence must be cut, protected spans longer than this are copied


class Splitter:
    """Finds the parts of a text to translate. Sentences with more than `longest` tokens are cut."""

    def __init__(self, tokenizer: Tokenizer, masker: Masker, longest: int) -> None:
        self._tokenizer, self._masker, self._longest = tokenizer, masker, longest

    def parts(self, text: str, sentences: Iterable[Place]) -> Iterator[Place]:
        """Yield the parts of the sentences that the model translates.

        Everything else is copied: symbols, numbers and addresses that stand alone, the separators in a menu or a table
        row ("File > Open | Yes / No"), and words in a script that the vocabulary lacks, because no model could
        translate them.
        """
        protected = spans(text)
        # Emoji that touch a word count as separators; others are hidden (mask.py). Protected spans are never split.
        whole = [span for span in protected if span.kind != "emoji" or not touches(text, span)]
        strange = [span for span in self._apart(text) if not reaches(whole, span.start, span.end)]
        for first, end in undivided(sentences, protected):
            mark = re.compile(MARKER).match(text, first, end)  # a bullet or the number of a list item is copied
            start = mark.end() if mark else first
            for a, b in around(text, start, end, within(strange, start, end)):
                inside = within(protected, a, b)
                if not any(around(text, a, b, inside)):
                    continue
                if 2 * len(text[a:b].encode()) < self._longest:  # a token has at least one byte, or marks a capital
                    yield a, b
                else:
                    for c, d in around(text, a, b, [span for span in inside if span.end - span.start > LONG]):
                        yield from in_parts(text, c, d, self._tokenizer, self._longest)

    def _apart(self, text: str) -> list[Span]:
        """Return the spans that divide a sentence and are copied: separators, rare characters that cannot be hidden,
        and words in non-Latin letters outside the vocabulary."""
        places = [Span(*sign.span(), "sign") for sign in re.finditer(SEPARATOR, text)]
        if self._tokenizer.of_whole_words:
            return places
        places += [sign for sign in self._masker.rare_signs(text) if not self._masker.can_hide(text, sign)]
        for word in re.finditer(NOT_LATIN, text) if not text.isascii() else ():
            if not self._tokenizer.spells(plain(word[0]).lower()):
                places.append(Span(*word.span(), "foreign"))
        return sorted(places)


def undivided(sentences: Iterable[Place], protected: Sequence[Span]) -> list[Place]:
    """Join neighbouring sentences if a protected span, such as a tag with text, crosses the boundary between them."""
    whole: list[Place] = []
    for start, end in sentences:
        if whole and reaches(protected, whole[-1][1], whole[-1][1]):
            start = whole.pop()[0]
        whole.append((start, end))
    return whole


def within(protected: Sequence[Span], start: int, end: int) -> Sequence[Span]:
    """Return the protected spans that start in text[start:end]. They must be sorted."""
    return protected[bisect_left(protected, (start,)) : bisect_left(protected, (end,))]


def around(text: str, start: int, end: int, taken: Sequence[Span]) -> Iterator[Place]:
    """Yield the parts of text[start:end] that contain words, excluding taken spans and adjacent punctuation."""
    if not taken:
        yield from [(start, end)] if any(map(str.isalpha, text[start:end])) else []
        return
    for part in gaps(start, end, taken):
        yield from clause(text, *part)


def clause(text: str, start: int, end: int) -> Iterator[Place]:
    """Yield the span without surrounding white space, closing punctuation at its start, and opening punctuation at its
    end. Yield nothing if the span contains no letters."""
    part = text[start:end]
    if any(map(str.isalpha, part)):
        first = len(part) - len(re.sub(CLOSED, "", part))
        yield start + first, start + len(re.sub(OPENED, "", part.rstrip()).rstrip())


def in_parts(text: str, start: int, end: int, tokenizer: Tokenizer, longest: int) -> Iterator[Place]:
    """Yield spans of at most `longest` tokens that cover text[start:end] except for white space between them. A longer
    span is cut near its middle, repeatedly if necessary."""
    part = text[start:end]
    if len(part) < 2 or len(tokenizer.encode(part)) <= longest:
        yield from trimmed(text, start, end)
        return
    middle, margin = len(part) // 2, max(1, len(part) // 4)
    places: list[int] = []
    for mark in (rf"[{re.escape(CLOSING)}]\s", r"\s", ""):  # preferably after punctuation, then at a space
        places = places or [place.end() for place in re.compile(mark).finditer(part, margin, len(part) - margin)]
    cut = start + min(places, key=lambda place: abs(place - middle))
    yield from in_parts(text, start, cut, tokenizer, longest)
    yield from in_parts(text, cut, end, tokenizer, longest)
