"""What a run leaves on disk besides its state: its metrics, and the model at a few ages.

    MODEL/run/metrics.jsonl                                       a line every ten steps, and one for each validation
    MODEL/run/snapshots/step-00000064/model.safetensors           the model at steps 0, 1, 2, 4, 8 …

A model changes the less the longer it has learned, so snapshots are taken at powers of 2; when they become too many,
step 0 stays and the earliest of the others go. Which ones are there depends on the last step alone, so a run that was
killed and goes on leaves the same ones. None of this needs PyTorch.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.errors import about_file
from vidrio.model.files import write_atomically
from vidrio.model.folder import write_parameters
from vidrio.model.json_text import json_text

METRICS, SNAPSHOTS = "metrics.jsonl", "snapshots"
MOST = 8  # snapshots besides step 0
ROOM = 1 << 30  # bytes that all of them may take; large models keep fewer
FEWEST = 3


def add_metrics(run: Path, record: Mapping[str, Any]) -> None:
    """One more line of metrics."""
    path = run / METRICS
    with about_file(path), path.open("a", encoding="utf-8") as file:
        file.write(json_text(record) + "\n")


def forget_metrics_after(run: Path, step: int) -> None:
    """Drop the metrics after the saved state, which will be written again, and a half-written line."""
    path = run / METRICS
    if not path.exists():
        return
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                lines.append(line + "\n")
        except (ValueError, KeyError):
            break
    write_atomically(path, "".join(lines).encode())


# --- snapshots --------------------------------------------------------------------------------------------------------


def is_due(step: int) -> bool:
    """Whether a snapshot is taken after this step; 0 is before the first."""
    return step & (step - 1) == 0


def kept_steps(step: int, most: int = MOST) -> list[int]:
    """The steps whose snapshots are there once `step` is done: 0, and the last powers of 2."""
    powers = [1 << power for power in range(step.bit_length())]
    return [0, *powers[-most:]]


def keep_snapshot(run: Path, step: int, parameters: Mapping[str, np.ndarray]) -> None:
    """Save the parameters as they are after this step, and remove snapshots that are too many."""
    size = sum(array.nbytes for array in parameters.values())
    steps = kept_steps(step, max(FEWEST, min(MOST, ROOM // max(1, size))))
    if step in steps:
        write_parameters(run / SNAPSHOTS / f"step-{step:08}", parameters)
    for old, folder in snapshots(run):
        if old not in steps:
            (folder / "model.safetensors").unlink()
            folder.rmdir()


def snapshots(run: Path) -> list[tuple[int, Path]]:
    """The steps of which there is a snapshot, each with the folder that holds its parameters, in order."""
    files = (run / SNAPSHOTS).glob("step-[0-9]*/model.safetensors")
    return sorted((int(path.parent.name.removeprefix("step-")), path.parent) for path in files)
