"""Which pairs are copies, and which are held out: decided by 64-bit checksums of the sides, so ten million pairs take
160 MB, and without random numbers: the same pairs, in any order, give the same held-out sentences.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
TRAIN, COPY = 0, -1


def key(text: str) -> int:
    """A checksum of 64 bits: two of ten million different texts share one with a chance of 3 in a million."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def first_of_each(keys: Keys) -> NDArray[np.bool_]:
    """True where a key stands for the first time."""
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def pair_keys(sources: Keys, targets: Keys) -> Keys:
    return sources * np.uint64(0x9E3779B97F4A7C15) ^ targets


def hold_out(sources: Keys, targets: Keys, wanted: Sequence[int], given: tuple[Keys, Keys]) -> NDArray[np.int8]:
    """The part of each pair: 1, 2 … held out, as many as wanted; COPY where a side stands in a held-out pair or in the
    `given` sets; else TRAIN.

    The pairs whose sides stand nowhere else are held out first, so that usually no copy has to be left out for them.
    """
    part = np.where(np.isin(sources, given[0]) | np.isin(targets, given[1]), COPY, TRAIN).astype(np.int8)
    free = np.flatnonzero(part == TRAIN)
    if not len(free) or not sum(wanted):
        return part
    sharing = _times(sources)[free] + _times(targets)[free]
    order = free[np.lexsort((_mixed(pair_keys(sources[free], targets[free])), sharing))]
    ends = np.cumsum([0, *wanted])
    held = order[: ends[-1]]
    part[np.isin(sources, sources[held]) | np.isin(targets, targets[held])] = COPY
    for number, (begin, end) in enumerate(pairwise(ends), 1):
        part[order[begin:end]] = number
    return part


def _times(keys: Keys) -> NDArray[np.int64]:
    """How often each key stands in all of them."""
    _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[which]


def _mixed(keys: Keys) -> Keys:
    """Well mixed bits (the end of splitmix64), so that the lowest is nobody's choice."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
