"""A run as it stands: all that it has learned, and how far it is. On disk it survives a kill at any moment.

MODEL/run/state.safetensors holds the tensors, and the rest as JSON in the file's metadata. A new state is written
beside its place and moved there when it is whole.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vidrio.errors import RunError
from vidrio.learn.batches import Position
from vidrio.learn.optimiser import Adam
from vidrio.learn.parameters import Parameters
from vidrio.learn.processes import Processes
from vidrio.model.config import ModelConfig
from vidrio.model.json_text import json_text
from vidrio.model.parameters import count

FILE = "state.safetensors"
TENSORS = ("parameters", "average", "best", "adam.mean", "adam.square")
LAYOUT = 2  # of the vectors: another number is refused
NUMBERS = ("step", "epoch", "seconds", "best_score", "best_loss", "best_step", "since_best", "sums")


@dataclass
class State:
    """A run as it stands."""

    parameters: Parameters
    average: Tensor  # the running mean of the parameters: what is validated and, at its best, becomes the model
    best: Tensor
    adam: Adam
    step: int = 0
    position: Position = field(default_factory=Position)
    epoch: float = 0.0
    seconds: float = 0.0
    best_score: float | None = None
    best_loss: float | None = None  # decides between equal scores
    best_step: int = 0
    since_best: int = 0  # validations
    # Since the last line of metrics: loss, predictions, tokens.
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    @staticmethod
    def start(parameters: Parameters) -> "State":
        flat = parameters.flat
        return State(parameters, flat.clone(), flat.clone(), Adam.start(flat))

    @staticmethod
    def of_arrays(config: ModelConfig, arrays: Mapping[str, np.ndarray], device: torch.device) -> "State":
        """A run that begins with these parameters."""
        return State.start(Parameters.from_arrays(config, arrays, device=str(device)))

    def tensors(self) -> dict[str, Tensor]:
        """All that was learned."""
        parts = (self.parameters.flat, self.average, self.best, self.adam.mean, self.adam.square)
        return dict(zip(TENSORS, parts, strict=True))

    def numbers(self) -> str:
        """All the rest, as JSON."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return json_text(numbers | {"position": [self.position.epoch, self.position.batch], "layout": LAYOUT})

    @staticmethod
    def of(config: ModelConfig, tensors: dict[str, Tensor], numbers: str) -> "State":
        data = json.loads(numbers)
        if data["layout"] != LAYOUT:
            raise ValueError(f"layout {data['layout']}, not {LAYOUT}")
        values = {name: data[name] for name in NUMBERS}
        for name in ("best_score", "best_loss"):  # JSON has words for what is no number
            values[name] = None if values[name] is None else float(values[name])
        adam = Adam(tensors["adam.mean"], tensors["adam.square"], data["step"])
        parameters, position = Parameters(config, tensors["parameters"]), Position(*data["position"])
        return State(parameters, tensors["average"], tensors["best"], adam, position=position, **values)


def share_state(state: State | None, config: ModelConfig, device: torch.device, processes: Processes) -> State:
    """The leading process's state, for all; the others have none."""
    if processes.size == 1:
        assert state is not None
        return state
    numbers = processes.broadcast_text("" if state is None else state.numbers())
    tensors = {name: torch.empty(count(config)) for name in TENSORS} if state is None else state.tensors()
    return State.of(config, {name: processes.broadcast(tensor).to(device) for name, tensor in tensors.items()}, numbers)


def save_state(run: Path, state: State) -> None:
    """Write the state, whole or not at all."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.tensors().items()}
    part = run / f".{FILE}.part"
    try:
        save_file(tensors, part, {"state": state.numbers()})
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(part, run / FILE)
    except (OSError, SafetensorError) as error:
        part.unlink(missing_ok=True)
        raise RunError(
            f"the run's state cannot be written to {run / FILE}",
            found=str(error),
            do="make room (or choose another --to) and start the same command again; it goes on from the last state",
        ) from None


def resume(run: Path, config: ModelConfig, device: torch.device) -> State | None:
    """The saved state; None if there is nothing to go on from."""
    path = run / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).to(device) for name in TENSORS}
            return State.of(config, tensors, file.metadata()["state"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        found = f"{path} is damaged, or of another version ({error})"
        raise RunError("the run cannot go on", found=found, do=f"remove {run} to begin again") from None
