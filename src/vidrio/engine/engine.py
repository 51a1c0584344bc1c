"""Ids → hypotheses, by the engine: the C in `c/`, as machine code or as WebAssembly (docs/design.md says why).

All calls share one queue, and their requests share batches: no result depends on its neighbours.

There are as many batches as workers, but no thread that waits for work. A caller takes a free batch and works on it
until its own results are there; whatever else is in the batch then goes to a helper, a thread that ends when nothing is
left to do. A caller that finds no batch free waits. So a single sentence is translated by the thread that asked (a
browser has no other), and a short call never waits for the whole of a long one: calls take turns.
"""

import ctypes
import os
import struct
import threading
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from vidrio.engine.library import opener
from vidrio.engine.loaded import Forced, Model, classify, forced, loader, quantities
from vidrio.errors import ConfigError, InputError, VidrioError
from vidrio.hypothesis import Hypothesis, Options, Pair, Sampling
from vidrio.model.config import ModelConfig

ROWS = 32  # hypotheses that go through the decoder together
STEPS = 4  # decoding steps between two looks at what has ended
TURN_SECONDS = 0.015  # how long a thread works before it looks for new requests
POLL_SECONDS = 0.05  # how long a caller waits before it asks again whether to stop
LARGEST = 2**31 - 1

Stopped = Callable[[], bool] | None  # says whether the results are no longer wanted


class Engine:
    """A loaded model. Safe to use from many threads, and in the child of a fork.

    Source ids have their end token, if the model wants one; target ids have neither start nor end.
    """

    def __init__(self, load: Callable[[], Model], config: ModelConfig, workers: int) -> None:
        self._config = config
        self._workers = Workers(load, workers)

    @staticmethod
    def load(folder: Path, config: ModelConfig, *, workers: int = 1) -> "Engine":
        """The engine for a model folder. At most `workers` threads work at the same time."""
        return Engine(loader(folder, config, opener()), config, workers)

    def search(
        self, sources: Sequence[Sequence[int]], options: Options, stopped: Stopped = None
    ) -> list[list[Hypothesis]]:
        """For each source the best hypotheses, best first; CancelledError once `stopped` returns true."""
        self._check_lengths(sources, options.max_length)
        return self._workers.run([SearchRequest(source, options) for source in sources], stopped)

    def forced(self, pairs: Sequence[Pair]) -> list[Forced]:
        """How likely the model finds each target, given its source."""
        self._check_pairs(pairs)
        return self._workers.run([partial(forced, *pair) for pair in pairs])

    def classify(self, sources: Sequence[Sequence[int]]) -> list[list[float]]:
        """The probabilities of a classifier's classes for each source."""
        self._check_lengths(sources, 0)
        return self._workers.run([partial(classify, source, self._config.n_classes) for source in sources])

    def quantities(self, source: Sequence[int], target: Sequence[int] = ()) -> dict[str, "memoryview[float]"]:
        """Every quantity of a pass by its address (enc.0.self.Q.h1), as it was in the engine's memory; a classifier has
        no target."""
        self._check_pairs([(source, target)])
        [found] = self._workers.run([partial(quantities, source, target, self._config)])
        return found

    def _check_pairs(self, pairs: Sequence[Pair]) -> None:
        self._check_lengths([source for source, _ in pairs], 1 + max((len(target) for _, target in pairs), default=0))

    def _check_lengths(self, sources: Sequence[Sequence[int]], longest_target: int) -> None:
        limit = self._config.max_positions
        longest = max((len(ids) for ids in sources), default=0)
        if longest > limit or longest_target > limit:
            raise InputError(
                "the text is longer than the model's positions",
                found=f"{longest} tokens to read and up to {longest_target} to write; the model holds {limit}",
                do="shorten or split the text; nothing was cut off silently",
            )


# --- requests ---------------------------------------------------------------------------------------------------------


class SearchRequest(NamedTuple):
    """A source to translate."""

    source: Sequence[int]
    options: Options


