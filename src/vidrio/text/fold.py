"""Remove case, punctuation and spacing from a text, for duplicate detection."""

import unicodedata
from collections.abc import Callable


class Table(dict[int, str]):
    """Maps characters to replacements, for `str.translate`. Each replacement is computed on first use."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> str:
        self[code] = self._rule(chr(code))
        return self[code]


# Punctuation, symbols and invisible characters become a space.
_FOLDING = Table(lambda sign: " " if unicodedata.category(sign)[0] in "PSCZ" else sign)


def fold(text: str) -> str:
    """Return the words in lower case, without punctuation and separated by spaces. A text without words is stripped."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.casefold().translate(_FOLDING).split()) or text.strip()
