"""Measure whether time grows in proportion to a length, even on a busy machine."""

import time
from collections.abc import Callable
from typing import Any

ROUNDS = 8
SHORTEST = 0.01  # seconds: shorter times are mostly noise


def takes_at_most(times: float, act: Callable[[int], Any], small: int, large: int) -> bool:
    """Return whether the large length takes at most this many times the processor time of the small one.

    The two lengths are timed in turn, so that a slowdown of the machine affects both. The fastest time of each counts.
    A quadratic algorithm fails in every round; a linear one needs only one quiet round.
    """

    def seconds(length: int) -> float:
        began = time.process_time()
        act(length)
        return time.process_time() - began

    fastest = fastest_large = float("inf")
    for _ in range(ROUNDS):
        fastest = min(fastest, seconds(small))
        fastest_large = min(fastest_large, seconds(large))
        if fastest_large < times * max(fastest, SHORTEST):
            return True
    return False
