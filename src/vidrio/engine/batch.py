"""What one thread works on at a time: sentences in a search of the engine, and passes that are done one by one."""

from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from vidrio.engine.searching import Model, Search, Sentence
from vidrio.errors import VidrioError

ROWS = 32  # hypotheses that go through the decoder together
TURN = 0.015  # seconds that a thread works before it looks up


Pass = Callable[[Model], Any]
Request = Sentence | Pass


class Call:
    """Somebody who waits for results."""

    def __init__(self, count: int) -> None:
        self.results: list[Any] = [None] * count
        self.missing = count
        self.problem: BaseException | None = None
        self.given_up = False

    @property
    def is_over(self) -> bool:
        return not self.missing or self.problem is not None or self.given_up

    def receive(self, place: int, result: object) -> None:
        """A result, or the exception that came of it; the second one for a place says nothing new."""
        if isinstance(result, BaseException):
            self.problem = result
        elif self.results[place] is None:
            self.results[place] = result
            self.missing -= 1

    def outcome(self) -> list[Any]:
        if self.problem is not None:
            raise self.problem
        if self.missing:
            from concurrent.futures import CancelledError

            raise CancelledError
        return self.results


class Job(NamedTuple):
    """One request of a call."""

    call: Call
    place: int
    request: Request

    @property
    def width(self) -> int:
        """How many hypotheses it adds to a step."""
        return self.request.options.beam if isinstance(self.request, Sentence) else 1


Deliver = Callable[[Job, object], None]  # a job and its result, or the exception that came of it


class Batch:
    """Any exception may interrupt it between two calls of the engine; what it was given is then still there."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self._load = load
        self._model: Model | None = None
        self._search: Search | None = None
        self._begun: dict[int, Job] = {}  # by their tickets
        self._waiting = deque[Job]()
        self._steps = 1

    @property
    def jobs(self) -> list[Job]:
        """What is not done."""
        return [*self._begun.values(), *self._waiting]

    @property
    def room(self) -> int:
        """For how many hypotheses more: some wait in the search, so that they begin as soon as others end."""
        return ROWS + ROWS // 2 - sum(job.width for job in self.jobs)

    @property
    def is_watched(self) -> bool:
        return any(isinstance(job.request, Sentence) and job.request.watched for job in self._begun.values())

    def take(self, job: Job) -> None:
        self._waiting.append(job)

    def forget(self) -> None:
        """Drop what nobody waits for any more."""
        self._waiting = deque(job for job in self._waiting if not job.call.is_over)
        for ticket in [ticket for ticket, job in self._begun.items() if job.call.is_over]:
            del self._begun[ticket]
            assert self._search
            self._search.drop(ticket)

    def give_up(self) -> list[Job]:
        """After a failure of the engine: all that was not done. The next turn begins with a new search."""
        jobs = self.jobs
        self._begun, self._waiting = {}, deque()
        self._model = self._search = None
        return jobs

    def work(self, deliver: Deliver) -> None:
        """Do what fits into a turn."""
        self._model = model = self._model or self._load()
        if not self._begun:
            self._steps = 1
        end = perf_counter() + TURN
        while self._waiting and perf_counter() < end:
            self._begin(self._waiting[0], model, deliver)
            self._waiting.popleft()
        if self._begun and self._search:
            self._go_on(self._search, deliver)

    def _begin(self, job: Job, model: Model, deliver: Deliver) -> None:
        try:
            if isinstance(job.request, Sentence):
                self._search = self._search or Search(model, ROWS)
                self._begun[self._search.add(job.request)] = job
            else:
                deliver(job, job.request(model))
        except VidrioError as error:
            deliver(job, error)

    def _go_on(self, search: Search, deliver: Deliver) -> None:
        begin = perf_counter()
        steps = 1 if self.is_watched else self._steps
        unfinished = search.run(steps)
        took = (perf_counter() - begin) / steps
        self._steps = max(1, min(2 * steps, int(TURN / took)))
        for ticket, job in list(self._begun.items()) if unfinished < len(self._begun) or self.is_watched else []:
            assert isinstance(job.request, Sentence)
            if job.request.watched:
                job.request.written = search.written(ticket, job.request.options.max_length)
            try:
                result: object = search.found(ticket, job.request)
            except VidrioError as error:
                result = error
            if result is not None:
                deliver(job, result)
                del self._begun[ticket]
                search.drop(ticket)
