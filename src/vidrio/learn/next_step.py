"""By what rules the next step would be taken: the recipe's, and where a run is there to go on from, with its memory."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from vidrio.errors import RunError
from vidrio.learn.optimiser import Adam, Schedule
from vidrio.learn.parameters import Parameters
from vidrio.learn.plan import Recipe, Stop, read_plan
from vidrio.learn.state import resume
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import count


@dataclass(frozen=True)
class Rules:
    """How a step is taken. What comes from a run is in float64 here."""

    smoothing: float
    longest: float  # that the gradient may be; 0 for no bound
    rate: float
    optimiser: str = "adam"
    adam: Adam | None = None  # what it remembers; None: nothing yet
    parameters: Parameters | None = None  # the parameters as the run has left them; None: the model's own
    told: str = "Adam's means begin at 0: there is no run to go on from."
    rate_told: str = "the highest of the recipe"


def first_step(folder: Path, smoothing: float | None = None) -> Rules:
    """The rules of a first step: by the recipe of the run that made the model, else by the default recipe."""
    recipe = recipe_of(folder)
    return Rules(recipe.smoothing if smoothing is None else smoothing, recipe.clip, recipe.rate, recipe.optimiser)


def next_step(folder: Path, config: ModelConfig, smoothing: float | None = None) -> Rules:
    """The rules of the step that would follow the run's last one; of a first step, if its state is not there."""
    rules, run = first_step(folder, smoothing), folder / "run"
    found = resume(run, config, torch.device("cpu"))
    if found is None:
        return rules
    state, recipe = found[0], recipe_of(folder)
    parameters, adam = state.parameters.flat.double(), state.adam
    if len(parameters) != count(config):
        raise RunError(
            f"{run} is the run of another model",
            found=f"{len(parameters):,} parameters in its state, {count(config):,} in the model",
            do="move that folder away, or use the model that it belongs to",
        )
    rate = Schedule(recipe.schedule, recipe.rate, recipe.warmup).rate(state.step + 1, state.share)
    ended = f"{rules.rate_told}: the run has ended, and its own rate has come down to 0"
    return replace(
        rules,
        rate=rate or recipe.rate,
        adam=replace(adam, mean=adam.mean.double(), square=adam.square.double()),
        parameters=Parameters(config, parameters),
        told=f"It goes on where the run was left, after {state.step:,} steps, with Adam's means and the parameters as "
        "they were then (the model's own may be a mean of earlier ones).",
        rate_told=f"{recipe.schedule}, with {state.share:.0%} of the training over" if rate else ended,
    )


def recipe_of(folder: Path) -> Recipe:
    """The recipe that a model was made by, or the default one."""
    plan = read_plan(folder / "run")
    return plan.recipe if plan else Recipe(stop=Stop(steps=1))
