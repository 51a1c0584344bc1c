"""What a run is begun with, and held to when it goes on: what was given, and for the rest the rules of recipe.py."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vidrio.errors import RunError
from vidrio.learn.run.prepare import Task, cannot_change
from vidrio.learn.run.ram import need
from vidrio.learn.run.recipe import (
    BATCH_FOR,
    DROPOUT_FOR,
    PRESETS,
    RATE_FOR,
    Recipe,
    Stop,
    choose_precision,
    choose_preset,
    largest_for,
    measure_speed,
    nearest_preset,
    preset_of,
    sized,
)
from vidrio.learn.run.start import SHARE_OF_RATE, Start
from vidrio.model.config import DecodingDefaults, ModelConfig, SpecialIds
from vidrio.model.folder import read_json
from vidrio.model.parameters import count

MINUTES = 30  # a run takes, unless it is told when to stop
WARMUP = 500  # steps; fewer where the whole run is short
OWN_SIZES = "sizes of your own"  # in place of a preset's name
# What a model may be best by, the usual one first.
METRICS_OF = {"translate": ("chrf", "bleu", "loss"), "classify": ("accuracy", "loss"), "generate": ("loss",)}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the user has chosen; what is not given is chosen by the rules of recipe.py."""

    task: str = "translate"
    preset: str = ""
    device: str = ""
    sizes: dict[str, Any] = field(default_factory=dict)  # of the model's config
    recipe: dict[str, Any] = field(default_factory=dict)
    stop: Stop | None = None
    start: Start | None = None  # a model to learn on from


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


