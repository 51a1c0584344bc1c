"""Held-out sentences as checksums, sorted, in a file that every worker maps: a part of a corpus finds its copies and
near-copies of them by hash, whatever their number, and nothing of the corpus is moved for it."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidrio.data.split import NEAR_COPY, STANDS, key, one_word_less
from vidrio.text.fold import fold

Sides = tuple[str, str]
EXACT, NEAR = 1, 2
CHOSEN = 2  # places to the left for those that were chosen from the corpus itself
REASONS = ("", STANDS, NEAR_COPY, STANDS)  # by the two bits of a kind
PAIRS = 4096  # that are looked up together


def checksums(sides: Sides, near: bool) -> Iterator[tuple[int, int]]:
    """By what a pair is known, and whether that makes it a copy or a near-copy."""
    for side, text in enumerate(sides):
        if folded := fold(text):
            yield key(f"{side}\t{folded}"), EXACT
        for nearly in one_word_less(folded) if near else ():
            yield key(f"{side}\t\t{nearly}"), NEAR


def write_held_out(folder: Path, given: Iterable[Sides], chosen: Iterable[Sides], near: bool) -> None:
    """Put the checksums of sets that are kept apart, and of pairs chosen to be held out, into the folder."""
    keys, kinds = array("Q"), array("B")
    for place, pairs in ((0, given), (CHOSEN, chosen)):
        for sides in pairs:
            for checksum, kind in checksums(sides, near):
                keys.append(checksum)
                kinds.append(kind << place)
    found, number = np.unique(np.frombuffer(keys, np.uint64), return_inverse=True)
    together = np.zeros(len(found), np.uint8)
    np.bitwise_or.at(together, number, np.frombuffer(kinds, np.uint8))
    np.save(folder / "held.npy", found)
    np.save(folder / "held.kinds.npy", together)


def saved(folder: Path, name: str) -> NDArray[Any]:
    """An array in the folder, of which only what is asked for is read."""
    array: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r")
    return array


def repeated(folder: Path, pairs: Iterator[Sides], near: bool) -> NDArray[np.uint8]:
    """Of each pair, which kinds of held-out pairs it repeats."""
    held, kinds = saved(folder, "held"), saved(folder, "held.kinds")
    repeats = [np.zeros(0, np.uint8)]
    while some := list(islice(pairs, PAIRS)):
        mine, ends = array("Q"), [0]
        for sides in some:
            mine.extend(checksum for checksum, _ in checksums(sides, near))
            ends.append(len(mine))
        wanted, numbers = np.frombuffer(mine, np.uint64), np.repeat(np.arange(len(some)), np.diff(ends))
        place = np.searchsorted(held, wanted)
        there = held[place.clip(max=len(held) - 1)] == wanted if len(held) else np.zeros(len(wanted), bool)
        repeats.append(np.zeros(len(some), np.uint8))
        np.bitwise_or.at(repeats[-1], numbers[there], kinds[place[there]])
    return np.concatenate(repeats)
