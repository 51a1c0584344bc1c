"""Schedule the work of all clients.

Each request's work is a generator that runs in short pieces. The request with the least work done so far runs next, so
that a sentence does not wait for a book. The number of requests in the queue and their total length are limited. If a
client disconnects, its waiting piece is dropped and its running piece is stopped.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from vidrio.serve.requests import Refusal, busy
from vidrio.translate.translator import cores

MAX_REQUESTS = 256
PIECE = 400  # characters per turn: four to eight sentences, which the engine translates as one batch
SHORT = 1_000  # characters; requests up to this length are short
NICE = 10  # of the threads for long requests, runs and what-ifs, as in the command `nice`
RETRY_AFTER = 5  # seconds
Result = TypeVar("Result")
Stopped = Callable[[], bool]  # returns whether the result is no longer needed
Steps = Generator[int, None, Result]  # yields each step's cost, as the number of characters translated in that time


def overloaded() -> Refusal:
    return busy(503, "The server is busy, try again later", RETRY_AFTER)


def in_one_step(result: Callable[[], Result]) -> Steps[Result]:
    yield from ()
    return result()


def _piece(steps: Steps[Result]) -> tuple[int, list[Result]]:
    """Run steps for one turn. Return the amount of work done, and a list with the result once the work is finished."""
    done = 0
    try:
        while done < PIECE:
            done += next(steps)
    except StopIteration as end:
        return done, [end.value]
    return done, []


def _lower_priority(nice: int) -> None:
    """Let other threads run first. Only Linux sets the priority of a single thread."""
    if nice and sys.platform == "linux":
        with suppress(OSError):  # a sandbox may forbid the call, and the pool would not survive an error
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


class Lane:
    """A thread pool, and the requests that wait for a thread. Threads with a high `nice` value yield to other lanes."""

    def __init__(self, threads: int, nice: int = 0) -> None:
        self._pool = ThreadPoolExecutor(threads, "serve", initializer=_lower_priority, initargs=(nice,))
        self._free = threads
        self._waiting: dict[asyncio.Future[None], int] = {}  # the work done so far for each request

    async def run(self, work: Callable[[Stopped], Steps[Result]], size: int = 0) -> Result:
        """Run a request's work and return the result. Of the requests that wait to start, the smallest runs first."""
        loop, left, done = asyncio.get_running_loop(), threading.Event(), size

        def over(_: Any) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(self._next)

        steps = work(left.is_set)
        try:
            while True:
                await self._turn(done)
                piece = self._pool.submit(_piece, steps)
                piece.add_done_callback(over)  # called when the thread is free, even if the client has disconnected
                more, results = await asyncio.wrap_future(piece)
                done += more
                if results:
                    return results[0]
        finally:
            left.set()

    async def _turn(self, done: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = done
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the turn had already begun
                self._next()
            raise
        finally:
            self._waiting.pop(turn, None)

    def _next(self) -> None:
        waiting = [turn for turn in self._waiting if not turn.done()]
        if waiting:
            min(waiting, key=self._waiting.__getitem__).set_result(None)
        else:
            self._free += 1


class Queue:
    """Admits requests. Short requests, long requests, the page's runs and its what-ifs each have their own threads,
    which the operating system schedules."""

    def __init__(self, *, threads: int, most: int) -> None:
        threads = threads or cores()
        self.short, self.long = Lane(threads), Lane(max(1, threads - 1), NICE)  # leave a core for short requests
        # One thread each: a run takes up to 100 MB, and NumPy is not faster with two threads.
        self.runs, self.glass = Lane(1, NICE), Lane(1, NICE)
        self._most = most
        self.requests = 0
        self.waiting = 0  # characters in admitted requests that have not been answered

    @property
    def is_full(self) -> bool:
        """Whether the queue is full, or nearly full."""
        return self.waiting >= 0.9 * self._most or self.requests >= MAX_REQUESTS

    @contextmanager
    def admitted(self, characters: int) -> Iterator[Lane]:
        """Admit a request and yield its lane, or raise Refusal. An empty queue admits a request of any length."""
        if self.requests >= MAX_REQUESTS or (self.requests and self.waiting + characters > self._most):
            raise overloaded()
        self.requests += 1
        self.waiting += characters
        try:
            yield self.short if characters <= SHORT else self.long
        finally:
            self.requests -= 1
            self.waiting -= characters
