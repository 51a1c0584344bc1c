"""Work for the engine, done side by side. All calls share one queue, and what they ask shares batches: no result
depends on its neighbours.

There are as many batches as workers, but no threads that wait for work. Who asks takes a batch that is free and works
on it until the own results are there; whatever else is in the batch then goes to a helper, a thread that ends when
nothing is left to do. Who finds no batch free waits. So a sentence alone is translated where it was asked for, and
nobody waits for all that others have asked: calls take turns.
"""

import ctypes
import math
import os
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from vidrio.engine.library import Library
from vidrio.errors import ConfigError, VidrioError
from vidrio.hypothesis import Hypothesis, Options, Sampling

ROWS = 32  # hypotheses that go through the decoder together
TURN_SECONDS = 0.015  # seconds that a thread works before it looks up
TICK = 0.0001  # seconds: a browser's clock is no finer, and may say that nothing has passed
POLL_SECONDS = 0.05  # seconds until somebody who waits asks again whether to stop
LARGEST = 2**31 - 1

Stopped = Callable[[], bool] | None  # says that nobody wants the results any more


# --- a search, in a library's memory ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A model in a library's memory."""

    library: Library
    address: int

    def __del__(self) -> None:
        self.library.free("model_free", self.address)


class Sentence(NamedTuple):
    """What is searched for."""

    source: Sequence[int]
    options: Options


class Search:
    """A search of a model."""

    def __init__(self, model: Model) -> None:
        self.model, self.functions = model, model.library.functions
        self.address: int = self.functions.search_new(model.address, ROWS)

    def __del__(self) -> None:
        self.model.library.free("search_free", self.address)

    def add(self, sentence: Sentence) -> int:
        """Begin with a sentence → where it lies in the library's memory."""
        o, source = sentence.options, int_array(sentence.source)
        prefix, suppressed = int_array(o.prefix), int_array(o.suppressed)
        given = (source, len(source), prefix, len(prefix), suppressed, len(suppressed))
        address: int = self.functions.search_add(self.address, as_struct(o), *given)
        if not address:
            raise ConfigError(
                "this search cannot be done",
                found=f"{len(source)} tokens to read, at most {o.max_length} to write, a prefix of {len(prefix)}",
                do="change the options, or shorten the text",
            )
        return address

    def run(self, steps: int) -> None:
        """Do some steps of all sentences."""
        self.functions.search_run(self.address, steps)

    def written(self, address: int, sentence: Sentence) -> list[int]:
        """The tokens of a sentence's leading hypothesis so far."""
        ids = int_array([0] * sentence.options.max_length)
        written: list[int] = ids[: max(0, self.functions.sentence_written(address, ids, len(ids)))]
        return written

    def next(self) -> int:
        """A sentence that is done and not dropped yet; 0: there is none."""
        return self.functions.search_next(self.address) or 0

    def read(self, address: int, sentence: Sentence) -> list[Hypothesis]:
        """What was found for a sentence, best first."""
        hypotheses, sources = [], len(sentence.source)
        for nth in range(self.functions.sentence_count(address)):
            length = self.functions.sentence_length(address, nth)
            ids, log_probs, attention = int_array([0] * length), float_array(length), float_array(length * sources)
            total = (ctypes.c_double * 2)()
            ended = bool(self.functions.sentence_read(address, nth, ids, log_probs, attention, total))
            tokens = ids[: length - ended]
            if not ended and length < sentence.options.max_length:
                raise ConfigError(
                    "no token is left to choose from",
                    found="all tokens are forbidden at some step, or the model computes NaN",
                    do="allow more: fewer suppressed tokens, a larger or no no_repeat_ngram",
                )
            rows = matrix(attention, (len(tokens), sources)) if tokens and sources else None
            hypotheses.append(Hypothesis(tuple(tokens), total[0], total[1], tuple(log_probs), ended, rows))
        return hypotheses

    def drop(self, address: int) -> None:
        """Forget a sentence, done or not."""
        self.functions.search_drop(self.address, address)


def as_struct(o: Options) -> bytes:
    """`Options` of engine.h."""
    s = o.sampling or Sampling()
    numbers = (o.beam, o.n_best, o.min_length, o.max_length, min(o.no_repeat_ngram, LARGEST), min(s.top_k, LARGEST))
    return struct.pack("<7iI3f", *numbers, o.sampling is not None, s.seed, o.length_penalty, s.temperature, s.top_p)


def int_array(numbers: Sequence[int]) -> Any:
    """An argument: int32_t."""
    return (ctypes.c_int32 * len(numbers))(*numbers)


def float_array(count: int) -> Any:
    """Room for so many float32."""
    return (ctypes.c_float * count)()


def matrix(values: Any, shape: tuple[int, ...]) -> "memoryview[float]":
    """The first numbers as a matrix, without a copy; NumPy reads it as an array."""
    raw = memoryview(values).cast("B")[: 4 * math.prod(shape)]
    return raw.cast("f", shape) if len(raw) else raw.cast("f")


# --- who waits for what ----------------------------------------------------------------------------------------------

Request = Sentence | Callable[[Model], Any]


