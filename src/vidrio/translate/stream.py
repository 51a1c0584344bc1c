"""Any number of texts in constant memory, translated in chunks."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Found = TypeVar("Found")

# Several chunks are in progress at the same time, so that one is searched while others are encoded and decoded.
CHUNKS = 4
CHUNK = 8_000  # characters: some seconds of work
POLL_SECONDS = 0.2  # maximum delay of Ctrl-C
SLOW = 0.1  # seconds to wait for a text; several are translated in less


def in_chunks(texts: Iterator[str], size: int = CHUNK) -> Iterator[list[str]]:
    """Chunks of texts, of about `size` characters each. A text that took longer to arrive than to translate does not
    wait for others: an empty chunk follows it."""
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
    except Exception:  # a line that cannot be read; those before it are translated first
        yield from (chunk, [])
        raise
    if chunk:
        yield chunk


def in_order(
    chunks: Iterable[Sequence[str]], work: Callable[[Sequence[str], Callable[[], bool]], Found]
) -> Iterator[Found]:
    """The result of each chunk, with several in progress. An empty chunk means: finish what is in progress. `work`
    receives a function that tells whether the results are still wanted."""
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
    """Wait for a result. The system may deliver Ctrl-C to any thread, and Python handles it when the main thread runs,
    so it must run from time to time."""
    while not future.done():
        wait([future], POLL_SECONDS)
    return future.result()
