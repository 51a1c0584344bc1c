"""A Ray cluster: joining it, and giving its workers pieces of work.

What a worker is given and gives back is small (which file, how it went): it reads and writes files itself, so nothing
goes through Ray's store of objects. Ray tries again what fails or dies with its machine.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from typing import Any, NamedTuple

from vidrio.errors import RunError, VidrioError

MOST_CORES = 8  # of one worker: what Python does for a line takes about a tenth of what the engine does
MOST_WAITING = 1_000  # pieces of work that Ray is given in advance
TRIES = 3  # of a piece of work
Do = Callable[[Any], Any]  # a piece of work → what became of it
_opened: list[Do] = []  # on a worker, whose process stays: what does the work, with its model


class Failed(NamedTuple):
    """What stands in the place of a result."""

    why: str


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """While this machine takes part in a cluster: the one at the address; without one the one that it belongs to, or
    else one of its own."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves these machines
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # failures are reported by whoever asked for the work
    logging.getLogger("ray").setLevel(logging.ERROR)
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


def cores_of_a_worker(wanted: int | None) -> int:
    """As many as are wanted, or as the smallest machine has."""
    import ray

    machines = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    machines = [count for count in machines if count > 0]
    if not machines or (wanted is not None and wanted > max(machines)):
        found = f"machines with {', '.join(map(str, sorted(machines))) or 'no'} cores"
        raise RunError("the cluster has no room for a worker", found=found, do="ask for fewer --workers")
    return wanted or min(*machines, MOST_CORES)


def attempt(make: Callable[[], Do], piece: Any) -> Any:
    """On a worker: a piece of work. A mistake in the data is not tried again; whatever else goes wrong is."""
    try:
        if not _opened:
            _opened.append(make())
        return _opened[0](piece)
    except VidrioError as error:
        return Failed(str(error))


def results(make: Callable[[], Do], pieces: Sequence[Any], cores: int) -> Iterator[tuple[Any, Any]]:
    """Each piece of work, in no order, with what became of it. A worker has so many cores."""
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
