"""Which models of a run were the best, and the mean of their parameters, which is often better than any of them.

    MODEL/run/best/step-00000500/model.safetensors

A model is written before the state that counts it among the best, and removed after a state that does not has been
written twice: whichever of the two states on disk a run goes on from, all of its best models are there.
"""

import math
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from vidrio.learn.run.recipe import METRICS
from vidrio.model.folder import read_parameters, write_parameters

FOLDER = "best"
Kept = tuple[int, float, float]  # step, score, loss


def rank(score: float, loss: float | None, metric: str) -> tuple[float, float]:
    """What a better model has less of. Early on all BLEUs are 0: then the loss decides."""
    return score if METRICS[metric] is min else -score, math.inf if loss is None else loss


def best_of(kept: Sequence[Kept], most: int, metric: str) -> list[Kept]:
    """The best of some models, best first; of equals those that stand first."""
    return sorted(kept, key=lambda one: rank(one[1], one[2], metric))[:most]


def keep(run: Path, step: int, parameters: Mapping[str, np.ndarray]) -> None:
    """Write the model of this step."""
    write_parameters(_place(run, step), parameters)


def let_go(run: Path, steps: Collection[int]) -> None:
    """Remove all models but those of these steps."""
    for folder in (run / FOLDER).glob("step-*"):
        if folder not in [_place(run, step) for step in steps]:
            shutil.rmtree(folder)


def mean(run: Path, steps: Sequence[int]) -> dict[str, np.ndarray]:
    """The mean of the parameters of these steps' models."""
    sums: dict[str, np.ndarray] = {}
    for step in sorted(steps):
        for name, value in read_parameters(_place(run, step)).items():
            sums[name] = sums.get(name, 0) + value.astype(np.float64)
    return {name: value / len(steps) for name, value in sums.items()}


def _place(run: Path, step: int) -> Path:
    return run / FOLDER / f"step-{step:08}"
