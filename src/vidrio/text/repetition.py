"""Does a translation repeat itself? A model that meets what it has hardly learned (a single word, a line in capital
letters, another language) may say the same again and again."""

import re
from collections.abc import Sequence

from vidrio.text.pattern import pattern

AGAIN = pattern(r"(.{1,8}?)\1{3}", re.DOTALL)  # a few tokens four times, one after the other; a character is a token


def repeats(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether the target says something again and again that the source does not."""
    return AGAIN.search("".join(map(chr, target))) is not None and AGAIN.search("".join(map(chr, source))) is None
