"""The machine at hand: settings of the process that decide how fast it trains on a CPU, and in how much memory; what it
trains on, and how much memory is free there. PyTorch must not be imported yet for the first two.

Waiting: PyTorch's threads meet after every operation, thousands of times a step. GCC's OpenMP lets the first one spin
for milliseconds, which is well on an idle machine; where anything else runs, it takes the core from the thread that it
waits for. Spinning for some microseconds costs nothing when idle and makes training half as fast again when not.

Preparing little: PyTorch's library for matrix products (oneDNN) keeps what it has prepared for each shape, for 1,024 of
them by default, and the layer between the two (ideep) keeps as many again; both must be told, since the one keeps alive
what the other lets go. Batches have many shapes, which hardly come again: it took 270 MB after some thirty steps of one
run, and was no faster.

Keeping memory: a step allocates and frees hundreds of large tensors. By default the C library hands such memory back at
once, and the system has to clear every page of it when it is wanted again: up to a tenth of a step's time. But batches
have many shapes, and what is kept becomes ever more pieces that fit nothing: after an hour, several times what a step
needs. So now and then all that lies unused is given back.
"""

import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from vidrio.errors import RunError
from vidrio.translate.allocator import give_back

if TYPE_CHECKING:
    import torch

SPINS = "1000"  # of GCC's OpenMP, before a thread goes to sleep
SHAPES = "64"  # that oneDNN keeps something for; the layers of one step share them
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's names for them, from glibc's malloc.h
SHARES = 2  # of a batch, on a CPU: each has gradients of its own
WHILE = 15.0  # seconds; giving back takes up to a fifth of one


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


class Sweeper:
    """Gives memory that nobody uses back to the system, now and then, when it is called at the end of each step."""

    def __init__(self, every: float = WHILE) -> None:
        self._every, self._last = every, time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._last >= self._every:
            give_back()
            self._last = time.monotonic()


# --- what there is ----------------------------------------------------------------------------------------------------


def use(threads: int | None) -> None:
    """Keep memory that was used once, and settle how many CPU threads compute (None: PyTorch's choice)."""
    import torch

    keep_memory()
    if threads:
        torch.set_num_threads(threads)


def shares_for(device: "torch.device") -> int:
    """How many shares a batch is learned from in, side by side. Most operations of a step are too small to be shared
    out among threads, and after each of them all wait for the last; threads that learn from half a batch each wait once
    in a step. A GPU shares out by itself, and an odd number of threads has no halves.
    """
    import torch

    return SHARES if device.type == "cpu" and torch.get_num_threads() % SHARES == 0 else 1


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


def free_memory(device: "torch.device") -> int | None:
    """Bytes that are free on the device; None where nobody can tell."""
    import torch

    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_on_cpu(Path("/")) if device.type == "cpu" else None


def free_on_cpu(root: Path) -> int | None:
    """What Linux could give to a new process, or what is left to this one's group, whichever is less."""
    found = [*_available(root / "proc/meminfo"), *_left_to_groups(root)]
    return min(found) if found else None


def _available(meminfo: Path) -> Iterator[int]:
    for line in _read(meminfo).splitlines():
        if line.startswith("MemAvailable:"):
            yield 1024 * int(line.split()[1])


def _left_to_groups(root: Path) -> Iterator[int]:
    """For this process's control group and all those around it: the limit, less what is in use and cannot be freed."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            names = ("", "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        place, limit_name, used_name, file_name = names
        here = PurePosixPath(path.strip("/"))
        for group in (here, *here.parents):
            folder = root / "sys/fs/cgroup" / place / group
            limit, used = _read(folder / limit_name).strip(), _read(folder / used_name).strip()
            if limit.isdigit() and used.isdigit():
                stat = dict(row.split() for row in _read(folder / "memory.stat").splitlines())
                yield max(0, int(limit) - int(used) + int(stat.get(file_name, 0)))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
