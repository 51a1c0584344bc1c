"""Does a translation go round in circles? A model that meets what it has hardly learned (a single word, a line in
capital letters, another language) may say the same again and again."""

from collections import Counter
from collections.abc import Sequence

LONGEST = 8  # tokens that come again
MANY = 3  # times more often than in the source


def circles(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether the target says something again and again, one time after the other, that the source does not."""
    if len(target) - len(set(target)) < MANY:  # true of most sentences, and quick
        return False
    if source and max(Counter(target).values()) <= MANY:  # four rounds need a token four times
        return False
    return rounds(target) >= rounds(source) + MANY


def rounds(ids: Sequence[int]) -> int:
    """How many times the same few tokens stand one after the other, at most."""
    most = min(1, len(ids))
    for length in range(1, min(LONGEST, len(ids) // 2) + 1):
        same = longest = 0
        for one, other in zip(ids, ids[length:], strict=False):
            if one != other:
                same = 0
            elif (same := same + 1) > longest:
                longest = same
        most = max(most, 1 + longest // length)
    return most
