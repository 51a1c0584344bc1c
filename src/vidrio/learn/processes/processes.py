"""Several processes that learn as one, on PyTorch's own engine: `torchrun --nproc-per-node 2 -m vidrio train …`.

Each process takes its share of a step's batches; their gradients are added up; then all take the same step. Numbers on
a GPU travel by NCCL, all others by Gloo. What is told travels as text: nothing is pickled.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed

from vidrio.errors import RunError

PATIENCE = timedelta(days=1)  # one process cleans the data, or validates, while the others wait

LOST = re.compile("connect|closed|reset by peer|broken pipe|timed? ?out", re.IGNORECASE)  # Gloo has one kind of error

# Their names since PyTorch 2.13, and before.
_gather = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
_scatter = getattr(distributed, "reduce_scatter_single", None) or distributed.reduce_scatter_tensor


@dataclass(frozen=True)
class Together:
    """Which of how many processes this is."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # among those of the same machine
    local_size: int = 1
    sharded: bool = False  # each keeps only its part of the model: see sharded.py

    @property
    def leads(self) -> bool:
        """One process tells, validates and writes."""
        return self.rank == 0

    @property
    def leads_here(self) -> bool:
        """One process on each machine."""
        return self.local_rank == 0

    def add_up(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            with _all_there():
                distributed.all_reduce(tensor)
        return tensor

    def add_up_parts(self, tensor: Tensor) -> Tensor:
        """The sum over all processes of what each has of its part; where each has the whole, nothing is to be done."""
        return self.add_up(tensor) if self.sharded else tensor

    def gather(self, part: Tensor) -> Tensor:
        """All processes' parts, one after the other."""
        whole = part.new_empty(self.size * len(part))
        with _all_there():
            _gather(whole, part)
        return whole

    def scatter(self, whole: Tensor) -> Tensor:
        """This process's part of the sum over all processes."""
        part = whole.new_empty(len(whole) // self.size)
        with _all_there():
            _scatter(part, whole)
        return part

    def spread(self, tensor: Tensor) -> Tensor:
        """The leading process's numbers, in place."""
        if self.size > 1:
            with _all_there():
                distributed.broadcast(tensor, 0)
        return tensor

    def tell(self, text: str) -> str:
        """What the leading process says."""
        if self.size == 1:
            return text
        data = text.encode() if self.leads else b""
        length = int(self.spread(torch.tensor([len(data)])))
        letters = torch.tensor(list(data) if self.leads else [0] * length, dtype=torch.uint8)
        return bytes(self.spread(letters).tolist()).decode()

    def any_of(self, *questions: bool) -> list[bool]:
        """For each question, whether any process says yes."""
        return [count > 0 for count in self.add_up(torch.tensor(questions, dtype=torch.float32)).tolist()]

    def wait(self) -> None:
        """Until all are here."""
        self.add_up(torch.zeros(1))


def join(*, sharded: bool = False, device: str = "") -> Together:
    """Join the processes that torchrun has started; alone, if it has not."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        if sharded:
            raise RunError(
                "there is nobody to share the model with",
                found="--sharded, and one process",
                do="start several: torchrun --nproc-per-node 2 -m vidrio train …",
            )
        return Together()
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
        told = f"{error} is not set" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise RunError(
            "the processes of this run cannot come together",
            found=told,
            do="start them with torchrun, no more on a machine than it has GPUs (or with --device cpu)",
        ) from None
    return Together(distributed.get_rank(), distributed.get_world_size(), local_rank, local_size, sharded)


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
