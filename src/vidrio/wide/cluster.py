"""A Ray cluster: joining it, sharing its cores out, and sending numbered work to workers that stay.

What a worker is given and gives back is small (which lines, how it went): it reads and writes files itself, so nothing
goes through Ray's store of objects.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from vidrio.errors import RunError
from vidrio.wide.places import Place, needs_ray

MOST_CORES = 8  # of one worker: what Python does for a line takes about a tenth of what the engine does
Row = Mapping[str, Any]


class Pool(NamedTuple):
    """So many workers with so many cores each."""

    workers: int
    cores: int
    at_once: int = 2  # pieces of work of one worker: while one ends, the next fills its batches


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """While this machine takes part in a cluster: the one at the address; without one the one that it belongs to, or
    else one of its own."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves these machines
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # it warns of what Ray Data does on purpose
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        import ray
        import ray.data
    except ModuleNotFoundError:
        raise needs_ray() from None
    try:
        with _quiet():
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise RunError(
            f"there is no Ray cluster at {address or 'this machine'}",
            found=str(error).strip().partition("\n")[0],
            do="start one (ray start --head), or leave the address out to use the cores of this machine",
        ) from None
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what fails is told by whoever asked for it
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.max_errored_blocks = -1
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


def results(worker: type, given: Sequence[Any], rows: Sequence[Row], pool: Pool) -> Iterator[Row]:
    """For each row what a worker, made from what is given, says of it; in no order. What a worker was at that died is
    given to another, for ever: `count_beginning` counts how often."""
    import ray
    from ray.exceptions import RayError

    actors = ray.data.ActorPoolStrategy(
        size=min(pool.workers, len(rows)),
        max_concurrent_calls_per_actor=pool.at_once,
        max_tasks_in_flight_per_actor=2 * pool.at_once,
        enable_true_multi_threading=True,
    )
    items = ray.data.from_items(list(rows), override_num_blocks=len(rows))
    done = items.map(worker, fn_constructor_args=tuple(given), compute=actors, num_cpus=pool.cores)
    try:
        yield from done.iter_rows()
    except RayError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise RunError(
            "the cluster gave up", found=lines[-1] if lines else repr(error), do="look at Ray's logs"
        ) from None


def count_beginning(begun: Place, most: int) -> None:
    """A worker begins a piece of work, and removes this file when it ends. One that finds it knows who died."""
    deaths = len(begun.read()) if begun.size() else 0
    if deaths >= most:
        raise RuntimeError(f"its worker died, {deaths} times")
    with begun.writing() as stream:
        stream.write(b"." * (deaths + 1))
