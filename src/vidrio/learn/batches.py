"""Sentence pairs as ids → batches of about the same number of tokens, each of sentences of about the same lengths.

The order is a function of the seed and the epoch alone: seed, epoch and batch number determine what comes next, so a
run can stop anywhere and continue exactly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidrio.data.store import Examples, Ids, Repeats, Sentences
from vidrio.model.config import ModelConfig

IGNORE = -1  # a target that is padding: nothing to predict


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
        tensors: dict[str, Any] = {
            name: part.to(device) for name, part in vars(self).items() if isinstance(part, Tensor)
        }
        return replace(self, **tensors)


def epoch_pairs(repeats: Repeats, random: np.random.Generator) -> Ids:
    """The pairs of one epoch: 1 is each pair once, 2 twice, 0.3 three in ten of them, other ones in every epoch."""
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
    """The batches of one epoch, as arrays of pair numbers, in the order to take them.

    `most` bounds (longest source + longest target) × sentences: what is computed, padding included. Pairs with a side
    of more than `longest` tokens are left out.
    """
    random = np.random.default_rng(list(key))
    pairs = epoch_pairs(examples.repeats, random)
    # One more on each side: the end token.
    sources, targets = examples.source.lengths[pairs] + 1, examples.target.lengths[pairs] + 1
    fit = np.maximum(sources, targets) <= longest
    pairs, sources, targets = pairs[fit], sources[fit], targets[fit]
    tie = random.permutation(len(pairs))  # equal lengths: other neighbours in every epoch
    # Targets alternately up and down, so that neighbours stay alike where the source length changes.
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
    """Look the pairs up and pad them to the longest."""
    special = config.special
    source, target = (side.gather(which) for side in (examples.source, examples.target))
    source_BS, source_lengths = np.zeros((len(which), 0), dtype=np.int64), np.zeros(len(which), dtype=np.int64)
    if config.has_encoder:
        end = list(config.source_close)
        source_BS, source_lengths = pad(*source, special.pad, after=end)
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
    """Sentences that lie one after the other, as rows of the same length, perhaps with a token before or after each."""
    whole = lengths + len(before) + len(after)
    rows = np.full((len(lengths), int(whole.max(initial=0))), filler, dtype=np.int64)
    places = np.arange(rows.shape[1])
    rows[(places >= len(before)) & (places < len(before) + lengths[:, None])] = ids
    for token in before:
        rows[:, 0] = token
    for token in after:
        rows[np.arange(len(rows)), whole - 1] = token
    return rows, whole


@dataclass(frozen=True)
class Position:
    """How far a run is in its data."""

    epoch: int = 0
    batch: int = 0  # of this epoch, the next one to take


class Streamed(NamedTuple):
    """A batch to come, and where the run is after it."""

    examples: Examples
    pairs: Ids
    position: Position
    epoch: float  # passes over the data


def stream(encodings: Sequence[Examples], most: int, longest: int, seed: int, position: Position) -> Iterator[Streamed]:
    """Batches without end, from a position on. The pairs may be encoded in several ways: each pass takes the next."""
    epoch, first = position.epoch, position.batch
    while True:
        examples = encodings[epoch % len(encodings)]
        batches = plan(examples, most, longest, (seed, epoch))
        for done in range(first + 1, len(batches) + 1):
            after = Position(epoch, done) if done < len(batches) else Position(epoch + 1, 0)
            yield Streamed(examples, batches[done - 1], after, epoch + done / len(batches))
        epoch, first = epoch + 1, 0
