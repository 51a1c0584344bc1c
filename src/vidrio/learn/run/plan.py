"""What a run was begun with, and is held to when it goes on: MODEL/run/plan.json."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vidrio.errors import RunError
from vidrio.learn.run.recipe import Recipe
from vidrio.model.config import ModelConfig
from vidrio.model.files import read_json, write_atomically
from vidrio.model.json_text import json_text

FIXED = ("batch_tokens", "accumulate", "seed")  # of the recipe: another value would be another run


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run was begun with."""

    task: str
    preset: str  # whose sizes the model has; empty where some are the user's own
    data: str  # the data's key
    config: ModelConfig
    recipe: Recipe
    tokenizers: list[str]  # their fingerprints

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "config": self.config.to_json(), "recipe": self.recipe.to_json()}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Plan":
        return Plan(
            **{**data, "config": ModelConfig.from_json(data["config"]), "recipe": Recipe.from_json(data["recipe"])}
        )

    def to_text(self) -> str:
        return json_text(self.to_json(), indent=2)

    @staticmethod
    def from_text(text: str) -> "Plan":
        return Plan.from_json(json.loads(text))


def read_plan(run: Path) -> Plan | None:
    """The plan of the run in this folder, if there is one."""
    path = run / "plan.json"
    if not path.exists():
        return None
    try:
        return Plan.from_json(read_json(path, what=f"the plan of the run {run}"))
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is no plan of a run", found=str(error), do=f"remove {run} to begin again") from None


def write_plan(run: Path, plan: Plan) -> None:
    write_atomically(run / "plan.json", f"{plan.to_text()}\n".encode())


def compare(before: Plan, now: Plan) -> list[str]:
    """What has changed since the run was begun, in lines to tell; what cannot change is refused by name."""
    refused = []
    if now.data != before.data:
        refused.append("the sentence pairs or how they are cleaned")
    elif now.tokenizers != before.tokenizers:
        refused.append("the tokenizer")
    recipes = _differences(asdict(before.recipe), asdict(now.recipe))
    fixed = _differences(before.config.to_json(), now.config.to_json())
    fixed |= {name: values for name, values in recipes.items() if name in FIXED}
    refused += [f"{name} {old} → {new}" for name, (old, new) in fixed.items()]
    if refused:
        raise cannot_change(refused)
    ends = _differences({"end": str(before.recipe.stop)}, {"end": str(now.recipe.stop)})
    changes = ends | {name: values for name, values in recipes.items() if name != "stop"}
    return [f"changed: {name} {old} → {new}, from now on" for name, (old, new) in changes.items()]


def cannot_change(what: Sequence[str]) -> RunError:
    """What is given now would make another run of it."""
    return RunError(
        "a run that has begun cannot change this",
        found="; ".join(what),
        do="give the same as before, or another folder with --to",
    )


def _differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (before.get(name), value) for name, value in now.items() if before.get(name) != value}
