"""A Ray cluster: joining it, sharing its cores out, and giving pieces of work to workers that stay.

What a worker is given and gives back is small (which lines, how it went): it reads and writes files itself, so nothing
goes through Ray's store of objects. Hence plain actors, and not Ray Data, which streams tables through that store: it
begins three processes of its own and loads pandas into each worker.
"""

import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, NamedTuple

from vidrio.errors import RunError, VidrioError

MOST_CORES = 8  # of one worker: what Python does for a line takes about a tenth of what the engine does
PATIENCE = 600  # seconds without any worker, after which none is waited for
TRIES = 3  # of a piece of work; all but the first when the others are done, with nothing beside it
Do = Callable[[Any], Any]  # a piece of work → what became of it


class Pool(NamedTuple):
    """So many workers with so many cores each."""

    workers: int
    cores: int
    at_once: int = 2  # pieces of work of one worker: while one ends, the next fills its batches


class Failed(NamedTuple):
    """What stands in the place of a result."""

    why: str
    hopeless: bool = False  # the next try would fail too


DIED = Failed("its worker died")


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """While this machine takes part in a cluster: the one at the address; without one the one that it belongs to, or
    else one of its own."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves these machines
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what fails is told by whoever asked for it
    logging.getLogger("ray").setLevel(logging.ERROR)
    import ray

    try:
        with _quiet():
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise RunError(
            f"there is no Ray cluster at {address or 'this machine'}",
            found=str(error).strip().partition("\n")[0],
            do="start one (ray start --head), or leave the address out to use the cores of this machine",
        ) from None
    # Ray prints there who died, between what a command prints for a program to read.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what libraries write to stderr; what is wrong they raise."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def share_out(cores: int | None) -> Pool:
    """How many workers the cluster has room for, each on one machine: with as many cores as its smallest machine has,
    unless told."""
    import ray

    machines = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    machines = [count for count in machines if count > 0]
    if not machines or (cores is not None and cores > max(machines)):
        found = f"machines with {', '.join(map(str, sorted(machines))) or 'no'} cores"
        raise RunError("the cluster has no room for a worker", found=found, do="ask for fewer --workers")
    cores = cores or min(*machines, MOST_CORES)
    return Pool(sum(count // cores for count in machines), cores)


class Worker:
    """On a worker: the one who does the work."""

    def __init__(self, make: Callable[[], Do]) -> None:
        self._make = make

    def begin(self) -> None:
        self._do = self._make()

    def work(self, piece: Any) -> Any:
        try:
            return self._do(piece)
        except VidrioError as error:  # the data is as it is
            return Failed(str(error), hopeless=True)
        except Exception as error:  # whatever the machine, its disk or its network says
            return Failed(f"{type(error).__name__}: {error}")


class Workers:
    """The workers of a command, by their numbers."""

    def __init__(self, make: Callable[[], Do], pool: Pool) -> None:
        import ray

        actor: Any = ray.remote(Worker)
        self._kind, self._make = actor.options(num_cpus=pool.cores, max_concurrency=pool.at_once), make
        self._actors: list[Any] = []
        self._waiting: dict[Any, tuple[int, Any]] = {}  # for an answer: of which worker, to which piece of work

    def begin(self) -> None:
        """One more, as soon as there is room for it."""
        self._actors.append(self._kind.remote(self._make))
        self._waiting[self._actors[-1].begin.remote()] = len(self._actors) - 1, None

    def give(self, worker: int, piece: Any) -> None:
        self._waiting[self._actors[worker].work.remote(piece)] = worker, piece

    def next(self) -> tuple[int, Any, Any]:
        """Which worker is done with which piece of work, and what became of it; no piece: it has begun."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        nobody = all(piece is None for _, piece in self._waiting.values())
        answers, _ = ray.wait(list(self._waiting), timeout=PATIENCE if nobody else None)
        if not answers:
            free, cores = ray.available_resources().get("CPU", 0), ray.cluster_resources().get("CPU", 0)
            raise RunError(
                "no worker begins",
                found=f"{PATIENCE} s of waiting; {free:g} of the cluster's {cores:g} cores are free",
                do="wait until other work has ended, ask for fewer --workers, or look at Ray's logs",
            )
        [answer] = answers
        worker, piece = self._waiting.pop(answer)
        try:
            return worker, piece, ray.get(answer)
        except RayTaskError as error:
            if isinstance(error.cause, VidrioError):
                raise error.cause from None
            raise RunError("a worker cannot begin", found=repr(error.cause), do="look at Ray's logs") from None
        except RayError:
            return worker, piece, DIED

    def end(self) -> None:
        import ray

        for actor in self._actors:
            ray.kill(actor)


def results(make: Callable[[], Do], pieces: Sequence[Hashable], pool: Pool) -> Iterator[tuple[Any, Any, int]]:
    """Each piece of work, in no order, with what became of it and how often it was tried. What fails, or is lost with
    its worker, waits until the others are done and then has a worker for itself: others may have been at fault."""
    workers = Workers(make, pool)
    fresh, again, left = deque(pieces), deque[Hashable](), len(pieces)
    at: dict[int, list[Hashable]] = {}  # what each worker that has begun is at
    tries, stillborn = Counter[Hashable](), 0
    try:
        for _ in range(min(pool.workers, left)):
            workers.begin()
        while left:
            worker, piece, outcome = workers.next()
            if outcome is not DIED:
                stillborn = 0
                at.setdefault(worker, [])
            elif piece is None or at.pop(worker, None) is not None:  # else its death is known already
                stillborn += piece is None
                if stillborn == TRIES * pool.workers:
                    raise RunError("workers die before they begin", do="give them more memory, or look at Ray's logs")
                workers.begin()
            done = False
            if piece is not None:
                tries[piece] += 1
                at.get(worker, [piece]).remove(piece)
                done = not isinstance(outcome, Failed) or outcome.hopeless or tries[piece] == TRIES
                left -= done
                again.extend([] if done else [piece])
            for number, mine in at.items():
                while fresh and len(mine) < pool.at_once:
                    mine.append(fresh.popleft())
                    workers.give(number, mine[-1])
                if again and not mine and not fresh:
                    mine.append(again.popleft())
                    workers.give(number, mine[-1])
            if done:
                yield piece, outcome, tries.pop(piece)
    finally:
        workers.end()
