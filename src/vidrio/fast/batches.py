"""Batches of one length each, filled by all who ask at the same time.

What comes out does not depend on the batch, so anybody may share one. Without this, lengths that are rare would make
batches of a sentence or two, which cost nearly as much as full ones.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

# Of the source, or of a target that is forced and longer: what fits the processor's cache. And hypotheses: with a beam
# of 128, a batch of 128 rows takes minutes and gigabytes, and nobody can stop it.
BATCH_TOKENS = 1024
BATCH_ROWS = 128  # with more of them nothing is faster, but each has a row of logits for the whole vocabulary
AHEAD = 2  # batches for each worker that are sent and not done; what else waits may still be joined by others

Length = tuple[int, ...]  # of the source; of the target, or how many hypotheses are kept of it
Kind = tuple[Hashable, Length]
Submit = Callable[[list[Any]], list[Any]]  # items of one length → for each its result, to be waited for


class Failure(NamedTuple):
    """What stands in the place of a result."""

    error: BaseException


PENDING = object()  # what stands there before


class Job(NamedTuple):
    """The items that somebody asks about, and their results. A row of a batch is one of them: (job, number)."""

    items: Sequence[Any]
    results: list[Any]

    def left(self) -> None:
        """Nobody wants the rest any more, so it is not sent."""
        self.results[:] = [None if result is PENDING else result for result in self.results]


Row = tuple[Job, int]


class Batch:
    """Rows that were sent together. Any number of threads may wait for them."""

    def __init__(self, rows: list[Row], submit: Submit) -> None:
        self.done, self.awaited = False, threading.Lock()  # what was sent can be waited for by one thread only
        self._rows, self._sent = rows, submit([job.items[number] for job, number in rows])

    def wait(self) -> None:
        with self.awaited:
            for (job, number), sent in zip(self._rows, self._sent, strict=True):
                try:
                    job.results[number] = sent.result()
                except Exception as error:
                    job.results[number] = Failure(error)
            self._rows, self._sent, self.done = [], [], True  # no cycle of references, which would wait for gc


class Batches:
    """What waits is sent when a worker could begin with it: full batches first, else what has waited for longest, with
    what others have added by then. No result comes later for that."""

    def __init__(self, workers: int) -> None:
        self._most = AHEAD * workers
        self._full: deque[tuple[list[Row], Submit]] = deque()
        self._open: dict[Kind, tuple[list[Row], Submit]] = {}  # less than a batch of each kind
        self._sent: deque[Batch] = deque()
        self._lock = threading.Lock()  # of these three

    def ask(
        self,
        kind: Hashable,
        items: Sequence[Any],
        lengths: Sequence[Length],
        submit: Submit,
        stopped: Callable[[], bool] = lambda: False,
    ) -> list[Any]:
        """For each item its result. Items of one kind may share a batch, and `submit` does the same to all of them.
        `stopped` tells when the results are not wanted any more."""
        job = Job(items, [PENDING] * len(items))
        alike: dict[Length, list[Row]] = {}
        for number, length in enumerate(lengths):
            alike.setdefault(length, []).append((job, number))
        try:
            with self._lock:
                # What takes longest first: it shall not be what all wait for at the end.
                for length in sorted(alike, reverse=True):
                    self._add((kind, length), alike[length], submit)
            for number in range(len(items)):
                while job.results[number] is PENDING:
                    if stopped():
                        raise CancelledError
                    self._advance()
        except BaseException:
            job.left()
            raise
        for result in job.results:
            if type(result) is Failure:
                raise result.error
        return job.results

    def _add(self, kind: Kind, rows: list[Row], submit: Submit) -> None:
        waiting, _ = self._open.setdefault(kind, ([], submit))  # which keeps its turn if it is there
        waiting += rows
        most = max(1, min(BATCH_ROWS, BATCH_TOKENS // max(1, *kind[1])))
        while len(waiting) >= most:
            self._full.append((waiting[:most], submit))
            del waiting[:most]
        if not waiting:
            del self._open[kind]

    def _advance(self) -> None:
        """Send what can be begun with soon, and wait for the first batch that nobody waits for."""
        with self._lock:
            while self._sent and self._sent[0].done:
                self._sent.popleft()
            while (self._full or self._open) and sum(not batch.done for batch in self._sent) < self._most:
                self._send(*(self._full.popleft() if self._full else self._open.pop(next(iter(self._open)))))
            begun = [batch for batch in self._sent if not batch.done]
            free = [batch for batch in begun if not batch.awaited.locked()]
        for batch in (free or begun)[:1]:
            batch.wait()

    def _send(self, rows: list[Row], submit: Submit) -> None:
        wanted = [(job, number) for job, number in rows if job.results[number] is PENDING]
        try:
            if wanted:
                self._sent.append(Batch(wanted, submit))
        except BaseException as error:
            for job, number in wanted:
                job.results[number] = Failure(error)  # each who waits for one of them shall know
            if not isinstance(error, Exception):
                raise
