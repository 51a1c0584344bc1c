"""Pairs as ids, to learn from: in memory, or on disk and memory-mapped (ten million take a few megabytes of memory).

    source.ids   target.ids        ids of all sentences, one after the other (uint16; uint32 above 65,536 tokens)
    source.starts   target.starts  where each sentence begins, and the end of the last (uint64)

A pair takes two bytes (or four) for each token and 16 more. No start or end tokens are stored.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidrio.data.progress import Work
from vidrio.errors import DataError
from vidrio.model.files import write_all

Ids = NDArray[np.integer[Any]]
Sentences = tuple[NDArray[np.int64], NDArray[np.int64]]  # their ids, one after the other, and their lengths
Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]  # many texts → the ids of each
Repeats = Sequence[tuple[int, float]]  # so many pairs, each so many times in an epoch; then so many others …
_ROUND = 10_000  # pairs that are encoded together, on all cores
_SIDES = ("source", "target")


@dataclass(frozen=True)
class Side:
    """All sentences of one side, without special tokens."""

    ids: Ids
    starts: Ids
    lengths: NDArray[np.int32]  # tokens of each sentence

    @staticmethod
    def of(ids: Ids, starts: Ids) -> "Side":
        return Side(ids, starts, np.diff(starts).astype(np.int32))

    def gather(self, which: Ids) -> Sentences:
        """The ids of some sentences, one after the other, and their lengths."""
        starts = self.starts[which].astype(np.int64)
        lengths = self.starts[np.asarray(which) + 1].astype(np.int64) - starts
        begins = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)
        return self.ids[places].astype(np.int64), lengths


@dataclass(frozen=True)
class Examples:
    """What is learned from: pairs of sentences, wherever they lie."""

    source: Side
    target: Side
    repeats: Repeats

    def __len__(self) -> int:
        return len(self.source.starts) - 1


def in_memory(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Examples:
    """Pairs of ids in memory, as examples to learn from."""
    sides = []
    for side in (0, 1):
        ids = np.fromiter(chain.from_iterable(pair[side] for pair in pairs), dtype=np.int64)
        sides.append(Side.of(ids, np.cumsum([0, *(len(pair[side]) for pair in pairs)])))
    return Examples(sides[0], sides[1], [(len(pairs), 1.0)])


def write(
    folder: Path, pairs: Iterable[tuple[str, str]], encode: tuple[Encode, Encode], vocabulary: int, encoding: Work
) -> None:
    """Encode pairs into a folder, a round at a time."""
    folder.mkdir()
    dtype, ends, pairs = _dtype(vocabulary), dict.fromkeys(_SIDES, 0), iter(pairs)
    with ExitStack() as stack:
        names = [f"{side}.{what}" for side in _SIDES for what in ("ids", "starts")]
        # Unbuffered: a round is written at once, and closing a file never fails.
        files = {name: stack.enter_context((folder / name).open("wb", buffering=0)) for name in names}
        for side in _SIDES:
            write_all(files[f"{side}.starts"], np.zeros(1, dtype=np.uint64).tobytes())
        while rows := list(islice(pairs, _ROUND)):
            for side, to_ids, texts in zip(_SIDES, encode, zip(*rows, strict=True), strict=True):
                encoded = to_ids(texts)
                starts = ends[side] + np.cumsum([len(ids) for ids in encoded], dtype=np.uint64)
                write_all(files[f"{side}.ids"], np.fromiter(chain.from_iterable(encoded), dtype=dtype).tobytes())
                write_all(files[f"{side}.starts"], starts.tobytes())
                ends[side] = int(starts[-1])
            encoding.done += len(rows)
        for file in files.values():
            os.fsync(file.fileno())


def read(folder: Path, vocabulary: int, repeats: Repeats) -> Examples:
    """What `write` has written, checked for being whole."""
    try:
        sides = [
            Side.of(_mapped(folder / f"{s}.ids", _dtype(vocabulary)), _mapped(folder / f"{s}.starts", _UINT64))
            for s in _SIDES
        ]
        count = sum(pairs for pairs, _ in repeats)
        if not all(len(side.starts) == count + 1 and side.starts[-1] == len(side.ids) for side in sides):
            raise ValueError(f"files of other sizes than those of {count:,} pairs")
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder} holds no readable tokens", found=str(error), do=f"remove {folder.parent}: it is made again"
        ) from None
    return Examples(sides[0], sides[1], repeats)


_UINT64 = np.dtype(np.uint64)


def _dtype(vocabulary: int) -> np.dtype:
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)


def _mapped(path: Path, dtype: np.dtype) -> Ids:
    """A file as a read-only array; of no bytes, an empty one, which cannot be mapped."""
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