Request = SearchRequest | Callable[[Model], Any]


class Call:
    """A caller that waits for the results of some requests."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.waiting = deque(Job(self, place, request) for place, request in enumerate(requests))
        self.results: list[Any] = [None] * len(requests)
        self.missing = len(requests)
        self.error: BaseException | None = None
        self.cancelled = False

    @property
    def is_over(self) -> bool:
        return not self.missing or self.error is not None or self.cancelled


class Job(NamedTuple):
    """One request of a call."""

    call: Call
    place: int
    request: Request

    @property
    def width(self) -> int:
        """How many hypotheses it adds to a step."""
        return self.request.options.beam if isinstance(self.request, SearchRequest) else 1

    def receive(self, result: object) -> None:
        """A result, or the exception that it ended in. After an interrupt it may come twice; then the first counts."""
        if isinstance(result, BaseException):
            self.call.error = result
        elif self.call.results[self.place] is None:
            self.call.results[self.place] = result
            self.call.missing -= 1


# --- a batch ----------------------------------------------------------------------------------------------------------


class Search:
    """Sentences that are searched for side by side, in a library's memory. Each is known by its address there."""

    def __init__(self, model: Model) -> None:
        self.model, self._functions = model, model.library.functions
        self._address: int = self._functions.search_new(model.address, ROWS)

    def __del__(self) -> None:
        self.model.library.free("search_free", self._address)

    def add(self, request: SearchRequest) -> int:
        """Add a sentence → its address."""
        (source, o), given = request, list[Any]()
        for ids in (source, o.prefix, o.suppressed):
            given += (array("i", ids).tobytes(), len(ids))
        address: int = self._functions.search_add(self._address, as_struct(o), *given)
        if not address:
            raise ConfigError(
                "this search cannot be done",
                found=f"{len(source)} tokens to read, at most {o.max_length} to write, a prefix of {len(o.prefix)}",
                do="change the options, or shorten the text",
            )
        return address

    def run(self) -> None:
        """Some steps of all sentences."""
        self._functions.search_run(self._address, STEPS)

    def next(self) -> int:
        """A sentence that is done and not dropped yet; 0 if there is none."""
        return self._functions.search_next(self._address) or 0

    def read(self, address: int, request: SearchRequest) -> list[Hypothesis]:
        """What was found for a sentence, best first."""
        hypotheses, sources = [], len(request.source)
        for nth in range(self._functions.sentence_count(address)):
            length = self._functions.sentence_length(address, nth)
            ids, log_probs = (ctypes.c_int32 * length)(), (ctypes.c_float * length)()
            attention, total = (ctypes.c_float * (length * sources))(), (ctypes.c_double * 2)()
            ended = bool(self._functions.sentence_read(address, nth, ids, log_probs, attention, total))
            if not ended and length < request.options.max_length:
                raise ConfigError(
                    "no token is left to choose from",
                    found="all tokens are forbidden at some step, or the model computes NaN",
                    do="allow more: fewer suppressed tokens, a larger or no no_repeat_ngram",
                )
            tokens, rows = tuple(ids[: length - ended]), None
            if tokens and sources:
                shape = (len(tokens), sources)
                rows = memoryview(attention).cast("B")[: 4 * len(tokens) * sources].cast("f", shape)
            hypotheses.append(Hypothesis(tokens, total[0], total[1], tuple(log_probs), ended, rows))
        return hypotheses

    def drop(self, address: int) -> None:
        """Forget a sentence, done or not."""
        self._functions.search_drop(self._address, address)


def as_struct(o: Options) -> bytes:
    """`Options` of engine.h."""
    s = o.sampling or Sampling()
    numbers = (o.beam, o.n_best, o.min_length, o.max_length, min(o.no_repeat_ngram, LARGEST), min(s.top_k, LARGEST))
    return struct.pack("<7iI3f", *numbers, o.sampling is not None, s.seed, o.length_penalty, s.temperature, s.top_p)


