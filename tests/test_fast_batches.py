"""Batches of one length each: full ones go at once, and what is left over is shared by all who ask."""

import signal
import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

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
    monkeypatch.setattr(module, "AHEAD", 2)
    worker, batches = Doubling(), Batches(1)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(batches.ask, "one", [0, 1, 2, 3, 4], [(2,)] * 5, worker.submit)
        until(lambda: len(worker.batches) == 2)  # [0, 1] and [2, 3]; 4 waits until one of them is done
        second = pool.submit(batches.ask, kind, [5, 6], [(2,), (1,)], worker.submit)
        until(lambda: [4, 5] in worker.batches or 5 in rows_waiting(batches))
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


def test_a_batch_of_short_sentences_has_so_many_rows_and_no_more(monkeypatch):
    monkeypatch.setattr(module, "BATCH_ROWS", 3)
    worker = Doubling()
    assert Batches(1).ask("kind", [1, 2, 3, 4], [(1,)] * 4, worker.submit_and_work) == [2, 4, 6, 8]
    assert worker.batches == [[1, 2, 3], [4]]


def test_ctrl_c_that_reaches_another_thread_ends_who_asks():
    """One key is enough: it counts when the batch that is waited for is done, and nothing is sent after it."""

    def submit(batch):
        sent.append(batch)
        return [pool.submit(work, item) for item in batch]

    def work(item):
        if item == 0:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        time.sleep(0.05)
        return item

    sent, batches = [], Batches(1)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        batches.ask("kind", range(100), [(100 - n,) for n in range(100)], submit)
    assert len(sent) <= module.AHEAD + 1


class Failing(Doubling):
    """Fails with what it is told to, at once or later."""

    def __init__(self, at_once):
        super().__init__()
        self.at_once = at_once

    def submit(self, batch):
        results = super().submit(batch)
        if 13 in batch:
            if self.at_once:
                raise RuntimeError("thirteen")
            self._left.clear()
            for result in results:
                result.set_exception(RuntimeError("thirteen"))
        return results


@pytest.mark.parametrize("at_once", [True, False])
def test_all_who_share_a_batch_that_fails_are_told_why(monkeypatch, at_once):
    monkeypatch.setattr(module, "AHEAD", 1)
    worker, batches = Failing(at_once), Batches(1)
    with ThreadPoolExecutor(3) as pool:
        busy = pool.submit(batches.ask, "kind", [0], [(1,)], worker.submit)
        until(lambda: worker.batches)
        others = [pool.submit(batches.ask, "kind", [n], [(2,)], worker.submit) for n in (13, 14)]
        until(lambda: len(rows_waiting(batches)) == 2)
        worker.work()
        for other in others:
            with pytest.raises(RuntimeError, match="thirteen"):
                other.result(20)
    assert busy.result() == [0]
    assert worker.batches == [[0], [13, 14]]
    assert batches.ask("kind", [1], [(2,)], worker.submit_and_work) == [2]


def test_who_wants_no_more_is_not_worked_for(monkeypatch):
    monkeypatch.setattr(module, "AHEAD", 1)
    worker, batches, stopped = Doubling(), Batches(1), threading.Event()
    with ThreadPoolExecutor(3) as pool:
        busy = pool.submit(batches.ask, "kind", [0], [(1,)], worker.submit)
        until(lambda: worker.batches)
        leaving = pool.submit(batches.ask, "kind", [1, 2], [(2,), (3,)], worker.submit, stopped.is_set)
        staying = pool.submit(batches.ask, "kind", [3], [(2,)], worker.submit)
        until(lambda: len(rows_waiting(batches)) == 3)
        stopped.set()
        while not (leaving.done() and staying.done()):
            worker.work()
    with pytest.raises(CancelledError):
        leaving.result()
    assert (busy.result(), staying.result()) == ([0], [6])
    assert worker.batches == [[0], [3]]


def rows_waiting(batches):
    return [job.items[n] for rows, _ in (*batches._full, *batches._open.values()) for job, n in rows]
