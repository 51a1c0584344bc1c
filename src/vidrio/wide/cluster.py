"""Work on a Ray cluster. Tasks and results are small: workers read and write files themselves.

Ray retries what fails or dies with its machine.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from typing import Any, NamedTuple

from vidrio.errors import RunError, VidrioError

MOST_CORES = 8  # of a worker: Python takes about a tenth of the engine's time for a line
MOST_WAITING = 1_000  # tasks that Ray is given in advance
TRIES = 3  # of a task
Do = Callable[[Any], Any]  # a piece of work → its result
_opened: list[Do] = []  # on a worker, whose process stays: the function, with its model


class Failed(NamedTuple):
    """Replaces a result."""

    why: str


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Join the cluster at the address; without one, this machine's cluster, or a new local one."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no data leaves these machines
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Ray prints on stdout which workers died, between the lines of a command.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        try:
            with _quiet():
                ray.init(address, logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RunError(
                f"there is no Ray cluster at {address or 'this machine'}",
                found=str(error).strip().partition("\n")[0],
                do="start one (ray start --head), or leave the address out to use the cores of this machine",
            ) from None
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what libraries print to stderr; errors are still raised."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def cores_of_a_worker(wanted: int | None) -> int:
    """The requested number of cores, or that of the smallest machine."""
    import ray

    machines = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    machines = sorted(count for count in machines if count > 0)
    if not machines or (wanted or 0) > machines[-1]:
        found = f"machines with {', '.join(map(str, machines)) or 'no'} cores"
        raise RunError("the cluster has no room for a worker", found=found, do="ask for fewer --workers")
    return wanted or min(machines[0], MOST_CORES)


def attempt(make: Callable[[], Do], piece: Any) -> Any:
    """On a worker: do a piece of work. Errors in the data are not retried; all others are."""
    try:
        if not _opened:
            _opened.append(make())
        return _opened[0](piece)
    except VidrioError as error:
        return Failed(str(error))


def results(make: Callable[[], Do], pieces: Sequence[Any], cores: int) -> Iterator[tuple[Any, Any]]:
    """Each task with its result, in any order. `cores` is per worker."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    task = ray.remote(num_cpus=cores, max_retries=TRIES - 1, retry_exceptions=True)(attempt)
    maker, fresh, waiting = ray.put(make), iter(pieces), dict[Any, Any]()
    while True:
        waiting |= {task.remote(maker, piece): piece for piece in islice(fresh, MOST_WAITING - len(waiting))}
        if not waiting:
            return
        [done], _ = ray.wait(list(waiting))
        piece = waiting.pop(done)
        try:
            yield piece, ray.get(done)
        except RayTaskError as error:
            yield piece, Failed(f"{type(error.cause).__name__}: {error.cause}")
        except RayError:
            yield piece, Failed("its worker died")
