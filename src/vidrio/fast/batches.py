"""Batches of one length each, filled by all who ask at the same time.

What comes out does not depend on the batch, so anybody may share one. Without this, lengths that are rare would make
batches of a sentence or two, which cost nearly as much as full ones.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Any

BATCH_TOKENS = 2048  # of the source, or of a target that is forced and longer; what fits the processor's cache

Length = tuple[int, ...]
Submit = Callable[[list[Any]], list[Any]]  # items of one length → for each its result, to be waited for


class Row:
    """An item, and what to wait for once its batch was sent."""

    __slots__ = ("item", "waiting")

    def __init__(self, item: Any) -> None:
        self.item: Any = item
        self.waiting: Any = None


class Batches:
    """A full batch is sent at once; the rest when its results are needed, with what others have added by then."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._open: dict[tuple[Hashable, Length], list[Row]] = {}
        self._lock = threading.Lock()

    def ask(self, kind: Hashable, items: Sequence[Any], lengths: Sequence[Length], submit: Submit) -> list[Any]:
        """For each item its result. Items of one kind may share a batch, and `submit` does the same to all of them."""
        rows = [Row(item) for item in items]
        mine: dict[Length, list[Row]] = {}
        for row, length in zip(rows, lengths, strict=True):
            mine.setdefault(length, []).append(row)
        longest_first = sorted(mine, reverse=True)  # what takes longest shall not be what all wait for at the end
        sent: list[Row] = []
        for length in longest_first:
            most = max(1, BATCH_TOKENS // max(1, *length))
            with self._lock:
                group = self._open.pop((kind, length), []) + mine[length]
                while len(group) >= most:
                    sent.append(_send(group[:most], submit))
                    group = group[most:]
                if group:
                    self._open[kind, length] = group
        for row in islice(sent, max(0, len(sent) - self._workers)):  # no worker is idle before the last ones
            row.waiting.result()
        for length in longest_first:
            with self._lock:
                if mine[length][-1].waiting is None:
                    _send(self._open.pop((kind, length)), submit)
        return [row.waiting.result() for row in rows]


def _send(batch: list[Row], submit: Submit) -> Row:
    """Submit a batch, and tell its last row."""
    for row, waiting in zip(batch, submit([row.item for row in batch]), strict=True):
        row.waiting = waiting
    return batch[-1]
