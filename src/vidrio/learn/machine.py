"""Settings of this machine, its device, and several processes as one.

Waiting: PyTorch's threads synchronise after every operation, thousands of times per step. GCC's OpenMP lets a waiting
thread spin for milliseconds. On a busy machine it then takes the core from the thread that it waits for. Spinning for
microseconds costs nothing on an idle machine and makes training 1.5 times as fast on a busy one.

Memory: PyTorch's library for matrix products (oneDNN) and the layer between the two (ideep) each cache what they have
prepared for 1,024 shapes; batches have many shapes, which hardly ever recur. The C library returns freed memory to the
system at once, which then has to clear every page when it is needed again; if it keeps all of it, it ends up with ever
more fragments. So freed memory is kept, and what is unused is returned now and then.

Several processes, on PyTorch's own engine: `torchrun --nproc-per-node 2 -m vidrio train …`. Each takes its share of a
step's batches; their gradients are summed (on a GPU by NCCL, else by Gloo); then all take the same step. The leading
process prepares everything in the run's folder, which all of them must share, and the others read it there.
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

SPINS = "1000"  # of GCC's OpenMP, before a thread goes to sleep
SHAPES = "64"  # that oneDNN caches; the layers of one step share them
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's names for them, from glibc's malloc.h
PATIENCE = timedelta(days=1)  # one process cleans the data, or validates, while the others wait


def settle() -> None:
    """Let waiting threads sleep soon, and cache few shapes, unless the user has set otherwise. Call it before
    PyTorch is imported."""
    for cached in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(cached, SHAPES)
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = SPINS


def use(threads: int | None) -> None:
    """Set the number of CPU threads (None: PyTorch's choice), and keep freed memory."""
    import torch

    keep_memory()
    if threads:
        torch.set_num_threads(threads)


def keep_memory() -> None:
    """Tell glibc's malloc to keep what is freed; other C libraries and systems are left alone."""
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_MMAP_THRESHOLD, 2**25)


def return_memory() -> None:
    """Return to the system what glibc's malloc keeps and nobody uses: it gives every thread an arena of its own, and
    arenas grow, with holes, long after what is in use has stopped growing."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def find_device(name: str) -> "torch.device":
    """The device of this name. Without a name, a GPU if there is one."""
    import torch

    if not name:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"there is no device {name!r} to train on", found=reason, do="use --device cpu") from None
    return device


# --- several processes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Processes:
    """The rank of this process among all."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """The leading process prepares, reports, validates and writes."""
        return self.rank == 0

    def sum(self, tensor: "torch.Tensor") -> "torch.Tensor":
        """The sum over all processes, in place."""
        if self.size > 1:
            from torch import distributed

            try:
                distributed.all_reduce(tensor)
            except RuntimeError as error:
                found = str(error).splitlines()[0]
                do = "start all of them again with the same command; they go on from the last saved state"
                raise RunError("another process of this training has ended", found=found, do=do) from None
        return tensor

    def of_leader(self, numbers: list[float]) -> list[float]:
        """The leading process's numbers, in all of them."""
        import torch

        own = torch.tensor(numbers, dtype=torch.float64)
        return self.sum(own if self.leads else torch.zeros_like(own)).tolist()

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        self.of_leader([0.0])


ALONE = Processes()


def join(device: str = "") -> Processes:
    """Join the processes that torchrun has started. Without torchrun, this one is alone."""
    import torch
    from torch import distributed

    if os.environ.get("WORLD_SIZE", "1") == "1":
        return ALONE
    if ":" in device:
        found = f"--device {device}, for all of them"
        raise RunError("each process has a GPU of its own", found=found, do="leave it out")
    cuda = torch.cuda.is_available() and device != "cpu"
    try:
        if cuda:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        distributed.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    except (KeyError, ValueError, RuntimeError) as error:
        reason = f"{error} is not set" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise RunError(
            "the processes of this run cannot connect",
            found=reason,
            do="start them with torchrun, no more on a machine than it has GPUs (or with --device cpu)",
        ) from None
    return Processes(distributed.get_rank(), distributed.get_world_size())


def leave() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()
