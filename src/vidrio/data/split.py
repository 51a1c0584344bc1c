"""What needs all pairs: duplicates, and held-out sentences that training never sees, not even in part.

All of it works on 64-bit checksums of the sides, so that ten million pairs take 240 MB and no random numbers decide:
the same pairs, in any order, give the same held-out sentences.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from vidrio.text.fold import fold

Keys = NDArray[np.uint64]
TRAIN, DROPPED = 0, -1
STANDS, NEAR_COPY = "stands in a held-out set", "near-copy of a held-out sentence"
_LARGEST_FAMILY = 10  # pairs; larger families of paraphrases stay in training
_FEWEST_WORDS = 5  # of a sentence whose near-copies are looked for


def key(text: str) -> int:
    """A checksum of 64 bits: two of ten million different texts share one with a chance of 3 in a million."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def first_of_each(keys: Keys) -> NDArray[np.bool_]:
    """True where a key stands for the first time."""
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def families(sources: Keys, targets: Keys) -> NDArray[np.int64]:
    """Pairs that share a source or a target, directly or through others, have one family: its lowest pair's number."""
    _, source = np.unique(sources, return_inverse=True)
    _, target = np.unique(targets, return_inverse=True)
    family = np.arange(len(sources), dtype=np.int64)
    while True:
        before = family
        for side in (source, target):
            lowest = np.full(side.max(initial=-1) + 1, len(family))
            np.minimum.at(lowest, side, family)
            family = lowest[side]
        family = family[family]  # what a pair has joined may have joined another: halves the ways that are left
        if np.array_equal(before, family):
            return family


def held_out(sources: Keys, targets: Keys, wanted: Sequence[int]) -> NDArray[np.int8]:
    """Parts 1, 2 … with as many pairs as wanted, one a family; the others of such a family DROPPED; the rest TRAIN."""
    part = np.full(len(sources), TRAIN, dtype=np.int8)
    if not len(sources) or not sum(wanted):
        return part
    lowest, family, size = np.unique(families(sources, targets), return_inverse=True, return_counts=True)
    mixed = _mixed(sources ^ _mixed(targets))
    rank = np.full(len(lowest), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(rank, family, mixed)  # a family's rank is its pairs' lowest, wherever they stand
    by_rank = np.argsort(rank, kind="stable")
    chosen = by_rank[size[by_rank] <= _LARGEST_FAMILY]
    of_family = np.zeros(len(lowest), dtype=np.int8)
    for number, (begin, end) in enumerate(zip(np.cumsum([0, *wanted]), np.cumsum(wanted), strict=False), 1):
        of_family[chosen[begin:end]] = number
    one_a_family = (mixed == rank[family]) & first_of_each(mixed)
    part[of_family[family] > 0] = DROPPED
    part[one_a_family] = of_family[family][one_a_family]
    return part


class Apart:
    """Held-out sentences, and whether another pair repeats one of them."""

    def __init__(self, *, near: bool = True) -> None:
        self.near = near
        self._sentences: tuple[set[str], set[str]] = (set(), set())
        self._nearly: tuple[set[str], set[str]] = (set(), set())

    def add(self, source: str, target: str) -> None:
        """Keep this pair apart."""
        for side, text in enumerate((source, target)):
            folded = fold(text)
            if folded:
                self._sentences[side].add(folded)
            if self.near:
                self._nearly[side].update(one_word_less(folded))

    def fault(self, source: str, target: str) -> str:
        """Why a pair must not be learned from; empty if it may."""
        if not any(self._sentences):
            return ""
        folded = fold(source), fold(target)
        if any(text in self._sentences[side] for side, text in enumerate(folded)):
            return STANDS
        if self.near:
            for side, text in enumerate(folded):
                if not self._nearly[side].isdisjoint(one_word_less(text)):
                    return NEAR_COPY
        return ""


def one_word_less(folded: str) -> list[str]:
    """The sentence, and it without each of its words: sentences that share one of these differ in one word at most.

    None for a short sentence: those are alike by nature.
    """
    words = folded.split()
    if len(words) < _FEWEST_WORDS:
        return []
    return [folded, *(" ".join(words[:i] + words[i + 1 :]) for i in range(len(words)))]


def _mixed(keys: Keys) -> Keys:
    """Well mixed bits (the end of splitmix64), so that the lowest is nobody's choice."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
