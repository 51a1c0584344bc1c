"""A text without case, punctuation and spacing, to find duplicates."""

import unicodedata
from collections.abc import Callable


class Table(dict[int, str]):
    """What each character becomes, for `str.translate`; computed on first use."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> str:
        self[code] = self._rule(chr(code))
        return self[code]


# Punctuation, symbols and invisible characters become a space.
_FOLDING = Table(lambda sign: " " if unicodedata.category(sign)[0] in "PSCZ" else sign)


def fold(text: str) -> str:
    """Lower-case words without punctuation, separated by one space. A text without words is unchanged."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.casefold().translate(_FOLDING).split()) or text.strip()
