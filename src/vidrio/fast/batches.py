"""Batches of one length each, filled by all who ask at the same time.

What comes out does not depend on the batch, so anybody may share one. Without this, lengths that are rare would make
batches of a sentence or two, which cost nearly as much as full ones.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

BATCH_TOKENS = 2048  # of the source, or of a target that is forced and longer; what fits the processor's cache

Length = tuple[int, ...]
Submit = Callable[[list[Any]], list[Any]]  # items of one length → for each its result, to be waited for


class Row:
    """An item, the batch that it was sent with, and its result once that is done."""

    __slots__ = ("batch", "item", "result")

    def __init__(self, item: Any) -> None:
        self.item: Any = item
        self.batch: Batch | None = None
        self.result: Any = None


class Batch:
    """Rows that were sent together. Any number of threads may wait for them."""

    def __init__(self, rows: list[Row], submit: Submit) -> None:
        self.done = False
        self._rows, self._sent, self._lock = rows, submit([row.item for row in rows]), threading.Lock()
        for row in rows:
            row.batch = self

    def wait(self) -> None:
        with self._lock:  # what was sent can be waited for by one thread only
            if not self.done:
                for row, sent in zip(self._rows, self._sent, strict=True):
                    row.result = sent.result()
                self._rows, self._sent, self.done = [], [], True  # no circle of references, which would wait for gc


class Batches:
    """A full batch is sent at once; what is left over when the workers could begin with it, with what others have
    added by then. Nobody gets a result later for that."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._open: dict[tuple[Hashable, Length], list[Row]] = {}
        self._sent: deque[Batch] = deque()
        self._lock = threading.Lock()

    def ask(self, kind: Hashable, items: Sequence[Any], lengths: Sequence[Length], submit: Submit) -> list[Any]:
        """For each item its result. Items of one kind may share a batch, and `submit` does the same to all of them."""
        rows = [Row(item) for item in items]
        mine: dict[Length, list[Row]] = {}
        for row, length in zip(rows, lengths, strict=True):
            mine.setdefault(length, []).append(row)
        longest_first = sorted(mine, reverse=True)  # what takes longest shall not be what all wait for at the end
        for length in longest_first:
            most = max(1, BATCH_TOKENS // max(1, *length))
            with self._lock:
                group = self._open.pop((kind, length), []) + mine[length]
                while len(group) >= most:
                    self._send(group[:most], submit)
                    group = group[most:]
                if group:
                    self._open[kind, length] = group
        with self._lock:
            ahead = list(self._sent)
        for batch in ahead[: max(0, len(ahead) - self._workers)]:
            batch.wait()
        for length in longest_first:
            with self._lock:
                if mine[length][-1].batch is None:
                    self._send(self._open.pop((kind, length)), submit)
        for row in rows:
            if row.batch and not row.batch.done:
                row.batch.wait()
        return [row.result for row in rows]

    def _send(self, rows: list[Row], submit: Submit) -> None:
        while self._sent and self._sent[0].done:
            self._sent.popleft()
        self._sent.append(Batch(rows, submit))
