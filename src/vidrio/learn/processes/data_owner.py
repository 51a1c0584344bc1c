"""Who makes the data that several processes learn from: one on each machine, or one for all.

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
from vidrio.learn.processes.processes import Together

SOME = 100_000  # sentences at a time

T = TypeVar("T")


@contextmanager
def at_work(home: Path, together: Together) -> Iterator[bool]:
    """Work in a run's folder. Gives whether this process makes the data in it: the leading one does, and one on each
    machine that does not see the leading one's folder."""
    with only_one(home) if together.leads else nullcontext():
        shared = _is_shared(home, together)
        writes = together.leads or (together.leads_here and not shared)
        with only_one(home) if writes and not together.leads else nullcontext():
            yield writes


def _is_shared(home: Path, together: Together) -> bool:
    """Whether this is the leading process's folder."""
    mark = home / together.tell(f".seen-{uuid4().hex}")
    if together.leads:
        mark.touch()
    together.wait()
    seen = mark.exists()
    together.wait()
    if together.leads:
        mark.unlink()
    return seen


def in_turn(writes: bool, together: Together, make: Callable[[bool], T]) -> T:
    """What `make` gives: those that write make it, then the others find it made."""
    if not writes:
        together.wait()
    found = make(not writes)
    if writes:
        together.wait()
    return found


def same_everywhere(examples: Examples, others: str, together: Together) -> None:
    """Refuse to learn from examples (or from `others`, told as text) that are not the same on all machines."""
    [several] = together.any_of(together.leads_here and not together.leads)
    if not several:
        return
    own = torch.tensor([checksum(examples, others) if together.leads_here else 0])
    leading = together.spread(own.clone())
    [differ] = together.any_of(together.leads_here and bool(own != leading))
    if differ:
        raise RunError(
            "the machines have not made the same data to learn from",
            found="training pairs or tokenizers that differ",
            do="give each the same files and options, or with --to a folder that all of them share",
        )


def checksum(examples: Examples, others: str) -> int:
    """Of all token ids, their order, and how often they are taken."""
    found = crc32(f"{others} {list(examples.repeats)}".encode())
    for side in (examples.source, examples.target):
        for ids, lengths in _some(side):
            found = crc32(lengths.astype("<i8").tobytes(), crc32(ids.astype("<i8").tobytes(), found))
    return found


def _some(side: Side) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    count = len(side.lengths)
    for start in range(0, count, SOME):
        yield side.gather(np.arange(start, min(count, start + SOME)))
