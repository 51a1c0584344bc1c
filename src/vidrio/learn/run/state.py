"""A run as it stands: all that it has learned, and how far it is; taken up again, and shared among processes."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vidrio.learn.batches import Position
from vidrio.learn.net.parameters import Weights
from vidrio.learn.optimiser import Adam
from vidrio.learn.processes.processes import Together
from vidrio.learn.processes.sharded import Shards, share
from vidrio.learn.run.best import Kept
from vidrio.learn.run.checkpoint import load_state
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import count

TENSORS = ("parameters", "average", "best", "adam.mean", "adam.square")  # of a state


@dataclass
class State:
    """A run as it stands. Of several processes that share the model out, each has its part of every tensor."""

    weights: Weights | Shards
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
    kept: list[Kept] = field(default_factory=list)  # the best models on disk, best first
    first_loss: float | None = None
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])  # since last told: loss, predictions, tokens
    share: float = 0.0
    ended: bool = False

    @staticmethod
    def start(weights: Weights | Shards) -> "State":
        return State(weights, weights.flat.clone(), weights.flat.clone(), Adam.start(weights.flat))

    def tensors(self) -> dict[str, Tensor]:
        """All that was learned; where it is shared out, whole, on the leading process."""
        parts = (self.weights.flat, self.average, self.best, self.adam.mean, self.adam.square)
        return {name: self.weights.whole(part) for name, part in zip(TENSORS, parts, strict=True)}

    def numbers(self) -> dict[str, Any]:
        skip = ("weights", "average", "best", "adam", "position")
        numbers = {name: value for name, value in vars(self).items() if name not in skip}
        return numbers | {"position": [self.position.epoch, self.position.batch], "threads": torch.get_num_threads()}

    @staticmethod
    def of(weights: Weights | Shards, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> "State":
        numbers = {name: value for name, value in numbers.items() if name != "threads"}
        numbers["position"] = Position(*numbers["position"])
        numbers["kept"] = [(step, score, loss) for step, score, loss in numbers.get("kept", ())]
        adam = Adam(tensors["adam.mean"], tensors["adam.square"], numbers["step"])
        return State(weights, tensors["average"], tensors["best"], adam, **numbers)


def resume(run: Path, config: ModelConfig, device: torch.device) -> tuple[State, str] | None:
    """The run as it was last saved, and what had to be passed over; None if there is nothing to go on from."""
    found = load_state(run, device)
    if found is None:
        return None
    tensors, numbers, damaged = found
    threads = numbers["threads"]
    if threads != torch.get_num_threads():
        damaged += (
            f" It ran with {threads} threads, now {torch.get_num_threads()}: losses will differ in the last digits."
        )
    return State.of(Weights(config, tensors["parameters"]), tensors, numbers), damaged.strip()


def hand_out(state: State | None, config: ModelConfig, device: torch.device, together: Together) -> State:
    """The leading process's state, for all: as it is, or to each its part. On one's own: as it is."""
    if together.size == 1:
        assert state is not None
        return state
    numbers = json.loads(together.tell("" if state is None else json.dumps(state.numbers())))
    given = {} if state is None else state.tensors()
    tensors = {}
    for name in TENSORS:
        whole = given[name] if given else torch.empty(0 if together.sharded else count(config))
        tensors[name] = (share(config, whole, together) if together.sharded else together.spread(whole)).to(device)
    flat = tensors["parameters"]
    return State.of(Shards(config, flat, together) if together.sharded else Weights(config, flat), tensors, numbers)
