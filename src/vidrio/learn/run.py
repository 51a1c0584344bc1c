"""One training run from files to a model folder: choose, begin or go on, train, and hand over what was learned.

MODEL/run/plan.json    what was chosen, and from which data: what a resumed run is held to
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidrio.config import DecodingDefaults, ModelConfig
from vidrio.errors import RunError
from vidrio.folder import About, read_json, write_atomically, write_config, write_parameters
from vidrio.learn import model
from vidrio.learn.batches import Examples, no_resplit
from vidrio.learn.decode import translate
from vidrio.learn.machine import keep_memory
from vidrio.learn.progress import Progress, silent
from vidrio.learn.recipe import (
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
    minutes,
    sized,
)
from vidrio.learn.tasks import TASKS, Material, Task
from vidrio.learn.together import Together
from vidrio.learn.train import State, Watch, resume, train
from vidrio.learn.weights import Weights
from vidrio.parameters import count, random_parameters
from vidrio.text.bpe_dropout import Dropout

MINUTES = 30  # a run takes, unless it is told when to stop
WARMUP = 500  # steps; fewer where the whole run is short
# What a model may be best by, the usual one first.
METRICS_OF = {"translate": ("chrf", "bleu", "loss"), "classify": ("accuracy", "loss"), "generate": ("loss",)}
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the user has chosen; what is not given is chosen by the rules of recipe.py."""

    task: str = "translate"
    preset: str = ""
    device: str = ""
    sizes: dict[str, Any] = field(default_factory=dict)  # of the model's config
    recipe: dict[str, Any] = field(default_factory=dict)
    stop: Stop | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run was begun with."""

    task: str
    preset: str
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


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a run has brought about: all that is needed to write, judge and describe the model."""

    task: Task
    plan: Plan
    weights: Weights  # the best
    state: State
    translations: list[str]  # of the test sources, by beam search

    @property
    def config(self) -> ModelConfig:
        return self.plan.config

    def write(self, folder: Path, about: About, card: str) -> None:
        """The model folder, its config last."""
        write_parameters(folder, self.weights.to_arrays())
        tokenizers = (self.task.source, self.task.target)
        source = tokenizers[0] or tokenizers[1]
        if source is not None:
            source.save(folder / "tokenizer.json")
        separate = folder / "target-tokenizer.json"
        separate.unlink(missing_ok=True)
        if tokenizers[0] is not None and tokenizers[1] not in (None, tokenizers[0]):
            tokenizers[1].save(separate)
        write_atomically(folder / "README.md", card.encode())
        write_config(folder, self.config, about)