def read_plan(home: Path) -> Plan | None:
    path = home / "plan.json"
    if not path.exists():
        return None
    try:
        return Plan.from_json(read_json(path, what="the run's plan"))
    except (KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read", found=str(error), do=f"remove {home} to begin again") from None


def check(choices: Choices, before: Plan | None) -> None:
    """Refuse at once what no data can make right."""
    if before is not None and before.task != choices.task:
        raise cannot_change([f"task {before.task} → {choices.task}"])
    valid = METRICS_OF[choices.task]
    if (metric := choices.recipe.get("metric", valid[0])) not in valid:
        do = f"use --metric {' or '.join(valid)}"
        raise RunError(f"{metric} is no measure for this", found=f"--task {choices.task}", do=do)
    if choices.start and (choices.task != "translate" or choices.preset or choices.sizes):
        found = ", ".join([f"--task {choices.task}", *filter(None, [choices.preset]), *choices.sizes])
        raise RunError("a model that is learned on from has its sizes already", found=found, do="leave these out")
    if before is None:
        preset, stop = choices.preset or "tiny", choices.stop or Stop(steps=1)
        sized(preset, 8, SpecialIds(), **with_heads(choices.sizes, PRESETS[preset]))
        Recipe(**{"stop": stop, "schedule": schedule_for(stop), **choices.recipe})


def make_plan(task: Task, choices: Choices, device: torch.device, before: Plan | None) -> Plan:
    """What is given is done; what is not stays as it was in the run before, or is chosen by the rules."""
    precision = before.recipe.precision if before else choose_precision(device)
    stop = choices.stop or (before.recipe.stop if before else Stop(seconds=60 * MINUTES))
    vocabulary = (task.source or task.target).size  # type: ignore[union-attr]
    pairs = task.pairs["train"]
    if before:
        recipe = before.recipe
        config = make_config(task, choices.preset, choices.sizes) if choices.preset else before.config
        if choices.sizes and not choices.preset:
            config = replace(config, **with_heads(choices.sizes, config.to_json()))
    else:
        preset = choices.preset
        if not preset and not choices.start:
            speed = measure_speed(device, getattr(torch, precision))
            preset = choose_preset(pairs, task.tokens, vocabulary, stop.seconds, speed)
        config = choices.start.config if choices.start else make_config(task, preset, choices.sizes)
        like = nearest_preset(config)
        recipe = Recipe(
            stop=stop,
            rate=RATE_FOR[like] * (SHARE_OF_RATE if choices.start else 1),
            warmup=min(WARMUP, max(1, stop.steps // 10)) if stop.steps else WARMUP,
            batch_tokens=batch_for(like, task.tokens),
            dropout=float(largest_for(DROPOUT_FOR, pairs)),
            schedule=schedule_for(stop),
            patience=10 if stop.converged else 0,
            metric=METRICS_OF[task.kind][0],
            precision=precision,
            validations=max(4, min(20, round(stop.seconds / 60))) if stop.seconds else 20,
        )
    recipe = replace(recipe, stop=stop, **choices.recipe)
    return Plan(
        task=task.kind,
        preset=preset_of(config),
        data=task.key,
        config=config,
        recipe=recipe,
        tokenizers=task.fingerprints,
    )


def fit_memory(
    plan: Plan, task: Task, free: int, device_type: str, *, parts: bool, shares: int = 1
) -> tuple[Plan, list[str]]:
    """The plan with batches that fit into the memory that is free, as many to a step as make the same whole; told."""
    recipe, longest = plan.recipe, int(min(longest_of(task).max(), plan.config.max_positions))
    most = need(plan.config, recipe, longest, device_type, shares).most_tokens(free)
    if recipe.batch_tokens <= most:
        return plan, []
    pieces = -(-recipe.batch_tokens // max(1, most))
    batch = -(-recipe.batch_tokens // pieces)
    there = f"the memory that is free ({free / 1e9:.1f} GB)"
    if batch < 2 * longest:
        raise RunError(
            f"{there} is too small for this model",
            found=f"{count(plan.config):,} parameters, sentences of up to {longest:,} tokens",
            do="choose a smaller --preset, leave out long sentences (--longest), or try it with --batch-tokens",
        )
    told = f"{there} holds batches of {batch:,} tokens, not of {recipe.batch_tokens:,}"
    accumulate = recipe.accumulate * (pieces if parts else 1)
    if parts:
        told += f": {accumulate} of them make one step"
    return replace(plan, recipe=replace(recipe, batch_tokens=batch, accumulate=accumulate)), [told]


def make_config(task: Task, preset: str, sizes: dict[str, Any]) -> ModelConfig:
    own = with_heads(sizes, PRESETS[preset])
    return sized(preset, 0, **{**task.sizes(), "decoding": DecodingDefaults(), **own})


def with_heads(sizes: dict[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """These sizes; heads share the model's width, unless told otherwise. What is not given is as in the others."""
    if "d_model" not in sizes and "n_heads" not in sizes:
        return sizes
    wide = {**others, **sizes}
    return {"d_head": max(1, wide["d_model"] // wide["n_heads"]), **sizes}


def schedule_for(stop: Stop) -> str:
    """One that falls to 0 at the end, if the end is known."""
    return "inverse-sqrt" if stop.converged else "linear"


def batch_for(preset: str, tokens: int) -> int:
    """The size's own batch, but at least some twenty steps in each pass over small data."""
    return max(256, min(BATCH_FOR[preset], tokens // 20))


FIXED = ("batch_tokens", "accumulate", "seed")  # of the recipe: another value would be another run


def compare(before: Plan, now: Plan) -> list[str]:
    """What has changed since the run was begun; what cannot change is refused by name."""
    refused = []
    if now.data != before.data:
        refused.append("the sentence pairs or how they are cleaned")
    elif now.tokenizers != before.tokenizers:
        refused.append("the tokenizer")
    changed = {
        **differences(before.config.to_json(), now.config.to_json()),
        **{
            name: pair for name, pair in differences(asdict(before.recipe), asdict(now.recipe)).items() if name in FIXED
        },
    }
    refused += [f"{name} {old} → {new}" for name, (old, new) in changed.items()]
    if refused:
        raise cannot_change(refused)
    found = differences(
        *({"end": str(recipe.stop), **asdict(recipe), "stop": None} for recipe in (before.recipe, now.recipe))
    )
    return [f"changed: {name} {old} → {new}, from now on" for name, (old, new) in found.items()]


def differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (before.get(name), value) for name, value in now.items() if before.get(name) != value}


# --- telling ----------------------------------------------------------------------------------------------------------


def told_data(task: Task) -> Sequence[str]:
    """What was read, and what was left out and why."""
    tally = task.tally
    lines = [f"read {tally.read:,} {'lines' if task.kind == 'generate' else 'pairs'}, kept {tally.kept:,}"]
    lines += [f"  left out {count:,}: {reason}" for reason, count in tally.reasons()]
    held = {"dev": "to validate", "test": "to judge the finished model"}
    parts = [f"{task.pairs[part]:,} {says}" for part, says in held.items() if task.pairs[part]]
    return [*lines, f"to learn from: {task.pairs['train']:,}; held out: {', '.join(parts) or 'given files'}"]


def longest_of(task: Task) -> NDArray[np.int32]:
    """The longer side of each pair, in tokens with the end token."""
    longer: NDArray[np.int32] = np.maximum(task.examples.source.lengths, task.examples.target.lengths) + 1
    return longer


def too_long(plan: Plan, task: Task) -> list[str]:
    """What is left out because the model has not so many positions."""
    longest = longest_of(task)
    most, out = plan.config.max_positions, int((longest > plan.config.max_positions).sum())
    if out == len(longest):
        raise RunError(
            "every sentence is longer than the model's positions",
            found=f"the shortest has {int(longest.min()):,} tokens, the model {most:,} positions",
            do="give more --max-positions",
        )
    return [f"left out {out:,} pairs of more than {most:,} tokens (--max-positions changes that)"] if out else []


def told_plan(plan: Plan, device: torch.device, task: Task) -> Sequence[str]:
    """What will be done, in three lines."""
    c, r = plan.config, plan.recipe
    layers = " + ".join(
        str(n) for n, there in ((c.n_encoder_layers, c.has_encoder), (c.n_decoder_layers, c.has_decoder)) if there
    )
    vocabulary = max(c.source_vocabulary, c.target_vocabulary)
    where = "a GPU" if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    why = " (this machine does not multiply in bfloat16)" if choose_precision(device) != "bfloat16" else ""
    return [
        f"model: {plan.preset or OWN_SIZES}, {count(c):,} parameters, {layers} layers, {c.d_model} wide, "
        f"{c.n_heads} heads, vocabulary of {vocabulary:,}",
        f"computing in {r.precision}{why} on {where}, batches of {r.batch_tokens * r.accumulate:,} tokens, "
        f"{len(task.examples.source.lengths):,} pairs, dropout {r.dropout:g}, rate {r.rate:g} ({r.schedule})"
        + (f", R-Drop {r.r_drop:g}" if r.r_drop else ""),
        f"it ends {r.stop}" + (" (--time changes that)" if r.stop.seconds else ""),
    ]
