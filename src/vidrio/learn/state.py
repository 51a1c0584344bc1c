"""A run as it stands: all that it has learned, and how far it is. On disk it survives a kill at any moment.

    MODEL/run/state.safetensors            the tensors, and the rest as JSON in the file's metadata
    MODEL/run/state.previous.safetensors   the one before, should the last be damaged

A new state is written beside its place and moved there when it is whole, so there is always a good one. No pickle.
"""

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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

LATEST, PREVIOUS = "state.safetensors", "state.previous.safetensors"
TENSORS = ("parameters", "average", "best", "adam.mean", "adam.square")


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
    first_loss: float | None = None
    # Since the last line of metrics: loss, predictions, tokens.
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    share: float = 0.0  # of the training that is over
    ended: bool = False

    @staticmethod
    def start(parameters: Parameters) -> "State":
        flat = parameters.flat
        return State(parameters, flat.clone(), flat.clone(), Adam(torch.zeros_like(flat), torch.zeros_like(flat)))

    @staticmethod
    def of_arrays(config: ModelConfig, arrays: Mapping[str, np.ndarray], device: torch.device) -> "State":
        """A run that begins with these parameters."""
        return State.start(Parameters.from_arrays(config, arrays, device=str(device)))

    def tensors(self) -> dict[str, Tensor]:
        """All that was learned."""
        parts = (self.parameters.flat, self.average, self.best, self.adam.mean, self.adam.square)
        return dict(zip(TENSORS, parts, strict=True))

    def numbers(self) -> dict[str, Any]:
        """All the rest, for JSON."""
        skip = ("parameters", "average", "best", "adam", "position")
        numbers = {name: value for name, value in vars(self).items() if name not in skip}
        return numbers | {"position": [self.position.epoch, self.position.batch], "threads": torch.get_num_threads()}

    @staticmethod
    def of(config: ModelConfig, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> "State":
        numbers = {name: value for name, value in numbers.items() if name != "threads"}
        numbers["position"] = Position(*numbers["position"])
        for name in ("best_score", "best_loss", "first_loss"):  # JSON has words for what is no number
            numbers[name] = None if numbers[name] is None else float(numbers[name])
        adam = Adam(tensors["adam.mean"], tensors["adam.square"], numbers["step"])
        return State(Parameters(config, tensors["parameters"]), tensors["average"], tensors["best"], adam, **numbers)


def share_state(state: State | None, config: ModelConfig, device: torch.device, processes: Processes) -> State:
    """The leading process's state, for all; the others have none."""
    if processes.size == 1:
        assert state is not None
        return state
    numbers = json.loads(processes.broadcast_text("" if state is None else json_text(state.numbers())))
    tensors = {name: torch.empty(count(config)) for name in TENSORS} if state is None else state.tensors()
    return State.of(config, {name: processes.broadcast(tensor).to(device) for name, tensor in tensors.items()}, numbers)


# --- on disk ----------------------------------------------------------------------------------------------------------


def save_state(run: Path, state: State) -> None:
    """Write the state; the one that was there becomes the previous one."""
    run.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.tensors().items()}
    metadata = {"state": json_text(state.numbers()), "checksums": json_text(_checksums(tensors))}
    temporary, latest = run / f".{LATEST}.part", run / LATEST
    try:
        save_file(tensors, temporary, metadata)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if latest.exists():
            os.replace(latest, run / PREVIOUS)
        os.replace(temporary, latest)
    except (OSError, SafetensorError) as error:
        temporary.unlink(missing_ok=True)
        raise RunError(
            f"the run's state cannot be written to {latest}",
            found=str(error),
            do="make room (or choose another --to) and start the same command again; it goes on from the last state",
        ) from None


def resume(run: Path, config: ModelConfig, device: torch.device) -> tuple[State, str] | None:
    """The latest good state, and what had to be passed over; None if there is nothing to go on from."""
    damaged = ""
    for path in (run / LATEST, run / PREVIOUS):
        if not path.exists():
            continue
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            if _checksums(tensors) != json.loads(metadata["checksums"]):
                raise ValueError("its checksums differ")
            numbers = json.loads(metadata["state"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            damaged += f"{path} is damaged ({error}). "
            continue
        if numbers["threads"] != (threads := torch.get_num_threads()):
            damaged += f"It ran with {numbers['threads']} threads, now {threads}: losses will differ a little."
        return State.of(config, {key: tensor.to(device) for key, tensor in tensors.items()}, numbers), damaged.strip()
    if damaged:
        raise RunError("the run cannot go on", found=damaged.strip(), do=f"remove {run} to begin again")
    return None


def _checksums(tensors: dict[str, Tensor]) -> dict[str, int]:
    return {name: zlib.crc32(tensor.numpy().data) for name, tensor in tensors.items()}
