"""Determines, by probing the `tokenizers` library, which characters it treats as letters, marks and numbers."""

from collections.abc import Iterator
from itertools import groupby

from tokenizers import Regex, pre_tokenizers

BLOCK = 1 << 9  # code points per probe
PLANES = (0x0, 0x1, 0x2, 0x3, 0xE)  # the planes that contain assigned characters


def classes() -> dict[str, list[tuple[int, int]]]:
    """Return the inclusive ranges of code points in \\p{L}, \\p{M} and \\p{N}."""
    return {name: list(_ranges(name)) for name in "LMN"}


def _ranges(name: str) -> Iterator[tuple[int, int]]:
    others = pre_tokenizers.Split(Regex(rf"\P{{{name}}}+"), "removed")
    found: list[int] = []
    for start in (plane << 16 | block for plane in PLANES for block in range(0, 1 << 16, BLOCK)):
        codes = (code for code in range(start, start + BLOCK) if not 0xD800 <= code < 0xE000)
        found += (ord(one) for run, _ in others.pre_tokenize_str("".join(map(chr, codes))) for one in run)
    for _, run in groupby(enumerate(found), key=lambda pair: pair[1] - pair[0]):
        codes_of_run = [code for _, code in run]
        yield codes_of_run[0], codes_of_run[-1]
