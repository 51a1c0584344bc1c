"""Work for the engine, done side by side. All calls share one queue, and what they ask shares batches: no result
depends on its neighbours.

There are as many batches as workers, but no threads that wait for work. Who asks takes a batch that is free and works
on it until the own results are there; whatever else is in the batch then goes to a helper, a thread that ends when
nothing is left to do. Who finds no batch free waits. So a sentence alone is translated where it was asked for, and
nobody waits for all that others have asked: calls take turns.
"""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from vidrio.engine.batch import Batch, Call, Job, Request

POLL = 0.05  # seconds until somebody who waits asks again whether to stop


class Workers:
    """`count` batches, each made by `make` when it is first needed."""

    def __init__(self, make: Callable[[], Batch], count: int) -> None:
        self._make, self._count = make, count
        self._begin()
        if hasattr(os, "register_at_fork"):  # no thread comes along into the child of a fork, so it begins afresh
            reference = weakref.WeakMethod(self._begin)
            os.register_at_fork(after_in_child=lambda: (begin := reference()) and begin())

    def _begin(self) -> None:
        self._changed = threading.Condition()  # guards all of this, and says so when a call is over
        self._queue = deque[deque[Job]]()  # of each call what nobody has taken yet
        self._free = [self._make() for _ in range(self._count)]

    def run(self, requests: Sequence[Request], stopped: Callable[[], bool]) -> list[Any]:
        """The result of each request, in order; CancelledError when `stopped` says that nobody wants them any more."""
        if not requests:
            return []
        call, batch = Call(len(requests)), None
        jobs = deque(Job(call, place, request) for place, request in enumerate(requests))
        try:
            with self._changed:
                self._queue.append(jobs)
                batch = self._free.pop() if self._free else None
                self._get_help()
            while not call.is_over and not stopped():
                if batch:
                    self._turn(batch)
                else:
                    with self._changed:
                        if not call.is_over:
                            self._changed.wait(POLL)
        finally:
            with self._changed:
                if not call.is_over:
                    call.given_up = True
                    self._queue = deque(other for other in self._queue if other is not jobs)
                if batch:
                    self._hand_on(batch)
        return call.outcome()

    def _get_help(self) -> None:
        """Threads for the free batches, as long as there is more than one request for each."""
        for _ in range(min(len(self._free), sum(map(len, self._queue)) - 1)):
            self._hand_on(self._free.pop())

    def _hand_on(self, batch: Batch) -> None:
        """Leave a batch to a helper, if there is anything to do."""
        if batch.jobs or self._queue:
            threading.Thread(target=self._help, args=(batch,), daemon=True).start()
        else:
            self._free.append(batch)

    def _help(self, batch: Batch) -> None:
        while True:
            with self._changed:
                if not batch.jobs and not self._queue:
                    self._free.append(batch)
                    return
            self._turn(batch)

    def _turn(self, batch: Batch) -> None:
        """Some hundredths of a second of work."""
        with self._changed:
            batch.forget()
            share = -(-sum(map(len, self._queue)) // self._count)  # leave some for the others
            while share > 0 and batch.room > 0:
                jobs = self._queue.popleft()
                batch.take(jobs.popleft())
                share -= 1
                if jobs:
                    self._queue.append(jobs)
        try:
            batch.work(self._deliver)
        except Exception as error:  # of the engine itself: nothing in this batch can be trusted any more
            for job in batch.give_up():
                self._deliver(job, error)
        if batch.is_watched:
            with self._changed:
                self._changed.notify_all()

    def _deliver(self, job: Job, result: object) -> None:
        with self._changed:
            job.call.receive(job.place, result)
            if job.call.is_over:
                self._changed.notify_all()