def run(
    folder: Path,
    material: Material,
    choices: Choices,
    *,
    say: Say = lambda text: None,
    watch: Watch = lambda record: None,
    progress: Progress = silent,
    together: Together | None = None,
) -> Learned:
    """Train in `folder`/run from the beginning, or go on where an earlier run was stopped."""
    together = together or Together()
    home, device = folder / "run", find_device(choices.device)
    refuse_other_folders(folder)
    if not together.leads:
        together.wait()  # the data is made once
    task = TASKS[choices.task](home, material, progress)
    for line in told_data(task):
        say(line)
    before = read_plan(home)
    plan = make_plan(task, choices, device, before)
    if together.size > 1:
        plan = replace(
            plan, recipe=replace(plan.recipe, accumulate=-(-plan.recipe.accumulate // together.size) * together.size)
        )
    if before is not None:
        for line in compare(before, plan):
            say(line)
    if together.leads:
        write_atomically(home / "plan.json", (json.dumps(plan.to_json(), indent=2) + "\n").encode())
        together.wait()
    for line in (*told_plan(plan, device, task), *too_long(plan, task)):
        say(line)
    examples = with_subword_dropout(task) if plan.recipe.subword_dropout else task.examples
    state, line = begin(home, plan, device)
    say(line)
    state = train(examples, state, plan.recipe, task.validate, run=home, watch=watch, together=together)
    best = Weights(plan.config, state.best)
    say(f"trained {state.step:,} steps, {state.epoch:.1f} passes over the data, in {minutes(state.seconds)}")
    say(f"kept the model of step {state.best_step:,}, the best by {plan.recipe.metric} on the validation set")
    return Learned(task=task, plan=plan, weights=best, state=state, translations=translate_test(best, plan, task))


def use_machine(threads: int | None) -> None:
    """Settle how many CPU threads compute (None: PyTorch's choice), and keep memory that was used once."""
    keep_memory()
    if threads:
        torch.set_num_threads(threads)


def too_long(plan: Plan, task: Task) -> list[str]:
    """What is left out because the model has not so many positions."""
    longest = np.maximum(task.examples.source.lengths, task.examples.target.lengths) + 1
    most, out = plan.config.max_positions, int((longest > plan.config.max_positions).sum())
    if out == len(longest):
        raise RunError(
            "every sentence is longer than the model's positions",
            found=f"the shortest has {int(longest.min()):,} tokens, the model {most:,} positions",
            do="give more --max-positions",
        )
    return [f"left out {out:,} pairs of more than {most:,} tokens (--max-positions changes that)"] if out else []


def find_device(name: str) -> torch.device:
    """The device of this name; without one, a GPU where there is one."""
    if not name:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        found = str(error).splitlines()[0]
        raise RunError(f"there is no device {name!r} to train on", found=found, do="use --device cpu") from None
    return device


def refuse_other_folders(folder: Path) -> None:
    """Never write into what is not a run of ours."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file", do="give a folder, new or of an earlier run")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "run").is_dir():
        what = "a model without its training run" if (folder / "config.json").exists() else "other files"
        raise RunError(f"{folder} is not empty", found=what, do="give a new folder, or one of an earlier run")


def begin(home: Path, plan: Plan, device: torch.device) -> tuple[State, str]:
    """The run's state, saved or new."""
    found = resume(home, plan.config, device)
    if found is not None:
        state, damaged = found
        return state, f"going on from step {state.step:,}, {minutes(state.seconds)} in" + (
            f" ({damaged})" if damaged else ""
        )
    random = np.random.default_rng([plan.recipe.seed, 0])
    weights = Weights.from_arrays(plan.config, random_parameters(plan.config, random), device=str(device))
    return State.start(weights), f"beginning with random parameters, seed {plan.recipe.seed}"


def with_subword_dropout(task: Task) -> Examples:
    """The examples, with the means to split their words otherwise."""
    sides = [Dropout(tokenizer) if tokenizer else no_resplit for tokenizer in (task.source, task.target)]
    return replace(task.examples, resplit=(sides[0], sides[1]))


def translate_test(best: Weights, plan: Plan, task: Task) -> list[str]:
    """The test sentences as the finished model translates them: beam search, in float32."""
    if task.source is None or task.target is None or not task.test:
        return []
    sources = [np.array(ids, dtype=np.int64) for ids in task.source.encode_batch([source for source, _ in task.test])]
    decoding = plan.config.decoding
    found = translate(model.build(best), sources, beam=decoding.beam, length_penalty=decoding.length_penalty)
    return [task.target.decode(ids) for ids in found]


# --- choosing ---------------------------------------------------------------------------------------------------------


def read_plan(home: Path) -> Plan | None:
    path = home / "plan.json"
    if not path.exists():
        return None
    try:
        return Plan.from_json(read_json(path, what="the run's plan"))
    except (KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read", found=str(error), do=f"remove {home} to begin again") from None


def make_plan(task: Task, choices: Choices, device: torch.device, before: Plan | None) -> Plan:
    """What is given is done; what is not stays as it was in the run before, or is chosen by the rules."""
    precision = before.recipe.precision if before else choose_precision(device)
    stop = choices.stop or (before.recipe.stop if before else Stop(seconds=60 * MINUTES))
    vocabulary = (task.source or task.target).size  # type: ignore[union-attr]
    pairs = task.pairs["train"]
    preset = choices.preset or (before.preset if before else "")
    if not preset:
        speed = measure_speed(device, getattr(torch, precision))
        preset = choose_preset(pairs, task.tokens, vocabulary, stop.seconds, speed)
    if before:
        config, recipe = before.config, before.recipe
        if choices.preset or choices.sizes:
            config = make_config(task, preset, choices.sizes)
    else:
        config = make_config(task, preset, choices.sizes)
        recipe = Recipe(
            stop=stop,
            rate=RATE_FOR[preset],
            warmup=min(WARMUP, max(1, stop.steps // 10)) if stop.steps else WARMUP,
            batch_tokens=batch_for(preset, task.tokens),
            dropout=float(largest_for(DROPOUT_FOR, pairs)),
            schedule="inverse-sqrt" if stop.converged else "linear",
            patience=10 if stop.converged else 0,
            metric=METRICS_OF[task.kind][0],
            precision=precision,
            validations=max(4, min(20, round(stop.seconds / 60))) if stop.seconds else 20,
        )
    recipe = replace(recipe, stop=stop, **choices.recipe)
    if recipe.metric not in METRICS_OF[task.kind]:
        valid = " or ".join(METRICS_OF[task.kind])
        raise RunError(
            f"{recipe.metric} is no measure for this", found=f"--task {task.kind}", do=f"use --metric {valid}"
        )
    fingerprints = [tokenizer.fingerprint() for tokenizer in (task.source, task.target) if tokenizer]
    return Plan(task=task.kind, preset=preset, data=task.key, config=config, recipe=recipe, tokenizers=fingerprints)


def make_config(task: Task, preset: str, sizes: dict[str, Any]) -> ModelConfig:
    sizes = dict(sizes)
    if "d_model" in sizes or "n_heads" in sizes:  # heads share the model's width, unless told otherwise
        wide = {**PRESETS[preset], **sizes}
        sizes.setdefault("d_head", max(1, wide["d_model"] // wide["n_heads"]))
    return sized(preset, 0, **{**task.sizes(), "decoding": DecodingDefaults(), **sizes})


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
        **differences({"task": before.task}, {"task": now.task}),
        **differences(before.config.to_json(), now.config.to_json()),
        **{
            name: pair for name, pair in differences(asdict(before.recipe), asdict(now.recipe)).items() if name in FIXED
        },
    }
    refused += [f"{name} {old} → {new}" for name, (old, new) in changed.items()]
    if refused:
        raise RunError(
            "a run that has begun cannot change this",
            found="; ".join(refused),
            do="give the same as before, or another folder with --to",
        )
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
        f"model: {plan.preset}, {count(c):,} parameters, {layers} layers, {c.d_model} wide, {c.n_heads} heads, "
        f"vocabulary of {vocabulary:,}",
        f"computing in {r.precision}{why} on {where}, batches of {r.batch_tokens * r.accumulate:,} tokens, "
        f"{len(task.examples.source.lengths):,} pairs, dropout {r.dropout:g}, rate {r.rate:g} ({r.schedule})",
        f"it ends {r.stop}" + (" (--time changes that)" if r.stop.seconds else ""),
    ]
