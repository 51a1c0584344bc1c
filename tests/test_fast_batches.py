"""Batches of one length each: full ones go at once, and what is left over is shared by all who ask."""

import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from vidrio.fast import batches as module
from vidrio.fast.batches import Batches


class Doubling:
    """Doubles numbers, when it is told to work."""

    def __init__(self):
        self.batches, self._left = [], []

    def submit(self, batch):
        results = [Future() for _ in batch]
        self._left += zip(results, batch, strict=True)
        self.batches.append(batch)
        return results

    def submit_and_work(self, batch):
        results = self.submit(batch)
        self.work()
        return results

    def work(self):
        while self._left:
            result, item = self._left.pop(0)
            result.set_result(2 * item)


def test_results_come_in_order_and_a_batch_has_one_length(monkeypatch):
    monkeypatch.setattr(module, "BATCH_TOKENS", 12)
    worker, items = Doubling(), list(range(20))
    lengths = [(2 + n % 2, 4) for n in items]
    batches = Batches(2)
    assert batches.ask("kind", items, lengths, worker.submit_and_work) == [2 * n for n in items]
    assert sorted(n for batch in worker.batches for n in batch) == items
    assert all(len({lengths[n] for n in batch}) == 1 and len(batch) <= 3 for batch in worker.batches)
    assert [lengths[batch[0]] for batch in worker.batches[:3]] == [(3, 4)] * 3  # the longest first
    assert batches.ask("kind", [], [], worker.submit) == []
    assert not batches._open


@pytest.mark.parametrize("kind", ["one", "other"])
def test_what_is_left_over_shares_a_batch_with_that_of_others_of_its_kind(monkeypatch, kind):
    monkeypatch.setattr(module, "BATCH_TOKENS", 4)
    worker, batches = Doubling(), Batches(1)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(batches.ask, "one", [0, 1, 2, 3, 4], [(2,)] * 5, worker.submit)
        until(lambda: len(worker.batches) == 2)  # [0, 1] and [2, 3]; 4 waits until the worker is at the last
        second = pool.submit(batches.ask, kind, [5, 6], [(2,), (1,)], worker.submit)
        until(lambda: [4, 5] in worker.batches or 5 in (row.item for rows in batches._open.values() for row in rows))
        while not (first.done() and second.done()):
            worker.work()
    assert (first.result(), second.result()) == ([0, 2, 4, 6, 8], [10, 12])
    assert ([4, 5] in worker.batches) == (kind == "one")
    assert not batches._open


def until(reached):
    end = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.001)
