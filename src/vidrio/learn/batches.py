"""Group sentence pairs into batches that have about the same number of tokens and contain sentences of similar length.

    source.ids   target.ids        concatenated ids of all sentences (uint16, or uint32 for larger vocabularies)
    source.starts   target.starts  the offset of each sentence, followed by the total number of ids (uint64)

The files are memory-mapped. The order of the batches depends only on the seed and the epoch, so a run can stop after
any batch and resume exactly where it stopped.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidrio.data.progress import Work
from vidrio.errors import DataError
from vidrio.model.config import ModelConfig
from vidrio.model.files import write_all

Ids = NDArray[np.integer[Any]]
Sentences = tuple[NDArray[np.int64], NDArray[np.int64]]  # the concatenated ids, and the length of each sentence
Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]  # texts → ids of each text
Repeats = Sequence[tuple[int, float]]  # the number of pairs and the weight (uses per epoch) of each corpus
Position = tuple[int, int]  # the epoch, and the index of the next batch in it
IGNORE = -1  # marks padding in the targets; ignored by the loss
_ROUND = 10_000  # number of pairs per encoding call, which uses all cores
_SIDES = ("source", "target")

# --- pairs as ids -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """The ids of all source sentences or all target sentences, without special tokens."""

    ids: Ids
    starts: Ids
    lengths: NDArray[np.int32]  # number of tokens in each sentence

    @staticmethod
    def of(ids: Ids, starts: Ids) -> "Side":
        return Side(ids, starts, np.diff(starts).astype(np.int32))

    def gather(self, which: Ids) -> Sentences:
        """Return the concatenated ids of the selected sentences, and their lengths."""
        starts = self.starts[which].astype(np.int64)
        lengths = self.starts[np.asarray(which) + 1].astype(np.int64) - starts
        begins = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)
        return self.ids[places].astype(np.int64), lengths


@dataclass(frozen=True)
class Examples:
    """Encoded sentence pairs, in memory or memory-mapped from disk."""

    source: Side
    target: Side
    repeats: Repeats

    def __len__(self) -> int:
        return len(self.source.starts) - 1


def in_memory(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Examples:
    """Build `Examples` from pairs of id sequences."""
    sides = []
    for side in (0, 1):
        ids = np.fromiter(chain.from_iterable(pair[side] for pair in pairs), dtype=np.int64)
        sides.append(Side.of(ids, np.cumsum([0, *(len(pair[side]) for pair in pairs)])))
    return Examples(sides[0], sides[1], [(len(pairs), 1.0)])


def write(
    folder: Path, pairs: Iterable[tuple[str, str]], encode: tuple[Encode, Encode], vocabulary: int, encoding: Work
) -> None:
    """Encode pairs in chunks, and write the ids to files in a folder."""
    dtype, ends, pairs = np.uint16 if vocabulary <= 1 << 16 else np.uint32, dict.fromkeys(_SIDES, 0), iter(pairs)
    with ExitStack() as stack:
        names = [f"{side}.{what}" for side in _SIDES for what in ("ids", "starts")]
        # Without buffering, errors are raised when data is written, not when the file is closed.
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
    """Open the files written by `write`, and check that they are complete."""
    try:
        dtype = np.uint16 if vocabulary <= 1 << 16 else np.uint32
        sides = [
            Side.of(_mapped(folder / f"{s}.ids", dtype), _mapped(folder / f"{s}.starts", np.uint64)) for s in _SIDES
        ]
        count = sum(pairs for pairs, _ in repeats)
        if not all(len(side.starts) == count + 1 and side.starts[-1] == len(side.ids) for side in sides):
            raise ValueError(f"the sizes of the files do not match {count:,} pairs")
    except (OSError, ValueError) as error:
        do = f"remove {folder.parent} to begin again"
        raise DataError(f"{folder} holds no readable tokens", found=str(error), do=do) from None
    return Examples(sides[0], sides[1], repeats)


def _mapped(path: Path, dtype: type) -> Ids:
    """Memory-map a file as a read-only array, or return an empty array for an empty file, which cannot be mapped."""
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


# --- batches ----------------------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """A padded batch. The decoder reads `target_BT` and learns to predict `expected_BT`, shifted by one position."""

    source_BS: Tensor
    source_lengths_B: Tensor
    target_BT: Tensor
    expected_BT: Tensor  # includes the end token, and is padded with IGNORE; for a classifier, one column of classes
    n_predictions: int
    n_tokens: int  # source and target tokens, without padding

    def to(self, device: torch.device) -> "Batch":
        return self._replace(**{name: getattr(self, name).to(device) for name in self._fields[:4]})


def epoch_pairs(repeats: Repeats, random: np.random.Generator) -> Ids:
    """Return the pair indices of an epoch. Weight 2 repeats every pair; weight 0.3 selects a random 30 % of them."""
    some = []
    first = 0
    for count, weight in repeats:
        pairs = np.arange(first, first + count)
        whole, part = int(weight), weight - int(weight)
        some += [pairs] * whole
        if part:
            some.append(random.permutation(pairs)[: round(count * part)])
        first += count
    return np.concatenate(some)


def plan(examples: Examples, most: int, longest: int, key: Sequence[int]) -> list[Ids]:
    """Return the batches of an epoch, in order, as arrays of pair indices.

    `most` is the maximum number of tokens per batch, including padding: (longest source + longest target) × number of
    pairs. Pairs whose source or target has more than `longest` tokens are omitted.
    """
    random = np.random.default_rng(list(key))
    pairs = epoch_pairs(examples.repeats, random)
    # lengths including the end token
    sources, targets = examples.source.lengths[pairs] + 1, examples.target.lengths[pairs] + 1
    fit = np.maximum(sources, targets) <= longest
    pairs, sources, targets = pairs[fit], sources[fit], targets[fit]
    tie = random.permutation(len(pairs))  # shuffles pairs that have the same lengths
    # Alternate between ascending and descending target lengths, so that they never jump when the source length changes.
    wave = np.where(sources % 2 == 0, targets, -targets)
    order = np.lexsort((tie, wave, sources))
    pairs, sources, targets = pairs[order], sources[order], targets[order]
    batches, start = [], 0
    while start < len(pairs):
        window = slice(start, start + max(1, most // int(sources[start])))
        width = np.maximum.accumulate(sources[window]) + np.maximum.accumulate(targets[window])
        cost = width * np.arange(1, len(width) + 1)
        size = max(1, int(np.searchsorted(cost, most, side="right")))
        batches.append(pairs[start : start + size])
        start += size
    return [batches[i] for i in random.permutation(len(batches))]


def collate(examples: Examples, which: Ids, config: ModelConfig) -> Batch:
    """Build a batch from the pairs with these indices, padding each side to its longest sentence."""
    special = config.special
    source, target = (side.gather(which) for side in (examples.source, examples.target))
    source_BS, source_lengths = pad(*source, special.pad, after=config.source_close if config.has_encoder else ())
    if config.has_decoder:
        target_BT, lengths = pad(*target, special.pad, before=[special.start])
        expected_BT, _ = pad(*target, IGNORE, after=[special.end])
    else:
        expected_BT, lengths = pad(*target, IGNORE)
        target_BT = expected_BT[:, :0]
    return Batch(
        torch.from_numpy(source_BS),
        torch.from_numpy(source_lengths),
        torch.from_numpy(target_BT),
        torch.from_numpy(expected_BT),
        int(lengths.sum()),
        int(source_lengths.sum() + lengths.sum()),
    )


def pad(
    ids: Ids, lengths: NDArray[np.int64], filler: int, *, before: Sequence[int] = (), after: Sequence[int] = ()
) -> Sentences:
    """Split concatenated sentences into padded rows, adding the given tokens to each row. Returns the rows and
    lengths."""
    whole = lengths + len(before) + len(after)
    rows = np.full((len(lengths), int(whole.max(initial=0))), filler, dtype=np.int64)
    places = np.arange(rows.shape[1])
    rows[(places >= len(before)) & (places < len(before) + lengths[:, None])] = ids
    for token in before:
        rows[:, 0] = token
    for token in after:
        rows[np.arange(len(rows)), whole - 1] = token
    return rows, whole


class Streamed(NamedTuple):
    """The pairs of a batch, and the position in the stream after the batch."""

    pairs: Ids
    position: Position
    epoch: float  # number of completed epochs, including a fraction for the current epoch


def stream(examples: Examples, most: int, longest: int, seed: int, position: Position) -> Iterator[Streamed]:
    """Yield batches indefinitely, starting at `position`."""
    epoch, first = position
    while True:
        batches = plan(examples, most, longest, (seed, epoch))
        if not batches:
            found = "the corpora's weights, or the maximum length, leave none"
            raise DataError("an epoch contains no pairs", found=found, do="use larger weights: file.tsv@1")
        for done in range(first + 1, len(batches) + 1):
            after = (epoch, done) if done < len(batches) else (epoch + 1, 0)
            yield Streamed(batches[done - 1], after, epoch + done / len(batches))
        epoch, first = epoch + 1, 0
