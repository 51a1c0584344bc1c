"""Test the cache of results: each result is computed once, delays no other result, and is dropped after a while."""

import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from vidrio.engine.engine import Stopped
from vidrio.errors import InputError
from vidrio.serve.memo import Memo


def test_a_slow_one_holds_up_nobody_who_asks_for_another() -> None:
    go = threading.Event()
    memo = Memo[str, str](lambda key, stopped: (key == "fast" or go.wait(60), key)[1], most=2)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(memo, "slow")
        assert threads.submit(memo, "fast").result(60) == "fast"
        assert not slow.done()
        go.set()
        assert slow.result(60) == "slow"


def test_what_several_ask_for_at_the_same_time_is_computed_once() -> None:
    made, go = list[int](), threading.Event()
    memo = Memo[int, int](lambda key, stopped: (made.append(key), go.wait(60), key)[2], most=1)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(memo, 7) for _ in range(8)]
        go.set()
        assert [one.result(60) for one in asked] == [7] * 8
    assert made == [7]
    assert 7 in memo


def test_who_leaves_takes_nobody_else_s_result_along() -> None:
    begun, left = threading.Event(), threading.Event()

    def make(key: int, stopped: Stopped) -> int:
        begun.set()
        while stopped and not stopped():
            left.wait(0.01)
        if stopped:
            raise CancelledError
        return key

    memo = Memo(make, most=1)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(memo, 7, left.is_set)
        assert begun.wait(60)
        waits, stays = threads.submit(memo, 7, lambda: True), threads.submit(memo, 7)
        with pytest.raises(CancelledError):
            waits.result(60)
        left.set()
        with pytest.raises(CancelledError):
            first.result(60)
        assert stays.result(60) == 7


def test_an_error_is_not_kept() -> None:
    errors = [InputError("no memory for it"), None]

    def make(key: int, stopped: Stopped) -> int:
        if error := errors.pop(0):
            raise error
        return key

    memo = Memo(make, most=1)
    with pytest.raises(InputError, match="no memory"):
        memo(7)
    assert memo(7) == 7


def test_the_last_ones_are_kept_as_far_as_they_fit_and_for_a_while() -> None:
    now = 0.0
    memo = Memo[int, int](lambda key, stopped: key, most=100, size=float, clock=lambda: now)
    for key in (40, 50, 10):
        memo(key)
    memo(40)  # asked for again
    memo(20)
    assert [key for key in (40, 50, 10, 20) if key in memo] == [40, 10, 20]
    memo(500)
    assert [key for key in (40, 10, 20, 500) if key in memo] == [500], "the last one is kept, however large it is"
    now = 59
    memo.forget(60)
    assert 500 in memo
    now = 60
    memo.forget(60)
    assert 500 not in memo


def test_a_large_result_is_dropped_before_the_next_one_is_computed() -> None:
    """Otherwise, the server would hold both at the same time."""
    beside = list[bool]()
    memo = Memo[int, int](lambda key, stopped: (beside.append(500 in memo), key)[1], most=100, size=float)
    for key in (500, 10):
        memo(key)
    assert beside == [False, False]
