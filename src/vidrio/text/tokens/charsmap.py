"""SentencePiece's normaliser: it rewrites a text by the rules in a model's file, and writes spaces as ▁.

The rules (`precompiled_charsmap`, for instance NFKC) are a trie of UTF-8 keys in Darts' form, and the replacements that
its values point to. At each place the longest key that fits is replaced.

    bytes 0–3   size of the trie in bytes
    trie        32-bit units: label of the byte, offset of what follows, whether a value does
    the rest    replacements, each with a NUL behind it
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

SPACE = "▁"
LONGEST_KEY = 32  # characters
LONGEST_REPLACEMENT = 256  # bytes; NFKC has one of 33
REMEMBERED = 20_000  # pairs of characters
PRINTABLE = range(32, 127)  # of ASCII


class Rule(NamedTuple):
    """What the first characters of a text become."""

    replacement: str
    length: int  # of what is replaced, in characters; 0: no rule
    may_grow: bool  # whether there may be a longer key for a longer text


class Normaliser:
    """The rules of one model. `symbols` are pieces that stay as they are."""

    def __init__(self, charsmap: bytes, symbols: frozenset[str], *, prefix: bool, squeeze: bool) -> None:
        """`prefix` puts a space before the text; `squeeze` leaves one of several spaces, and none at the ends."""
        self._prefix, self._squeeze = prefix, squeeze
        size = int.from_bytes(charsmap[:4], "little")
        if charsmap and (size % 4 or not 4 <= size <= len(charsmap) - 4):
            raise ValueError(f"rules of {len(charsmap):,} bytes with a trie of {size:,}")
        self._units = memoryview(charsmap)[4 : 4 + size].cast("I")
        self._replacements = charsmap[4 + size :]
        longest_first = sorted(symbols, key=len, reverse=True)
        self._symbols = re.compile("|".join(map(re.escape, longest_first))) if symbols else None
        self._of_pair = lru_cache(REMEMBERED)(self._first_of)
        self._keeps_ascii = not (symbols or self._has_ascii_rule())

    def __call__(self, text: str) -> tuple[str, list[int]]:
        """The text as it is split, and the place in `text` of each of its characters and of its end."""
        if text and self._keeps_ascii and text.isascii() and text.isprintable() and text.split() == text.split(" "):
            places = range(len(text) + 1)  # most texts: nothing is rewritten
            return SPACE * self._prefix + text.replace(" ", SPACE), [*places[: self._prefix], *places]
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
        """What each part of the text becomes, and where it stands."""
        at = 0
        while at < len(text):
            if self._symbols and (symbol := self._symbols.match(text, at)):
                replacement, length = symbol[0], len(symbol[0])
            elif (of_one := self._of_pair(text[at : at + 2])) is not None:
                replacement, length = of_one, 1
            else:
                rule = self._rule(text[at : at + LONGEST_KEY])
                replacement, length = (rule.replacement, rule.length) if rule.length else (text[at], 1)
            yield at, replacement
            at += length

    def _first_of(self, pair: str) -> str | None:
        """What the first of two characters becomes; None if a key may hold both."""
        rule = self._rule(pair)
        if rule.length > 1 or (rule.may_grow and len(pair) > 1):
            return None
        return rule.replacement if rule.length else pair[:1]

    def _has_ascii_rule(self) -> bool:
        """Whether a key begins with two printable ASCII characters, or is one."""
        units, first = self._units, _offset(self._units[0]) if self._units else 0
        for a in PRINTABLE if units else ():
            unit, node = units[first ^ a], first ^ a ^ _offset(units[first ^ a])
            if unit & 0x800000FF == a and (unit & 0x100 or any(units[node ^ b] & 0x800000FF == b for b in PRINTABLE)):
                return True
        return False

    def _rule(self, text: str) -> Rule:
        """The longest rule for the beginning of a text."""
        data, value, length = text.encode(), 0, 0
        if not self._units:
            return Rule("", 0, may_grow=False)
        node = _offset(self._units[0])
        for count, byte in enumerate(data, 1):
            node ^= byte
            unit = self._units[node]
            if unit & 0x800000FF != byte:
                may_grow = False
                break
            node ^= _offset(unit)
            if unit & 0x100:
                value, length = self._units[node] & 0x7FFFFFFF, count
        else:
            may_grow = True
        if not length:
            return Rule("", 0, may_grow)
        end = self._replacements.find(b"\0", value, value + LONGEST_REPLACEMENT)
        if end < 0:
            raise ValueError(f"a replacement at {value:,} that does not end")
        return Rule(self._replacements[value:end].decode(), len(data[:length].decode()), may_grow)


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)
