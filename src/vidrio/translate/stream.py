"""Translate any number of texts in chunks, in constant memory."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Found = TypeVar("Found")

# The number of chunks in progress, so that one can be searched while others are encoded or decoded.
CHUNKS = 4
CHUNK = 8_000  # characters, which take a few seconds to translate
POLL_SECONDS = 0.2  # the maximum delay of Ctrl-C
SLOW = 0.1  # seconds; if a text takes longer to arrive, its chunk is translated at once


def in_chunks(texts: Iterator[str], size: int = CHUNK) -> Iterator[list[str]]:
    """Yield chunks of texts with about `size` characters each. A text that arrives slowly ends its chunk, and an empty
    chunk follows."""
    chunk: list[str] = []
    length = 0
    started = time.perf_counter()
    try:
        for text in texts:
            slow = time.perf_counter() - started > SLOW
            chunk.append(text)
            length += len(text) + 1
            if slow or length > size:
                yield chunk
                chunk, length = [], 0
                if slow:
                    yield []
            started = time.perf_counter()
    except Exception:  # a line cannot be read; translate the lines before it first
        yield from (chunk, [])
        raise
    if chunk:
        yield chunk


def in_order(
    chunks: Iterable[Sequence[str]], work: Callable[[Sequence[str], Callable[[], bool]], Found]
) -> Iterator[Found]:
    """Yield the result of each chunk in order, with several chunks in progress. An empty chunk means that all chunks in
    progress must be finished first. `work` is called with a chunk and a function that returns whether to stop."""
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
    """Wait for a result. The system may deliver Ctrl-C to any thread, but Python handles it only when the main thread
    runs, so the main thread must wake up regularly."""
    while not future.done():
        wait([future], POLL_SECONDS)
    return future.result()
