"""What of a text is left when case, punctuation and spacing do not count; to find copies, never to translate."""

import unicodedata
from collections.abc import Callable


class Table(dict[int, str]):
    """What each character becomes, for `str.translate`: asked of a rule when it is first met."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> str:
        self[code] = self._rule(chr(code))
        return self[code]


# Punctuation, symbols and invisible characters become a space.
_FOLDING = Table(lambda sign: " " if unicodedata.category(sign)[0] in "PSCZ" else sign)


def fold(text: str) -> str:
    """Lower-case words without punctuation, one space between; a text without any word stays as it is."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.casefold().translate(_FOLDING).split()) or text.strip()