class Batch:
    """The jobs of one thread. If an exception interrupts it between two calls of the engine, it can still go on."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self._load = load
        self.reset()

    def reset(self) -> None:
        """Begin afresh: after a failure of the engine nothing in its memory can be trusted."""
        self._search: Search | None = None
        self._begun: dict[int, Job] = {}  # by the addresses of their sentences
        self._waiting = deque[Job]()

    @property
    def jobs(self) -> list[Job]:
        """The jobs that are not done."""
        return [*self._begun.values(), *self._waiting]

    @property
    def room(self) -> int:
        """For how many more hypotheses: some wait in the search, so that they begin as soon as others end."""
        return ROWS + ROWS // 2 - sum(job.width for job in self.jobs)

    def take(self, job: Job) -> None:
        self._waiting.append(job)

    def forget(self) -> None:
        """Drop the jobs of calls that are over."""
        self._waiting = deque(job for job in self._waiting if not job.call.is_over)
        for address in [address for address, job in self._begun.items() if job.call.is_over]:
            del self._begun[address]
            assert self._search
            self._search.drop(address)

    def work(self, deliver: Callable[[Job, object], None]) -> None:
        """Work for a turn; each job that is done is delivered with its result, or with the error that it ended in."""
        search = self._search = self._search or Search(self._load())
        end = perf_counter() + TURN_SECONDS
        while self._waiting and perf_counter() < end:
            job = self._waiting[0]
            try:
                if isinstance(job.request, SearchRequest):
                    self._begun[search.add(job.request)] = job
                else:
                    deliver(job, job.request(search.model))
            except VidrioError as error:
                deliver(job, error)
            self._waiting.popleft()
        while self._begun:
            search.run()
            while address := search.next():
                if done := self._begun.get(address):
                    assert isinstance(done.request, SearchRequest)
                    try:
                        deliver(done, search.read(address, done.request))
                    except VidrioError as error:
                        deliver(done, error)
                    del self._begun[address]
                search.drop(address)
            if perf_counter() > end:
                break


# --- threads ----------------------------------------------------------------------------------------------------------


class Workers:
    """`count` batches, each with a model that is loaded when it is first needed."""

    def __init__(self, load: Callable[[], Model], count: int) -> None:
        self._load, self._count = load, count
        self._begin()
        if hasattr(os, "register_at_fork"):  # the threads stay behind in the parent, so the child begins afresh
            reference = weakref.WeakMethod(self._begin)
            os.register_at_fork(after_in_child=lambda: (begin := reference()) and begin())

    def _begin(self) -> None:
        self._changed = threading.Condition()  # guards all of this; notified when a call is over
        self._calls = deque[Call]()  # those with jobs that are in no batch yet
        self._free = [Batch(self._load) for _ in range(self._count)]

    @property
    def _waiting(self) -> int:
        """How many jobs are in no batch yet."""
        return sum(len(call.waiting) for call in self._calls)

    def run(self, requests: Sequence[Request], stopped: Stopped = None) -> list[Any]:
        """The result of each request, in order; CancelledError once `stopped` returns true."""
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
                    call.cancelled = True
                    self._calls = deque(other for other in self._calls if other is not call)
                if batch:
                    self._hand_on(batch)
        if call.error:
            raise call.error
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
        """Fill the batch, and work on it for some hundredths of a second."""
        with self._changed:
            batch.forget()
            room, share = batch.room, -(-self._waiting // self._count)  # leave some for the others
            while room > 0 and share > 0:
                call = self._calls.popleft()
                job = call.waiting.popleft()
                batch.take(job)
                room, share = room - job.width, share - 1
                if call.waiting:
                    self._calls.append(call)
        try:
            batch.work(self._deliver)
        except Exception as error:
            jobs = batch.jobs
            batch.reset()
            for job in jobs:
                self._deliver(job, error)

    def _deliver(self, job: Job, result: object) -> None:
        with self._changed:
            job.receive(result)
            if job.call.is_over:
                self._changed.notify_all()
