"""Wait for a condition, with a deadline that even a busy machine meets."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def within_a_minute() -> None:
    """Wait until ten seconds of the current minute are left. The server counts requests per minute of this clock."""
    wait_for(lambda: time.monotonic() % 60 < 50)
