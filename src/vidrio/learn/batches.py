"""Sentence pairs → batches of about the same number of tokens, each of sentences of about the same lengths.

The order is a function of the seed and the epoch alone: whoever knows seed, epoch and batch number knows what comes
next, so a run can stop anywhere and go on exactly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from vidrio.config import ModelConfig

IGNORE = -1  # a target that is padding: nothing to predict


class Examples(Protocol):
    """Where the ids come from: a memory-mapped store, or anything else that can tell lengths before it is read."""

    source_lengths: np.ndarray
    target_lengths: np.ndarray

    def source(self, index: int) -> np.ndarray: ...
    def target(self, index: int) -> np.ndarray: ...


@dataclass(frozen=True)
class Batch:
    """What one step learns from. The decoder reads `target_BT` and should say `expected_BT`: the same, one place on."""

    source_BS: Tensor
    source_lengths_B: Tensor
    target_BT: Tensor
    expected_BT: Tensor  # words, closed by the end token; IGNORE where padded. A classifier's classes: one column
    n_predictions: int
    n_tokens: int  # of source and target, without padding

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        source, lengths = self.source_BS.to(device), self.source_lengths_B.to(device)
        target, expected = self.target_BT.to(device), self.expected_BT.to(device)
        return Batch(source, lengths, target, expected, self.n_predictions, self.n_tokens)


def plan(source_lengths: np.ndarray, target_lengths: np.ndarray, most: int, key: Sequence[int]) -> list[np.ndarray]:
    """The batches of one epoch, as arrays of pair numbers, in the order to take them.

    `most` bounds (longest source + longest target) × sentences: what is computed, padding included.
    """
    random = np.random.default_rng(list(key))
    tie = random.permutation(len(source_lengths))  # equal lengths: other neighbours in every epoch
    # Targets alternately up and down, so that neighbours stay alike where the source length changes.
    wave = np.where(source_lengths % 2 == 0, target_lengths, -target_lengths)
    order = np.lexsort((tie, wave, source_lengths))
    sources, targets = source_lengths[order] + 1, target_lengths[order] + 1
    batches, start = [], 0
    while start < len(order):
        window = slice(start, start + max(1, most // int(sources[start] + 1)))
        width = np.maximum.accumulate(sources[window]) + np.maximum.accumulate(targets[window])
        cost = width * np.arange(1, len(width) + 1)
        size = max(1, int(np.searchsorted(cost, most, side="right")))
        batches.append(order[start : start + size])
        start += size
    return [batches[i] for i in random.permutation(len(batches))]


def collate(examples: Examples, indices: np.ndarray, config: ModelConfig) -> Batch:
    """Look the pairs up and pad them to the longest."""
    special = config.special
    sources = (
        [examples.source(int(i)) for i in indices] if config.has_encoder else [np.zeros(0, np.int64)] * len(indices)
    )
    targets = [examples.target(int(i)) for i in indices]
    if config.source_end and config.has_encoder:
        sources = [np.append(ids, special.end) for ids in sources]
    lengths = np.array([len(ids) for ids in sources])
    if config.has_decoder:
        target = pad_rows([np.append(special.start, ids) for ids in targets], special.pad)
        expected = pad_rows([np.append(ids, special.end) for ids in targets], IGNORE)
    else:
        target, expected = np.zeros((len(targets), 0), dtype=np.int64), pad_rows(targets, IGNORE)
    return Batch(
        torch.from_numpy(pad_rows(sources, special.pad)),
        torch.from_numpy(lengths),
        torch.from_numpy(target),
        torch.from_numpy(expected),
        int((expected != IGNORE).sum()),
        int(lengths.sum() + (expected != IGNORE).sum()),
    )


def pad_rows(rows: Sequence[np.ndarray], filler: int) -> np.ndarray:
    padded = np.full((len(rows), max(len(row) for row in rows)), filler, dtype=np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


@dataclass(frozen=True)
class Position:
    """How far a run is in its data."""

    epoch: int = 0
    batch: int = 0  # of this epoch, the next one to take


def stream(
    examples: Examples, config: ModelConfig, most: int, seed: int, position: Position
) -> Iterator[tuple[Position, Batch]]:
    """Batches without end, from a position on; each with the position after it."""
    epoch, first = position.epoch, position.batch
    while True:
        batches = plan(examples.source_lengths, examples.target_lengths, most, (seed, epoch))
        for number in range(first, len(batches)):
            after = Position(epoch, number + 1) if number + 1 < len(batches) else Position(epoch + 1, 0)
            yield after, collate(examples, batches[number], config)
        epoch, first = epoch + 1, 0
