"""Does a translation repeat itself? A model that meets what it has hardly learned (a single word, a line in capital
letters, another language) may say the same again and again."""

import re
from collections.abc import Sequence
from itertools import groupby
from operator import eq

from vidrio.text.pattern import pattern

LONGEST = 8  # tokens that come again
MANY = 3  # times more often than in the source
AGAIN = pattern(rf"(.{{1,{LONGEST}}}?)\1{{{MANY}}}", re.DOTALL)  # each token as one character


def repeats(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether the target says something again and again, one time after the other, that the source does not."""
    if len(target) - len(set(target)) < MANY:  # true of most sentences, and quick
        return False
    if source and not AGAIN.search("".join(map(chr, target))):  # something stands once in every source
        return False
    return repetitions(target) >= repetitions(source) + MANY


def repetitions(ids: Sequence[int]) -> int:
    """How many times the same few tokens stand one after the other, at most."""
    most = min(1, len(ids))
    for length in range(1, min(LONGEST, len(ids) // 2) + 1):
        runs = [len(list(run)) for same, run in groupby(map(eq, ids, ids[length:])) if same]
        most = max(most, 1 + max(runs, default=0) // length)
    return most