class Call:
    """Somebody who waits for the results of some requests."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.waiting = deque(Job(self, place, request) for place, request in enumerate(requests))
        self.results: list[Any] = [None] * len(requests)
        self.missing = len(requests)
        self.problem: BaseException | None = None
        self.given_up = False

    @property
    def is_over(self) -> bool:
        return not self.missing or self.problem is not None or self.given_up


class Job(NamedTuple):
    """One request of a call."""

    call: Call
    place: int
    request: Request

    @property
    def width(self) -> int:
        """How many hypotheses it adds to a step."""
        return self.request.options.beam if isinstance(self.request, Sentence) else 1

    def receive(self, result: object) -> None:
        """A result, or the exception that came of it; the second one says nothing new."""
        if isinstance(result, BaseException):
            self.call.problem = result
        elif self.call.results[self.place] is None:
            self.call.results[self.place] = result
            self.call.missing -= 1


# --- batches and threads ----------------------------------------------------------------------------------------------


class Batch:
    """Any exception may interrupt it between two calls of the engine; what it was given is then still there."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self._load = load
        self.give_up()

    def give_up(self) -> None:
        """Begin afresh, after a failure of the engine: nothing in here can be trusted any more."""
        self._search: Search | None = None
        self._begun: dict[int, Job] = {}  # by where the sentences lie in the library's memory
        self._waiting = deque[Job]()

    @property
    def jobs(self) -> list[Job]:
        """What is not done."""
        return [*self._begun.values(), *self._waiting]

    @property
    def room(self) -> int:
        """For how many hypotheses more: some wait in the search, so that they begin as soon as others end."""
        return ROWS + ROWS // 2 - sum(job.width for job in self.jobs)

    def take(self, job: Job) -> None:
        self._waiting.append(job)

    def forget(self) -> None:
        """Drop what nobody waits for any more."""
        self._waiting = deque(job for job in self._waiting if not job.call.is_over)
        for address in [address for address, job in self._begun.items() if job.call.is_over]:
            del self._begun[address]
            assert self._search
            self._search.drop(address)

    def work(self, deliver: Callable[[Job, object], None]) -> None:
        """Do what fits into a turn; each job is delivered with its result, or with the exception that came of it."""
        search = self._search = self._search or Search(self._load())
        if not self._begun:
            self._steps = 1  # of the search, in a turn
        end = perf_counter() + TURN_SECONDS
        while self._waiting and perf_counter() < end:
            job = self._waiting[0]
            try:
                if isinstance(job.request, Sentence):
                    self._begun[search.add(job.request)] = job
                else:
                    deliver(job, job.request(search.model))
            except VidrioError as error:
                deliver(job, error)
            self._waiting.popleft()
        if self._begun:
            self._go_on(search, deliver)

    def _go_on(self, search: Search, deliver: Callable[[Job, object], None]) -> None:
        begin = perf_counter()
        search.run(self._steps)
        took = max(TICK, perf_counter() - begin)
        self._steps = max(1, min(2 * self._steps, int(self._steps * TURN_SECONDS / took)))
        while address := search.next():
            if job := self._begun.get(address):
                assert isinstance(job.request, Sentence)
                try:
                    deliver(job, search.read(address, job.request))
                except VidrioError as error:
                    deliver(job, error)
                del self._begun[address]
            search.drop(address)


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
        self._calls = deque[Call]()  # of which nobody has taken everything yet
        self._free = [self._make() for _ in range(self._count)]

    @property
    def _waiting(self) -> int:
        """How many jobs nobody has taken yet."""
        return sum(len(call.waiting) for call in self._calls)

    def run(self, requests: Sequence[Request], stopped: Stopped = None) -> list[Any]:
        """The result of each request, in order; CancelledError when `stopped` says that nobody wants them any more."""
        if not requests:
            return []
        call, batch = Call(requests), None
        try:
            with self._changed:
                self._calls.append(call)
                batch = self._free.pop() if self._free else None
                for _ in range(min(len(self._free), self._waiting - 1)):
                    self._hand_on(self._free.pop())
            while not (call.is_over or (stopped and stopped())):
                if batch:
                    self._turn(batch)
                else:
                    with self._changed:
                        if not call.is_over:
                            self._changed.wait(POLL_SECONDS)
        finally:
            with self._changed:
                if not call.is_over:
                    call.given_up = True
                    self._calls = deque(other for other in self._calls if other is not call)
                if batch:
                    self._hand_on(batch)
        if call.problem:
            raise call.problem
        if call.missing:
            from concurrent.futures import CancelledError

            raise CancelledError
        return call.results

    def _hand_on(self, batch: Batch) -> None:
        """Leave a batch to a helper, if there is anything to do."""
        if batch.jobs or self._calls:
            threading.Thread(target=self._help, args=(batch,), daemon=True).start()
        else:
            self._free.append(batch)

    def _help(self, batch: Batch) -> None:
        while True:
            with self._changed:
                if not batch.jobs and not self._calls:
                    self._free.append(batch)
                    return
            self._turn(batch)

    def _turn(self, batch: Batch) -> None:
        """Some hundredths of a second of work."""
        with self._changed:
            batch.forget()
            room, share = batch.room, -(-self._waiting // self._count)  # leave some for the others
            while room > 0 and share > 0:
                call = self._calls.popleft()
                batch.take(call.waiting[0])
                room, share = room - call.waiting.popleft().width, share - 1
                if call.waiting:
                    self._calls.append(call)
        try:
            batch.work(self._deliver)
        except Exception as error:
            jobs = batch.jobs
            batch.give_up()
            for job in jobs:
                self._deliver(job, error)

    def _deliver(self, job: Job, result: object) -> None:
        with self._changed:
            job.receive(result)
            if job.call.is_over:
                self._changed.notify_all()
