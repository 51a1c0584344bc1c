"""Which process makes the data that several learn from: one on each machine, or one for all.

Machines may share the run's folder, or each has one of its own; then each makes the data in its own, and all must come
out the same. Models, states and metrics are written by the leading process alone, in its folder.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar
from uuid import uuid4
from zlib import crc32

import numpy as np
import torch

from vidrio.data.lock import only_one
from vidrio.errors import RunError
from vidrio.learn.batches import Examples, Side
from vidrio.learn.processes.processes import Processes

SOME = 100_000  # sentences at a time

T = TypeVar("T")


@contextmanager
def at_work(run: Path, processes: Processes) -> Iterator[bool]:
    """Work in a run's folder, locked. Gives whether this process makes the data in it: the leading one does, and one on
    each machine that does not see the leading one's folder."""
    with only_one(run) if processes.leads else nullcontext():
        shared = processes.size > 1 and _is_shared(run, processes)
        owner = processes.leads or (processes.leads_here and not shared)
        with only_one(run) if owner and not processes.leads else nullcontext():
            yield owner


def _is_shared(run: Path, processes: Processes) -> bool:
    """Whether this is the leading process's folder: all processes ask at once."""
    mark = run / processes.broadcast_text(f".seen-{uuid4().hex}")
    if processes.leads:
        mark.touch()
    processes.wait()
    shared = mark.exists()
    processes.wait()
    if processes.leads:
        mark.unlink()
    return shared


def owner_first(owner: bool, processes: Processes, make: Callable[[], T]) -> T:
    """What `make` gives: the owners of the data make it, then the others find it made."""
    if not owner:
        processes.wait()
    made = make()
    if owner:
        processes.wait()
    return made


def refuse_differences(examples: Examples, fingerprints: str, processes: Processes) -> None:
    """Refuse to learn from examples (or by tokenizers with fingerprints) that are not the same on all machines."""
    [several_machines] = processes.any_of(processes.leads_here and not processes.leads)
    if not several_machines:
        return
    own = torch.tensor([checksum(examples, fingerprints) if processes.leads_here else 0])
    leading = processes.broadcast(own.clone())
    [differ] = processes.any_of(processes.leads_here and bool(own != leading))
    if differ:
        raise RunError(
            "the machines have not made the same data to learn from",
            found="training pairs or tokenizers that differ",
            do="give each the same files and options, or with --to a folder that all of them share",
        )


def checksum(examples: Examples, fingerprints: str) -> int:
    """Of all token ids, their order, and how often they are taken."""
    crc = crc32(f"{fingerprints} {list(examples.repeats)}".encode())
    for side in (examples.source, examples.target):
        for ids, lengths in _in_parts(side):
            crc = crc32(lengths.astype("<i8").tobytes(), crc32(ids.astype("<i8").tobytes(), crc))
    return crc


def _in_parts(side: Side) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    count = len(side.lengths)
    for start in range(0, count, SOME):
        yield side.gather(np.arange(start, min(count, start + SOME)))
