"""Whether time grows in proportion to a length, measured so that a busy machine doesn't fail a test."""

import time
from collections.abc import Callable
from typing import Any

ROUNDS = 8
SHORTEST = 0.01  # seconds: below this the clock's own noise counts


def takes_at_most(times: float, act: Callable[[int], Any], small: int, large: int) -> bool:
    """Whether the large length takes at most this many times the processor time of the small one.

    Both lengths are timed in turn, so that a machine that slows down slows both, and the fastest of each counts.
    A quadratic algorithm fails every round; a linear one needs a single quiet one.
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
