"""Cache the recent results of a function."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Generic, TypeVar

from vidrio.engine.engine import Stopped

K = TypeVar("K")
V = TypeVar("V")
POLL = 0.02  # seconds between checks of whether a waiting caller has left


class Memo(Generic[K, V]):
    """Caches the latest results of `make`, up to a total size of `most`. A single larger result is kept until another
    result is computed.

    Simultaneous calls with the same key share one computation. Calls with different keys do not wait for each other.
    """

    def __init__(
        self,
        make: Callable[[K, Stopped], V],
        most: float,
        size: Callable[[V], float] = lambda value: 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._most, self._size, self._clock = make, most, size, clock
        self._lock = threading.Lock()  # never held during a computation
        self._making: dict[K, threading.Event] = {}
        self._kept: dict[K, tuple[V, float, float]] = {}  # value, size and time of the last request, oldest first

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def __call__(self, key: K, stopped: Stopped = None) -> V:
        """Return the result for a key. Raise CancelledError if `stopped` returns True."""
        while True:
            with self._lock:
                if key in self._kept:
                    value, size, _ = self._kept.pop(key)
                    self._kept[key] = value, size, self._clock()
                    return value
                made = self._making.get(key)
                if made is None:
                    made = self._making[key] = threading.Event()
                    break
            while not made.wait(POLL):
                if stopped and stopped():
                    raise CancelledError
        try:
            self._drop_oldest(0)  # before computing, so that cached results never take more than `most`
            value = self._make(key, stopped)
            with self._lock:
                self._kept[key] = value, self._size(value), self._clock()
            self._drop_oldest(1)
            return value
        finally:
            with self._lock:
                del self._making[key]
            made.set()

    def _drop_oldest(self, fewest: int) -> None:
        """Drop the oldest results until the rest fit within the limit, but keep at least `fewest`."""
        with self._lock:
            while len(self._kept) > fewest and sum(size for _, size, _ in self._kept.values()) > self._most:
                del self._kept[next(iter(self._kept))]

    def forget(self, seconds: float) -> None:
        """Drop results that were last requested at least `seconds` ago."""
        with self._lock:
            now = self._clock()
            for key in [key for key, (_, _, last_used) in self._kept.items() if now - last_used >= seconds]:
                del self._kept[key]
