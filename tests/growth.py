"""How fast a time grows with the length of a text, on a machine that others use too."""

import time
from collections.abc import Callable
from typing import Any


def takes_at_most(times: float, act: Callable[[int], Any], small: int, large: int) -> bool:
    """Whether the large length takes at most this many times the processor time of the small one.

    A shared machine is slow at times, so the fastest of three counts.
    """

    def seconds(length: int) -> float:
        began = time.process_time()
        act(length)
        return time.process_time() - began

    most = times * max(min(seconds(small) for _ in range(3)), 0.01)
    return any(seconds(large) < most for _ in range(3))
