"""Several processes that learn as one, on PyTorch's own engine: `torchrun --nproc-per-node 2 -m vidrio train …`.

Each process takes its share of a step's batches; their gradients are summed; then all take the same step. Numbers on a
GPU travel by NCCL, all others by Gloo. Text travels as bytes: nothing is pickled.

The leading process makes the data and writes everything; the others read the data in the run's folder, which all of
them must share.
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed

from vidrio.errors import RunError

PATIENCE = timedelta(days=1)  # one process cleans the data, or validates, while the others wait


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """One process reports, validates and writes."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def broadcast(self, tensor: Tensor) -> Tensor:
        """The leading process's numbers, in place."""
        if self.size > 1:
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
        if cuda:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    except (KeyError, ValueError, RuntimeError) as error:
        reason = f"{error} is not set" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise RunError(
            "the processes of this run cannot come together",
            found=reason,
            do="start them with torchrun, no more on a machine than it has GPUs (or with --device cpu)",
        ) from None
    return Processes(distributed.get_rank(), distributed.get_world_size())


def leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()
