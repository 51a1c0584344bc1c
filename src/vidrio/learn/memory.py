"""Keeping memory that was used once, instead of giving it back to the system and asking for it again in every step.

A training step allocates and frees hundreds of large tensors. By default the C library hands such memory back at once,
and the system has to clear every page of it when it is wanted again: up to a tenth of a step's time on a CPU.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's names for them, from glibc's malloc.h


def keep_memory() -> bool:
    """Tell glibc's malloc to keep what is freed; elsewhere (other C libraries, other systems) nothing is done."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1) and mallopt(_MMAP_THRESHOLD, 2**25))
