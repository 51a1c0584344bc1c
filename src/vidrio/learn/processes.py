"""Several processes that learn as one, on PyTorch's own engine: `torchrun --nproc-per-node 2 -m vidrio train …`.

Each process takes its share of a step's batches; their gradients are summed; then all take the same step. Numbers on a
GPU travel by NCCL, all others by Gloo. Text travels as bytes: nothing is pickled.

One process on each machine makes the data, or one for all: machines may share the run's folder, or each has one of its
own; then each makes the data in its own, and all must come out the same. Models, states and metrics are written by the
leading process alone, in its folder.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from uuid import uuid4
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, distributed

from vidrio.data.lock import only_one
from vidrio.data.store import Examples, Side
from vidrio.errors import RunError

PATIENCE = timedelta(days=1)  # one process cleans the data, or validates, while the others wait

SOME = 100_000  # sentences at a time

LOST = re.compile("connect|closed|reset by peer|broken pipe|timed? ?out", re.IGNORECASE)  # Gloo has one kind of error

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # among those of the same machine
    local_size: int = 1

    @property
    def leads(self) -> bool:
        """One process tells, validates and writes."""
        return self.rank == 0

    @property
    def leads_here(self) -> bool:
        """One process on each machine."""
        return self.local_rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            with _all_there():
                distributed.all_reduce(tensor)
        return tensor

    def broadcast(self, tensor: Tensor) -> Tensor:
        """The leading process's numbers, in place."""
        if self.size > 1:
            with _all_there():
                distributed.broadcast(tensor, 0)
        return tensor

    def broadcast_text(self, text: str) -> str:
        """The leading process's text; what the others give does not matter."""
        if self.size == 1:
            return text
        data = text.encode() if self.leads else b""
        length = int(self.broadcast(torch.tensor([len(data)])))
        letters = torch.tensor(list(data) if self.leads else [0] * length, dtype=torch.uint8)
        return bytes(self.broadcast(letters).tolist()).decode()

    def any_of(self, *answers: bool) -> list[bool]:
        """For each question, whether any process answers yes."""
        if self.size == 1:
            return list(answers)
        return [count > 0 for count in self.sum(torch.tensor(answers, dtype=torch.float32)).tolist()]

    def wait(self) -> None:
        """Until all are here."""
        self.sum(torch.zeros(1))


ALONE = Processes()


def join(device: str = "") -> Processes:
    """Join the processes that torchrun has started; alone, if it has not."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return ALONE
    if ":" in device:
        raise RunError(
            "each process has a GPU of its own", found=f"--device {device}, for all of them", do="leave it out"
        )
    cuda = torch.cuda.is_available() and device != "cpu"
    try:
        local_rank, local_size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
        if cuda:
            torch.cuda.set_device(local_rank)
        distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    except (KeyError, ValueError, RuntimeError) as error:
        reason = f"{error} is not set" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise RunError(
            "the processes of this run cannot come together",
            found=reason,
            do="start them with torchrun, no more on a machine than it has GPUs (or with --device cpu)",
        ) from None
    return Processes(distributed.get_rank(), distributed.get_world_size(), local_rank, local_size)


def leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


@contextmanager
def _all_there() -> Iterator[None]:
    """Numbers cannot come from a process that has ended; it has said why, or was killed."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, distributed.DistError) and not LOST.search(str(error)):
            raise
        raise RunError(
            "another process of this run has ended, or cannot be reached",
            found=re.sub(r"^\[.*?\] ", "", str(error)).splitlines()[0].split(". ")[0],  # without the place in PyTorch
            do="look at what it said; the same command goes on from the last saved state",
        ) from None


# --- who makes the data -----------------------------------------------------------------------------------------------


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
