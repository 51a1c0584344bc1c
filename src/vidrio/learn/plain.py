"""Training at its plainest: every sentence pair in every step, no dropout, no batches. For models of a lesson's size.

Everything that `loop.py` does for large data is this loop, with more around it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vidrio.errors import RunError
from vidrio.learn import model
from vidrio.learn.batches import collate, in_memory
from vidrio.learn.loss import gradient_of
from vidrio.learn.parameters import Adam, Parameters, Schedule, clip
from vidrio.learn.state import is_snapshot
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters


@dataclass(frozen=True, kw_only=True)
class How:
    """By what recipe: cosine decay of the rate, after 200 steps of warm-up."""

    steps: int
    rate: float
    seed: int
    smoothing: float
    decay: float  # of weights


def fit(
    config: ModelConfig,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    how: How,
    watch: Callable[[int, float], None] = lambda step, loss: None,
    keep: Callable[[int, dict[str, np.ndarray]], None] = lambda step, parameters: None,
) -> dict[str, np.ndarray]:
    """Learn these pairs, in float64; the same parameters for the same arguments and machine.

    `keep` gets the parameters at the ages of which snapshots are made, 0 before the first step.
    """
    parameters = Parameters.from_arrays(
        config, random_parameters(config, np.random.default_rng(how.seed)), torch.float64
    )
    batch = collate(in_memory(pairs), np.arange(len(pairs)), config)
    schedule = Schedule("cosine", how.rate, warmup=200)
    adam, decays = Adam.start(parameters.flat), torch.full_like(parameters.flat, how.decay)
    keep(0, parameters.to_arrays())
    for step in range(1, how.steps + 1):
        gradient, loss = gradient_of(model.build(parameters), batch, how.smoothing)
        gradient /= batch.n_predictions
        clip(gradient, 1.0)
        adam.update(parameters.flat, gradient, schedule.rate(step, step / (how.steps + 1)), decays)
        watch(step, loss / batch.n_predictions)
        if is_snapshot(step):
            keep(step, parameters.to_arrays())
        if not math.isfinite(loss):
            raise RunError("the loss is not a number any more", found=f"step {step}", do="use a smaller rate")
    return parameters.to_arrays()
