"""Two settings of the process that decide how fast it trains on a CPU. PyTorch must not be imported yet for the first.

Waiting: PyTorch's threads meet after every operation, thousands of times a step. GCC's OpenMP lets the first one spin
for milliseconds, which is well on an idle machine; where anything else runs, it takes the core from the thread that it
waits for. Spinning for some microseconds costs nothing when idle and makes training half as fast again when not.

Keeping memory: a step allocates and frees hundreds of large tensors. By default the C library hands such memory back at
once, and the system has to clear every page of it when it is wanted again: up to a tenth of a step's time.
"""

import ctypes
import os

SPINS = "1000"  # of GCC's OpenMP, before a thread goes to sleep
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's names for them, from glibc's malloc.h


def wait_politely() -> None:
    """Let threads that wait go to sleep soon. The user's own setting comes first."""
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = SPINS


def keep_memory() -> bool:
    """Tell glibc's malloc to keep what is freed; elsewhere (other C libraries, other systems) nothing is done."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1) and mallopt(_MMAP_THRESHOLD, 2**25))
