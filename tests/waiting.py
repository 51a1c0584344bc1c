"""Wait for a condition, with a deadline that even a busy machine meets."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
