"""Any number of texts in constant memory: some at a time."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Found = TypeVar("Found")

# Some chunks are worked on at the same time, so that one is searched while others are encoded and decoded.
CHUNKS = 4
CHUNK = 8_000  # characters: some seconds of work
POLL_SECONDS = 0.2  # how long Ctrl-C may have to wait
SLOW = 0.1  # seconds that a text may take to come; several are translated in less


def in_chunks(texts: Iterator[str], size: int = CHUNK) -> Iterator[list[str]]:
    """Some texts at a time, of about `size` characters together. One that took longer to come than to translate does
    not wait for others: an empty chunk follows it."""
    chunk: list[str] = []
    length = 0
    asked = time.perf_counter()
    try:
        for text in texts:
            slow = time.perf_counter() - asked > SLOW
            chunk.append(text)
            length += len(text) + 1
            if slow or length > size:
                yield chunk
                chunk, length = [], 0
                if slow:
                    yield []
            asked = time.perf_counter()
    except Exception:  # a line that cannot be read: those before it are translated
        yield from (chunk, [])
        raise
    if chunk:
        yield chunk


def in_order(
    chunks: Iterable[Sequence[str]], work: Callable[[Sequence[str], Callable[[], bool]], Found]
) -> Iterator[Found]:
    """What comes of each chunk, some of them worked on at the same time. An empty one means: no more for now, finish
    what there is. `work` is told how to know that nobody wants the rest any more."""
    left = threading.Event()
    pending: deque[Future[Found]] = deque()
    pool = ThreadPoolExecutor(CHUNKS)
    try:
        for chunk in chunks:
            if chunk:
                pending.append(pool.submit(work, chunk, left.is_set))
            while pending and (len(pending) >= CHUNKS or not chunk or pending[0].done()):
                yield waited_for(pending.popleft())
        while pending:
            yield waited_for(pending.popleft())
    finally:
        left.set()
        pool.shutdown(wait=False, cancel_futures=True)


def waited_for(future: Future[Found]) -> Found:
    """Its result. The system may hand Ctrl-C to any thread, and Python acts on it in the main one when that runs: so
    it does now and then."""
    while not future.done():
        wait([future], POLL_SECONDS)
    return future.result()
