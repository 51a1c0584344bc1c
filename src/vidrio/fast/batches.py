"""Batches of one length each, filled by all who ask at the same time.

What comes out does not depend on the batch, so anybody may share one. Without this, lengths that are rare would make
batches of a sentence or two, which cost nearly as much as full ones.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError
from typing import Any

BATCH_TOKENS = 2048  # of the source, or of a target that is forced and longer; what fits the processor's cache
BATCH_ROWS = 128  # with more of them nothing is faster, but each has a row of logits for the whole vocabulary
AHEAD = 4  # batches for each worker that are sent and not done; what else waits may still be joined by others

Length = tuple[int, ...]
Kind = tuple[Hashable, Length]
Submit = Callable[[list[Any]], list[Any]]  # items of one length → for each its result, to be waited for


class Row:
    """An item, and its result or error once that is done."""

    __slots__ = ("done", "error", "item", "result")

    def __init__(self, item: Any) -> None:
        self.item, self.result, self.done = item, None, False
        self.error: BaseException | None = None

    def end(self, result: Any = None, error: BaseException | None = None) -> None:
        self.result, self.error, self.done = result, error, True


class Batch:
    """Rows that were sent together. Any number of threads may wait for them."""

    def __init__(self, rows: list[Row], submit: Submit) -> None:
        self.done, self.awaited = False, threading.Lock()  # what was sent can be waited for by one thread only
        self._rows, self._sent = rows, submit([row.item for row in rows])

    def wait(self) -> None:
        with self.awaited:
            for row, sent in zip(self._rows, self._sent, strict=True):
                try:
                    row.end(sent.result())
                except Exception as error:
                    row.end(error=error)
            self._rows, self._sent, self.done = [], [], True  # no circle of references, which would wait for gc


class Batches:
    """What waits is sent when a worker could begin with it: full batches first, else what has waited for longest, with
    what others have added by then. Nobody gets a result later for that."""

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
        rows = [Row(item) for item in items]
        mine: dict[Length, list[Row]] = {}
        for row, length in zip(rows, lengths, strict=True):
            mine.setdefault(length, []).append(row)
        try:
            with self._lock:
                # What takes longest first: it shall not be what all wait for at the end.
                for length in sorted(mine, reverse=True):
                    self._add((kind, length), mine[length], submit)
            for row in rows:
                while not row.done:
                    if stopped():
                        raise CancelledError
                    self._advance()
        except BaseException:
            for row in rows:
                row.end()  # so that it is not sent any more
            raise
        for row in rows:
            if row.error is not None:
                raise row.error
        return [row.result for row in rows]

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
        wanted = [row for row in rows if not row.done]
        try:
            if wanted:
                self._sent.append(Batch(wanted, submit))
        except BaseException as error:
            for row in wanted:
                row.end(error=error)  # each who waits for one of them shall know
            if not isinstance(error, Exception):
                raise
