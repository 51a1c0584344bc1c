"""This machine: settings of the process that decide how fast it trains on a CPU and in how much memory, the
device to train on. PyTorch must not be imported yet for `settle`.

Waiting: PyTorch's threads meet after every operation, thousands of times a step. GCC's OpenMP lets the first one spin
for milliseconds, which is well on an idle machine; where anything else runs, it takes the core from the thread that it
waits for. Spinning for some microseconds costs nothing when idle and makes training half as fast again when not.

Memory: PyTorch's library for matrix products (oneDNN) and the layer between the two (ideep) each keep what they have
prepared for 1,024 shapes; batches have many shapes, which hardly come again. The C library hands freed memory back at
once, and the system has to clear every page of it when it is wanted again; if it keeps all of it, it ends up with ever
more pieces that fit nothing. So freed memory is kept, and what nobody uses is given back now and then.
"""

import ctypes
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from vidrio.errors import RunError

if TYPE_CHECKING:
    import torch

SPINS = "1000"  # of GCC's OpenMP, before a thread goes to sleep
SHAPES = "64"  # that oneDNN keeps something for; the layers of one step share them
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's names for them, from glibc's malloc.h


def settle() -> None:
    """Let threads that wait go to sleep soon, and little be kept prepared. The user's own settings come first."""
    for keeps in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(keeps, SHAPES)
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = SPINS


def keep_memory() -> bool:
    """Tell glibc's malloc to keep what is freed; elsewhere (other C libraries, other systems) nothing is done."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1) and mallopt(_MMAP_THRESHOLD, 2**25))


def give_back_memory() -> None:
    """Give all that malloc keeps and nobody uses back to the system. glibc only: it gives every thread an arena of its
    own, and arenas grow, with holes, long after what is in use has stopped growing."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def use(threads: int | None) -> None:
    """Keep memory that was used once, and settle how many CPU threads compute (None: PyTorch's choice)."""
    import torch

    keep_memory()
    if threads:
        torch.set_num_threads(threads)


def find_device(name: str) -> "torch.device":
    """The device of this name; without one, a GPU where there is one."""
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
