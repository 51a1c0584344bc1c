"""Settings of the process that decide how fast it trains on a CPU, and in how much memory. PyTorch must not be imported
yet for the first two.

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

SPINS = "1000"  # of GCC's OpenMP, before a thread goes to sleep
SHAPES = "64"  # that oneDNN keeps something for; the layers of one step share them
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's names for them, from glibc's malloc.h
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


def give_back() -> bool:
    """All that malloc keeps and nobody uses; whether there was any. Elsewhere than with glibc nothing is done."""
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError, TypeError):
        return False
