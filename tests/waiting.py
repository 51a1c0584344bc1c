"""Waiting for a condition, with a deadline that a busy machine also meets."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
