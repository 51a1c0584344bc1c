"""SentencePiece's normaliser, which applies the rules in a model's file and replaces each space with ▁.

The rules (`precompiled_charsmap`, for instance NFKC) are a trie of UTF-8 keys in Darts' format, whose values point to
the replacements. At each position, the longest matching key is replaced.

    bytes 0–3   the size of the trie in bytes
    trie        32-bit units: the label of the byte, the offset of its successors, and whether there is a value
    the rest    replacements, each followed by a NUL
"""

import re
from collections.abc import Iterator

SPACE = "▁"
LONGEST_KEY = 32  # characters
LONGEST_REPLACEMENT = 256  # bytes; the longest replacement in NFKC has 33


class Normaliser:
    """The normalisation rules of a model. `symbols` are pieces to leave unchanged."""

    def __init__(self, charsmap: bytes, symbols: frozenset[str], *, prefix: bool, squeeze: bool) -> None:
        """With `prefix`, add a space before each text. With `squeeze`, merge adjacent spaces and strip the text."""
        self._prefix, self._squeeze = prefix, squeeze
        size = int.from_bytes(charsmap[:4], "little")
        if charsmap and (size % 4 or not 4 <= size <= len(charsmap) - 4):
            raise ValueError(f"rules of {len(charsmap):,} bytes with a trie of {size:,}")
        self._units = memoryview(charsmap)[4 : 4 + size].cast("I")
        self._replacements = charsmap[4 + size :]
        longest_first = sorted(symbols, key=len, reverse=True)
        self._symbols = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def __call__(self, text: str) -> tuple[str, list[int]]:
        """Return the normalised text, and the position in `text` of each of its characters and of its end."""
        signs: list[str] = []
        found: list[int] = []
        after_space, begun = self._squeeze, not self._prefix
        for at, rewritten in self._rewritten(text):
            if self._squeeze and not signs and rewritten == " ":
                continue
            if not begun:
                signs, found, begun = [SPACE], [at], True
            kept = rewritten.lstrip(" ") if after_space else rewritten
            signs += kept.replace(" ", SPACE)
            found += [at] * len(kept)
            after_space = self._squeeze and (kept.endswith(" ") if kept else after_space)
        end = len(text)
        while self._squeeze and signs and signs[-1] == SPACE:
            signs.pop()
            end = found.pop()
        return "".join(signs), [*found, end]

    def _rewritten(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the position and the replacement of each part of the text."""
        at = 0
        while at < len(text):
            symbol = self._symbols.match(text, at)
            replacement, length = (symbol[0], len(symbol[0])) if symbol else self._rule(text, at)
            yield at, replacement
            at += length

    def _rule(self, text: str, at: int) -> tuple[str, int]:
        """Return the replacement for the longest key that matches at a position, and the key's length. If no key
        matches, return the character itself."""
        data, value, length = text[at : at + LONGEST_KEY].encode(), 0, 0
        node = _offset(self._units[0]) if self._units else 0
        for count, byte in enumerate(data if self._units else b"", 1):
            unit = self._units[node ^ byte]
            if unit & 0x800000FF != byte:
                break
            node ^= byte ^ _offset(unit)
            if unit & 0x100:
                value, length = self._units[node] & 0x7FFFFFFF, count
        if not length:
            return text[at], 1
        end = self._replacements.find(b"\0", value, value + LONGEST_REPLACEMENT)
        if end < 0:
            raise ValueError(f"a replacement at {value:,} that does not end")
        return self._replacements[value:end].decode(), len(data[:length].decode())


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)
