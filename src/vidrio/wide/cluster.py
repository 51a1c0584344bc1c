"""Run tasks on a Ray cluster. Tasks and results are small, because workers read and write files themselves.

Ray retries tasks that fail or whose machine dies.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from typing import Any, NamedTuple

from vidrio.errors import RunError, VidrioError

MAX_CORES = 8  # per worker, because for each line, Python takes about a tenth of the engine's time
MAX_WAITING = 1_000  # maximum number of tasks submitted in advance
TRIES = 3  # attempts per task
Do = Callable[[Any], Any]  # task → result
_opened: list[Do] = []  # in a worker process, which is reused, this contains the function with its model


class Failed(NamedTuple):
    """The result of a failed task."""

    why: str


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connect to the cluster at the address. Without an address, use a cluster on this machine, or start one."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no data to Ray's developers
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Ray reports dead workers on stdout, where they would appear in the command's output.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        try:
            with _quiet():
                ray.init(address, logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RunError(
                f"there is no Ray cluster at {address or 'this machine'}",
                found=str(error).strip().partition("\n")[0],
                do="start one (ray start --head), or omit the address to use the cores of this machine",
            ) from None
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress output from libraries to stderr. Exceptions are still raised."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def cores_of_a_worker(wanted: int | None) -> int:
    """Return the requested number of cores, or by default the number of cores of the smallest machine, up to
    MAX_CORES."""
    import ray

    machines = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    machines = sorted(count for count in machines if count > 0)
    if not machines or (wanted or 0) > machines[-1]:
        found = f"machines with {', '.join(map(str, machines)) or 'no'} cores"
        raise RunError("the cluster has no room for a worker", found=found, do="ask for fewer --workers")
    return wanted or min(machines[0], MAX_CORES)


def attempt(make: Callable[[], Do], piece: Any) -> Any:
    """Run a task on a worker. Errors in the data are returned. All other errors are raised, so that Ray retries the
    task, perhaps on a machine where the model can be opened."""
    if not _opened:
        _opened.append(make())
    try:
        return _opened[0](piece)
    except VidrioError as error:
        return Failed(str(error))


def results(make: Callable[[], Do], pieces: Sequence[Any], cores: int) -> Iterator[tuple[Any, Any]]:
    """Yield each task with its result, in the order of completion. `cores` is the number of cores per worker."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    task = ray.remote(num_cpus=cores, max_retries=TRIES - 1, retry_exceptions=True)(attempt)
    maker, fresh, waiting = ray.put(make), iter(pieces), dict[Any, Any]()
    while True:
        waiting |= {task.remote(maker, piece): piece for piece in islice(fresh, MAX_WAITING - len(waiting))}
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
