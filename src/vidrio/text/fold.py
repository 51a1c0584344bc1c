"""What of a text is left when case, punctuation and spacing do not count; to find copies, never to translate."""

import unicodedata


class _Folding(dict[int, str | int]):
    """For `str.translate`: punctuation, symbols and invisible characters become a space. Filled as needed."""

    def __missing__(self, code: int) -> str | int:
        kind = unicodedata.category(chr(code))[0]
        self[code] = " " if kind in "PSCZ" else code
        return self[code]


_FOLDING = _Folding()


def fold(text: str) -> str:
    """Lower-case words without punctuation, one space between; a text without any word stays as it is."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.casefold().translate(_FOLDING).split()) or text.strip()
