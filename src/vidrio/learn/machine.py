"""Configure threads, memory, devices and distributed processes.

To train with several processes, run `torchrun --nproc-per-node 2 -m vidrio train …`. Each process computes some of the
batches of a step, and the gradients are summed (with NCCL on GPUs, otherwise with Gloo). The leading process prepares
the run's folder, which all processes must be able to read.
"""

import ctypes
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from vidrio.errors import RunError

if TYPE_CHECKING:
    import torch

SPINS = "1000"  # number of iterations for which a waiting OpenMP thread spins before it sleeps (GCC)
SHAPES = "64"  # number of shapes that oneDNN caches; all layers in a step use the same shapes
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # options of mallopt, from glibc's malloc.h
PATIENCE = timedelta(days=1)  # maximum time to wait for the leading process, e.g. while it cleans the data or validates


def settle() -> None:
    """Set environment variables for PyTorch, unless the user has set them. Call this before importing PyTorch."""
    # By default, oneDNN and PyTorch each cache operations for 1,024 shapes, but few shapes recur in later batches.
    for cached in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(cached, SHAPES)
    # Threads synchronise thousands of times per step. On a busy machine, a thread that spins for milliseconds blocks a
    # core that another thread needs.
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = SPINS


def use(threads: int | None) -> None:
    """Set the number of CPU threads (None means PyTorch's default), and make glibc keep freed memory."""
    import torch

    keep_memory()
    if threads:
        torch.set_num_threads(threads)


def keep_memory() -> None:
    """Make glibc keep freed memory, so that the kernel does not have to zero new pages for every large allocation."""
    _glibc("mallopt", _TRIM_THRESHOLD, 2**31 - 1)
    _glibc("mallopt", _MMAP_THRESHOLD, 2**25)


def return_memory() -> None:
    """Return unused memory to the system. Otherwise, glibc's per-thread arenas fragment and keep growing."""
    _glibc("malloc_trim", 0)


def _glibc(function: str, *arguments: int) -> None:
    with suppress(AttributeError, OSError, TypeError):  # not glibc
        getattr(ctypes.CDLL(None), function)(*arguments)


def find_device(name: str) -> "torch.device":
    """Return the device with this name. If the name is empty, return a GPU if there is one, or else the CPU."""
    import torch

    if not name:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device).item()  # a device may lack float64, which the loss needs
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"there is no device {name!r} to train on", found=reason, do="use --device cpu") from None
    return device


# --- distributed processes --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Processes:
    """The rank of this process, and the total number of processes."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the leading process, which prepares, reports, validates and writes."""
        return self.rank == 0

    def sum(self, tensor: "torch.Tensor") -> "torch.Tensor":
        """Sum a tensor over all processes, in place."""
        if self.size > 1:
            from torch import distributed

            try:
                distributed.all_reduce(tensor)
            except RuntimeError as error:
                found = str(error).splitlines()[0]
                do = "restart all processes with the same command; they resume from the last checkpoint"
                raise RunError("another training process has terminated", found=found, do=do) from None
        return tensor

    def of_leader(self, numbers: list[float]) -> list[float]:
        """Return the leading process's numbers in every process. The other processes wait for them."""
        import torch

        own = torch.tensor(numbers, dtype=torch.float64)
        return self.sum(own if self.leads else torch.zeros_like(own)).tolist()


ALONE = Processes()


def join(device: str = "") -> Processes:
    """Join the process group that torchrun started. Without torchrun, return a group of one process."""
    import torch
    from torch import distributed

    if os.environ.get("WORLD_SIZE", "1") == "1":
        return ALONE
    if ":" in device:
        found = f"--device {device} for all processes"
        raise RunError("each process needs a GPU of its own", found=found, do="omit --device")
    cuda = torch.cuda.is_available() and device != "cpu"
    try:
        if cuda:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    except (KeyError, ValueError, RuntimeError) as error:
        reason = f"{error} is not set" if isinstance(error, KeyError) else str(error).splitlines()[0]
        do = "start them with torchrun, with at most one process per GPU (or use --device cpu)"
        raise RunError("the processes of this run cannot connect", found=reason, do=do) from None
    return Processes(distributed.get_rank(), distributed.get_world_size())


def leave() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()
