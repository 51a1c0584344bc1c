"""Characters that a model should not see as they are: what its vocabulary lacks would be spelled byte by byte, and
spoil the words around it. Some are read as plainer ones, what is invisible is left out, and the rest is copied."""

import re
import unicodedata
from collections.abc import Callable

from vidrio.text.pattern import pattern
from vidrio.text.tokens.tokenizer import Tokenizer

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
# Quotation marks and dashes, read as others where the vocabulary has only those. Not ‘, which is so common that
# models without it have learned it byte by byte.
_SIMILAR = {"‛": "'", "‚": "'", "‹": "'", "›": "'", "′": "'", "„": '"', "‟": '"', "″": '"', "‒": "–", "―": "–"}
_LEARNED = "‘"
MOST = 10_000  # characters that are remembered


def plain(text: str, similar: "Each") -> str:
    """The text on one line, in usual characters and spacing; `similar` is the vocabulary's."""
    return _UNUSUAL.sub(_usual, text).translate(similar)


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


class Each(dict[int, str]):
    """A table for `str.translate` that asks a function for each character when it first comes. ASCII stays."""

    def __init__(self, find: Callable[[str], str]) -> None:
        super().__init__({code: chr(code) for code in range(128)})
        self._find = find

    def __missing__(self, code: int) -> str:
        found = self._find(chr(code))
        if len(self) < MOST:
            self[code] = found
        return found


def similar_in(tokenizer: Tokenizer) -> Each:
    """Each character, or where the vocabulary lacks it a similar one: another quotation mark, ñ for Ñ."""
    return Each(lambda sign: _similar(sign, tokenizer))


def _similar(sign: str, tokenizer: Tokenizer) -> str:
    other = _SIMILAR.get(sign, small if len(small := sign.lower()) == 1 else sign)
    return other if other != sign and not knows(sign, tokenizer) and knows(other, tokenizer) else sign


def knows(sign: str, tokenizer: Tokenizer) -> bool:
    """Whether the vocabulary holds a character, by itself or with a space before it; a capital letter may be a small
    one after a token for capitals."""
    if tokenizer.has_case_tokens and len(small := sign.lower()) == 1:
        sign = small
    return tokenizer.id(sign) is not None or tokenizer.id(f"▁{sign}") is not None


def is_copied(sign: str, tokenizer: Tokenizer) -> bool:
    """Whether a character is part of no word and would be read byte by byte."""
    of_words = sign.isalnum() or sign.isspace() or unicodedata.category(sign)[0] == "M"
    if of_words or sign in _LEARNED or _READ_OTHERWISE.match(sign):
        return False
    return not knows(sign, tokenizer) and _similar(sign, tokenizer) == sign


# Combining marks as the letter x, since they belong to the letters before them.
MARKS_AS_LETTERS = Each(
    lambda sign: "x" if unicodedata.category(sign)[0] == "M" and not _READ_OTHERWISE.match(sign) else sign
)
