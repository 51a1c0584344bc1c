"""The state of a training run, stored in a folder that stays valid even if the process is killed.

MODEL/run/state.safetensors                            everything needed to resume; the metadata contains the scalars
MODEL/run/metrics.jsonl                                one line for every ten steps and for every validation
MODEL/run/snapshots/step-00000064/model.safetensors    the model at step 0 and at the latest powers of 2
"""

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vidrio.errors import RunError, about_file
from vidrio.learn.batches import Position
from vidrio.learn.parameters import Adam, Parameters
from vidrio.model.config import ModelConfig
from vidrio.model.files import write_atomically
from vidrio.model.folder import write_parameters
from vidrio.model.json_text import json_text

STATE, METRICS, SNAPSHOTS = "state.safetensors", "metrics.jsonl", "snapshots"
TENSORS = ("parameters", "average", "best", "adam.mean", "adam.square")
LAYOUT = 3  # version of the file format; other versions are rejected
NUMBERS = ("step", "epoch", "seconds", "best_score", "best_loss", "best_step", "sums", "position")
SAVE = 300  # seconds between checkpoints; each validation also writes a checkpoint
MOST = 8  # maximum number of snapshots, apart from that of step 0
ROOM = 1 << 30  # maximum total size of the snapshots in bytes, which limits their number for large models
FEWEST = 3


@dataclass
class State:
    """The parameters, optimiser state and position of a run."""

    parameters: Parameters
    average: Tensor  # running mean of the parameters; its value at the best validation becomes the model
    best: Tensor
    adam: Adam
    step: int = 0
    position: Position = (0, 0)
    epoch: float = 0.0
    seconds: float = 0.0
    best_score: float | None = None
    best_loss: float | None = None  # breaks ties between equal scores
    best_step: int = 0
    # Sums of loss, predictions, tokens and seconds since the previous line of metrics.
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)

    @staticmethod
    def start(parameters: Parameters) -> "State":
        flat = parameters.flat
        return State(parameters, flat.clone(), flat.clone(), Adam.start(flat))

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to save, by name."""
        parts = (self.parameters.flat, self.average, self.best, self.adam.mean, self.adam.square)
        return dict(zip(TENSORS, parts, strict=True))


def save_state(run: Path, state: State) -> None:
    """Write a checkpoint atomically."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.tensors().items()}
    numbers = {name: getattr(state, name) for name in NUMBERS} | {"layout": LAYOUT}
    part = run / f".{STATE}.part"
    try:
        save_file(tensors, part, {"state": json_text(numbers)})
        with part.open("r+b") as file:  # Windows synchronises only files opened for writing
            os.fsync(file.fileno())
        os.replace(part, run / STATE)
    except (OSError, SafetensorError) as error:
        part.unlink(missing_ok=True)
        raise RunError(
            f"the run's state cannot be written to {run / STATE}",
            found=str(error),
            do="free some disk space or choose another --to, then run the same command to resume",
        ) from None


def read_state(run: Path, config: ModelConfig, device: torch.device) -> State:
    """Read the state from the latest checkpoint."""
    path = run / STATE
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).to(device) for name in TENSORS}
            data = json.loads(file.metadata()["state"])
        if data["layout"] != LAYOUT:
            raise ValueError(f"layout {data['layout']}, not {LAYOUT}")
        values = {name: data[name] for name in NUMBERS}
        for name in ("best_score", "best_loss"):  # infinity is stored as a string
            values[name] = None if values[name] is None else float(values[name])
        adam = Adam(tensors["adam.mean"], tensors["adam.square"], data["step"])
        values["position"] = tuple(data["position"])
        parameters = Parameters(config, tensors["parameters"])
        return State(parameters, tensors["average"], tensors["best"], adam, **values)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        found = f"{path} is damaged, or from another version ({error})"
        raise RunError("the run cannot be resumed", found=found, do=f"remove {run} to start again") from None


class RunFolder:
    """Writes the checkpoints, metrics and snapshots of a run, or nothing if `run` is None."""

    def __init__(self, run: Path | None, state: State) -> None:
        self.run, self.saved = run, time.monotonic()
        if run is not None:
            run.mkdir(parents=True, exist_ok=True)
            forget_metrics_after(run, state.step)
        if state.step == 0:
            self.snapshot(state)

    def log(self, record: dict[str, Any]) -> dict[str, Any]:
        """Append a line of metrics."""
        if self.run is not None:
            path = self.run / METRICS
            with about_file(path), path.open("a", encoding="utf-8") as file:
                file.write(json_text(record) + "\n")
        return record

    def is_due(self) -> bool:
        return time.monotonic() - self.saved > SAVE

    def save(self, state: State) -> None:
        if self.run is not None:
            save_state(self.run, state)
        self.saved = time.monotonic()

    def snapshot(self, state: State) -> None:
        if self.run is not None and is_snapshot(state.step):
            write_snapshot(self.run, state.step, state.parameters.to_arrays())


def forget_metrics_after(run: Path, step: int) -> None:
    """Remove the metrics of steps after the checkpoint, which will be repeated, and an incomplete last line."""
    path = run / METRICS
    if path.exists():
        whole = path.read_text(encoding="utf-8").split("\n")[:-1]
        write_atomically(path, "".join(f"{line}\n" for line in whole if json.loads(line)["step"] <= step).encode())


def is_snapshot(step: int) -> bool:
    """Return whether to write a snapshot after this step. Step 0 means before the first step."""
    return step & (step - 1) == 0


def snapshot_steps(step: int, most: int = MOST) -> list[int]:
    """Return the steps whose snapshots are kept once `step` is complete: 0 and the latest powers of 2."""
    powers = [1 << power for power in range(step.bit_length())]
    return [0, *powers[-most:]]


def write_snapshot(run: Path, step: int, parameters: Mapping[str, np.ndarray]) -> None:
    """Write a snapshot of the parameters, and remove older snapshots beyond the limits."""
    size = sum(array.nbytes for array in parameters.values())
    names = {f"step-{n:08}" for n in snapshot_steps(step, max(FEWEST, min(MOST, ROOM // max(1, size))))}
    write_parameters(run / SNAPSHOTS / f"step-{step:08}", parameters)
    for folder in (run / SNAPSHOTS).iterdir():
        if folder.name not in names:
            shutil.rmtree(folder, ignore_errors=True)  # it may be a file, such as .DS_Store
