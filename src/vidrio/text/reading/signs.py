"""Signs that a vocabulary lacks would be given to the model byte by byte, and take the words around them along. What
only sets a text otherwise is read in plainer signs; what is not seen is left out; all else is copied, and the words on
its two sides are translated by themselves (parts.py) or, if it is part of a word, with that word (prepared.py).
"""

import re
import unicodedata
from collections.abc import Callable

from vidrio.text.pattern import pattern
from vidrio.text.tokens.tokenizer import Tokenizer

HYPHENS = "\u2010\u2011"
BLANKS = "\x0b\x0c\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Ligatures, letters of full width and of mathematics: compatibility forms of ASCII. Not №, ½, x², which say more, nor
# ＜ and ＃, which are copied as all signs that no translation may lose.
FOLDED = (
    "\u0132\u0133\u017f\u01c7-\u01cc\u01f1-\u01f3\ufb00-\ufb06"
    "\uff01\uff02\uff04-\uff09\uff0c-\uff1b\uff1f\uff21-\uff3b\uff3d\uff40-\uff5a"
    "\U0001d400-\U0001d454\U0001d456-\U0001d49c\U0001d49e\U0001d49f\U0001d4a2\U0001d4a5\U0001d4a6\U0001d4a9-\U0001d4ac"
    "\U0001d4ae-\U0001d4b9\U0001d4bb\U0001d4bd-\U0001d4c3\U0001d4c5-\U0001d505\U0001d507-\U0001d50a\U0001d50d-\U0001d514"
    "\U0001d516-\U0001d51c\U0001d51e-\U0001d539\U0001d53b-\U0001d53e\U0001d540-\U0001d544\U0001d546\U0001d54a-\U0001d550"
    "\U0001d552-\U0001d6a3\U0001d7ce-\U0001d7ff"
)
# Control characters, and what Unicode calls default ignorable: soft hyphens, variation selectors, tags …
UNSEEN = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Blanks of all widths; between the digits of a number they stay.
OTHER_BLANKS = pattern(rf"[{BLANKS}]+(?!\d)|(?<!\d)[{BLANKS}]+")
SPACED = r" +[,.?!](?=\s|\Z)|(?<=[^\W\d_])[,;?!](?=[^\W\d_])"  # yes , no; yes,no
SET_OTHERWISE = pattern(rf"\s*[\r\n]\s*|{OTHER_BLANKS.pattern}|{SPACED}| {{2,}}|[{HYPHENS}]|[{FOLDED}]+|[{UNSEEN}]+")
UNUSUAL_BLANKS = pattern(rf"[\r\n{BLANKS}]| [ ,.?!]")
IS_UNSEEN = pattern(f"[{UNSEEN}]")
_READ_OTHERWISE = pattern(f"[{HYPHENS}{FOLDED}{UNSEEN}]")
# Quotation marks and dashes, read as others where the vocabulary has only those. Not ‘, which is so common that the
# packaged models have learned it byte by byte.
_PLAINER = {"‛": "'", "‚": "'", "‹": "'", "›": "'", "′": "'", "„": '"', "‟": '"', "″": '"', "‒": "–", "―": "–"}
_LEARNED = "‘"
# What texts have most often; and what becomes of dólar, dólares, dollar, dollars in a translation that is of others.
DOLLAR = "$"
MONEY = {
    "€": ("euro", "euros", "euro", "euros"),
    "£": ("libra", "libras", "pound", "pounds"),
    "¥": ("yen", "yenes", "yen", "yen"),
}
MOST = 10_000  # signs whose form is kept


def plain_signs(match: re.Match[str]) -> str:
    """What a model reads for signs that are SET_OTHERWISE."""
    signs = match[0]
    if signs.isspace():
        return " "
    if signs in HYPHENS:
        return "-"
    if signs[-1] in ",.;?!":
        return f"{signs} " if len(signs) == 1 else signs[-1]
    return "" if IS_UNSEEN.match(signs) else unicodedata.normalize("NFKC", signs)


class Each(dict[int, str]):
    """What becomes of each sign, for `str.translate`; found out when it comes for the first time. ASCII stays."""

    def __init__(self, find: Callable[[str], str]) -> None:
        super().__init__({code: chr(code) for code in range(128)})
        self._find = find

    def __missing__(self, code: int) -> str:
        found = self._find(chr(code))
        if len(self) < MOST:
            self[code] = found
        return found


def plainer(tokenizer: Tokenizer) -> Each:
    """Each sign as this vocabulary has it, which may be in a plainer form, or Ñ as a small letter."""
    return Each(lambda sign: _plainer(sign, tokenizer))


def _plainer(sign: str, tokenizer: Tokenizer) -> str:
    other = _PLAINER.get(sign, small if len(small := sign.lower()) == 1 else sign)
    return other if other != sign and not knows(sign, tokenizer) and knows(other, tokenizer) else sign


def knows(sign: str, tokenizer: Tokenizer) -> bool:
    """Whether the vocabulary holds a sign, by itself or with a space before it."""
    return tokenizer.id(sign) is not None or tokenizer.id(f"▁{sign}") is not None


def less_known_money(tokenizer: Tokenizer) -> str:
    """The signs that the vocabulary lacks, and spells with more tokens than a dollar's."""
    dollar = tokenizer.count(DOLLAR)
    return "".join(sign for sign in MONEY if not knows(sign, tokenizer) and tokenizer.count(sign) > dollar)


def is_unread(sign: str, tokenizer: Tokenizer) -> bool:
    """Whether a sign is part of no word and would be read byte by byte."""
    of_words = sign.isalnum() or sign.isspace() or unicodedata.category(sign)[0] == "M"
    if of_words or sign in _LEARNED or _READ_OTHERWISE.match(sign):
        return False
    return not knows(sign, tokenizer) and _plainer(sign, tokenizer) == sign


# Combining marks belong to the letters before them: as if they were letters, too.
MARKS_AS_LETTERS = Each(
    lambda sign: "x" if unicodedata.category(sign)[0] == "M" and not IS_UNSEEN.match(sign) else sign
)
