"""The same model at several ages: a handful of snapshots that a training run leaves behind, from random to trained.

    MODEL/run/snapshots/step-00000064/model.safetensors

A model changes the less the longer it has learned, so snapshots are taken at steps 0, 1, 2, 4, 8, …; when they become
too many, step 0 stays and the earliest of the others go. Which ones are there depends on the last step alone, so a run
that was killed and goes on leaves the same ones. Reading them needs no PyTorch.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vidrio.model.folder import write_parameters

FOLDER = "snapshots"
MOST = 8  # besides step 0
ROOM = 1 << 30  # bytes that all of them may take; large models keep fewer
FEWEST = 3


def is_due(step: int) -> bool:
    """Whether a snapshot is to be kept after this step; 0 is before the first."""
    return step & (step - 1) == 0


def kept_steps(step: int, most: int = MOST) -> list[int]:
    """The steps whose snapshots are there once `step` is done: 0, and the last powers of 2."""
    powers = [1 << power for power in range(step.bit_length())]
    return [0, *powers[-most:]]


def keep_snapshot(run: Path, step: int, parameters: Mapping[str, np.ndarray]) -> None:
    """Keep the parameters as they are after this step, and let go of what is no longer to be kept."""
    size = sum(array.nbytes for array in parameters.values())
    steps = kept_steps(step, max(FEWEST, min(MOST, ROOM // max(1, size))))
    if step in steps:
        write_parameters(run / FOLDER / f"step-{step:08}", parameters)
    for old, folder in snapshots(run):
        if old not in steps:
            (folder / "model.safetensors").unlink()
            folder.rmdir()


def snapshots(run: Path) -> list[tuple[int, Path]]:
    """The steps of which there is a snapshot, each with the folder that holds its parameters, in order."""
    found = (run / FOLDER).glob("step-[0-9]*/model.safetensors")
    return sorted((int(path.parent.name.removeprefix("step-")), path.parent) for path in found)
