"""The requests at work and waiting.

The engine batches together what they ask and lets them take turns, so each request is one call in a thread of its own.
Here the characters that wait are bounded, and a client that leaves ends its work.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from vidrio.serve.refusal import busy

RETRY_AFTER = 5  # seconds
Result = TypeVar("Result")
Stopped = Callable[[], bool]  # says that nobody wants the result any more


class Queue:
    """`threads` requests at a time; more wait, at most `most` characters of them all together."""

    def __init__(self, *, threads: int, most: int) -> None:
        self._most, self._pool = most, ThreadPoolExecutor(threads, thread_name_prefix="translate")
        self.waiting = 0  # characters that wait or are worked on

    @property
    def is_full(self) -> bool:
        """Whether a text of some length would be refused."""
        return self.waiting >= 0.9 * self._most

    async def run(self, texts: Sequence[str], work: Callable[[Stopped], Result]) -> Result:
        """What `work` makes of these texts."""
        characters, left = sum(map(len, texts)), threading.Event()
        if self.waiting and self.waiting + characters > self._most:  # alone, a text may be as long as it likes
            raise busy(503, "The server is busy, try again later", RETRY_AFTER)
        self.waiting += characters
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, left.is_set)
        finally:
            left.set()
            self.waiting -= characters

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
