"""Memory that was freed goes back to the system.

glibc gives every thread that allocates an arena of its own and keeps there what was freed. A stream frees from many
threads in turn, so arenas grow, with holes, long after what is in use has stopped growing.
"""


def give_back() -> bool:
    """All that malloc keeps and nobody uses; whether there was any. Elsewhere than with glibc nothing is done."""
    import ctypes

    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError, TypeError):
        return False
