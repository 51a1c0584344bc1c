"""Does a translation go round in circles? A model that meets what it has hardly learned (a single word, a line in
capital letters, another language) may say the same again and again."""

from collections.abc import Sequence

LONGEST = 8  # tokens that come again
MANY = 3  # times more often than in the source


def circles(source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether the target says something again and again, one time after the other, that the source does not."""
    if len(target) - len(set(target)) < MANY:  # true of most sentences, and quick
        return False
    return rounds(target) >= rounds(source) + MANY


def rounds(ids: Sequence[int]) -> int:
    """How many times the same few tokens stand one after the other, at most."""
    most = min(1, len(ids))
    for length in range(1, min(LONGEST, len(ids) // 2) + 1):
        same = 0
        for one, other in zip(ids, ids[length:], strict=False):
            same = same + 1 if one == other else 0
            most = max(most, 1 + same // length)
    return most
