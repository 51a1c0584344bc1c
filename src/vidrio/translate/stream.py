"""Any number of texts in constant memory: some at a time, and the latest sentences remembered."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from itertools import islice
from typing import Generic, TypeVar

Found = TypeVar("Found")  # what a sentence became

# A stream works on many chunks at the same time: while one is searched the next is encoded and the one before is
# decoded, and they fill batches together. A batch has sentences of one length only, so the more there are to choose
# from, the fuller it is; and what has to be read again in one chunk joins what the next ones read for the first time.
# A chunk is as large as can be done in this time beside the others: who waits wants to see something. What comes out
# does not depend on it.
CHUNKS, SECONDS = 16, 12
# Memory is bounded by what is at work, CHUNKS times MOST: some 9,000 short sentences or 2,000 of news. Fewer are
# remembered, so that a file of any length needs no more than one that is at work as a whole.
FEWEST, FIRST, MOST = 500, 4_000, 18_750  # characters in a chunk
AWAKE = 0.2  # seconds after which who waits looks up
SLOW = 0.1  # seconds that a text may take to come; several are translated in less
REMEMBERED = 2_000  # sentences whose translation a stream keeps, in case they come again


def in_chunks(texts: Iterator[str], size: Callable[[], int]) -> Iterator[list[str]]:
    """Some texts at a time, of about `size()` characters together. One that took longer to come than to translate does
    not wait for others: an empty chunk follows it."""
    chunk: list[str] = []
    length = most = 0
    asked = time.perf_counter()
    try:
        for text in texts:
            slow = time.perf_counter() - asked > SLOW
            most = most if chunk else size()
            chunk.append(text)
            length += len(text) + 1
            if slow or length > most:
                yield chunk
                chunk, length = [], 0
                if slow:
                    yield []
            asked = time.perf_counter()
    except Exception:  # a line that cannot be read: those before it are translated
        yield chunk
        raise
    if chunk:
        yield chunk


def size_at(characters_per_second: float) -> int:
    """How many characters are a chunk."""
    return round(min(max(SECONDS * characters_per_second, FEWEST), MOST))


def answered(chunks: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """The same chunks. Where they end in an error, all of them are finished before it comes."""
    try:
        yield from chunks
    except Exception:
        yield []
        raise


def waited_for(future: Future[Found]) -> Found:
    """Its result. The system may hand Ctrl-C to any thread, and Python acts on it in the main one when that runs: so
    it does now and then."""
    while not future.done():
        wait([future], AWAKE)
    return future.result()


class Memory(Generic[Found]):
    """The latest sentences with their translations, or whoever is at work on them. Safe to use from many threads."""

    def __init__(self, size: int) -> None:
        self.left = threading.Event()  # nobody wants what is not found yet
        self.turn = threading.Lock()  # one thread at a time prepares its chunk, so that the first is searched soon
        self._size, self._lock = size, threading.Lock()
        self._kept: dict[str, Future[dict[str, Found]]] = {}  # with each sentence all that are found together

    def share(self, sentences: Iterable[str], find: Callable[[list[str]], list[Found]]) -> dict[str, Found]:
        """The translation of each sentence. Those that nobody has asked for are found now."""
        answer: Future[dict[str, Found]] = Future()
        with self._lock:
            known = {sentence: self._kept[sentence] for sentence in sentences if sentence in self._kept}
            new = [sentence for sentence in sentences if sentence not in known]
            self._kept |= dict.fromkeys(new, answer)
            for sentence in list(islice(self._kept, max(0, len(self._kept) - self._size))):  # the oldest
                del self._kept[sentence]
        try:
            answer.set_result(dict(zip(new, find(new), strict=True)))
        except BaseException as error:
            answer.set_exception(error)
            raise
        return answer.result() | {sentence: there.result()[sentence] for sentence, there in known.items()}
