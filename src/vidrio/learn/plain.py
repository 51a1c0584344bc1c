"""Training at its plainest: every sentence pair in every step, no dropout, no batches. For models of a lesson's size.

Everything that `train.py` does for large data is this loop, with more around it.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vidrio.errors import RunError
from vidrio.learn.batches import Examples, Ids, collate
from vidrio.learn.net import model
from vidrio.learn.net.loss import smoothed_cross_entropy
from vidrio.learn.net.parameters import Weights
from vidrio.learn.optimiser import Adam, clip
from vidrio.learn.run.snapshots import is_due
from vidrio.learn.schedule import Schedule
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters


class Listed:
    """Sentences in memory, as ids."""

    def __init__(self, sentences: Sequence[Sequence[int]]) -> None:
        self.sentences = [np.array(ids, dtype=np.int64) for ids in sentences]
        self.lengths = np.array([len(ids) for ids in sentences], dtype=np.int32)

    def gather(self, which: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.concatenate([self.sentences[i] for i in which]), self.lengths[which].astype(np.int64)


def in_memory(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Examples:
    """Pairs of ids in memory, as examples to learn from."""
    return Examples(Listed([pair[0] for pair in pairs]), Listed([pair[1] for pair in pairs]), [(len(pairs), 1.0)])


def fit(
    config: ModelConfig,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    steps: int,
    rate: float,
    seed: int,
    smoothing: float,
    decay: float,
    watch: Callable[[int, float], None] = lambda step, loss: None,
    keep: Callable[[int, dict[str, np.ndarray]], None] = lambda step, parameters: None,
) -> dict[str, np.ndarray]:
    """Learn these pairs, in float64 and with cosine decay; the same parameters for the same arguments and machine.

    `keep` gets the parameters at the ages of which snapshots are made, 0 before the first step.
    """
    weights = Weights.from_arrays(config, random_parameters(config, np.random.default_rng(seed)), torch.float64)
    batch = collate(in_memory(pairs), np.arange(len(pairs)), config)
    hidden = model.padding(batch.source_BS, batch.source_lengths_B)
    schedule = Schedule("cosine", rate, warmup=200)
    adam, decays = Adam.start(weights.flat), torch.full_like(weights.flat, decay)
    keep(0, weights.to_arrays())
    for step in range(1, steps + 1):
        net = model.build(weights)
        memory = model.encode(net, batch.source_BS, batch.source_lengths_B)
        rows = model.decode(net, batch.target_BT, memory, hidden)
        loss, nll = smoothed_cross_entropy(
            rows.flatten(0, 1), *model.output(net), batch.expected_BT.flatten(), smoothing
        )
        loss.backward()
        gradient = weights.gradient((net.weights, net.tables)) / batch.n_predictions
        clip(gradient, 1.0)
        adam.update(weights.flat, gradient, schedule.rate(step, step / (steps + 1)), decays)
        watch(step, float(nll) / batch.n_predictions)
        if is_due(step):
            keep(step, weights.to_arrays())
        if not math.isfinite(float(nll)):
            raise RunError("the loss is not a number any more", found=f"step {step}", do="use a smaller rate")
    return weights.to_arrays()
