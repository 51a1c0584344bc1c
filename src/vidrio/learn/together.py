"""Several processes that learn as one, on PyTorch's own engine: `torchrun --nproc-per-node 2 -m vidrio train …`.

Each process takes its share of a step's batches; their gradients are added up; then all take the same step.
"""

import os
from dataclasses import dataclass

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Together:
    """Which of how many processes this is."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """One process tells, validates and writes."""
        return self.rank == 0

    def add_up(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def wait(self) -> None:
        if self.size > 1:
            distributed.barrier()


def join() -> Together:
    """Join the processes that torchrun has started; alone, if it has not."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Together()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if cuda else "gloo")
    return Together(distributed.get_rank(), size)


def leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()
