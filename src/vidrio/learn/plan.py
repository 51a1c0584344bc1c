"""The plan of a run: the user's choices, and for the rest rules based on the data, the machine and the time.

The rules are few: these tables; docs/training.md explains them. The plan is written to MODEL/run/plan.json, and a run
that continues follows it: only its end may change.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from vidrio.errors import RunError
from vidrio.learn.task import Request, Stop, Task, cannot_change
from vidrio.model.config import ModelConfig
from vidrio.model.files import read_json, write_atomically
from vidrio.model.json_text import json_text
from vidrio.model.parameters import count

# The paper's sizes (Table 3) and two smaller ones, for data and machines that the paper did not have in mind.
PRESETS: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 128, "n_heads": 4, "d_head": 32, "d_ff": 256, "n_encoder_layers": 4, "n_decoder_layers": 4},
    "small": {"d_model": 256, "n_heads": 8, "d_head": 32, "d_ff": 1024, "n_encoder_layers": 4, "n_decoder_layers": 2},
    "base": {"d_model": 512, "n_heads": 8, "d_head": 64, "d_ff": 2048, "n_encoder_layers": 6, "n_decoder_layers": 6},
    "big": {"d_model": 1024, "n_heads": 16, "d_head": 64, "d_ff": 4096, "n_encoder_layers": 6, "n_decoder_layers": 6},
}
# The largest size that so many pairs can fill; on few pairs larger models are worse, not only slower.
PAIRS_FOR = {"tiny": 0, "small": 100_000, "base": 1_000_000, "big": 5_000_000}
PASSES = 8  # over the data, that a time budget must allow, or a smaller size is taken
# Multiplications (with their additions) a second that may be expected of one core of a CPU, and of a GPU.
SPEED_OF_CORE, SPEED_OF_GPU = 4e10, 2e13
RATE_FOR = {"tiny": 3e-3, "small": 1.5e-3, "base": 7e-4, "big": 5e-4}
# Muon learns more from each step, but its products take time: a GPU hardly notices, a CPU does.
OPTIMISER_FOR = {"tiny": "adam", "small": "muon", "base": "muon", "big": "muon"}
BATCH_FOR = {"tiny": 4096, "small": 8192, "base": 16384, "big": 32768}
DROPOUT_FOR = {0.3: 0, 0.2: 100_000, 0.1: 500_000}
# Pairs made from few words by a rule (each word is there so often, on average) are not learned by heart.
FEW_WORDS, DROPOUT_OF_FEW = 100, 0.1
MINUTES = 30  # of training, unless the user chooses an end
WARMUP = 500  # steps; fewer where the whole run is short
SHARE_OF_RATE = 1 / 3  # of the usual highest rate, with --from: what the model knows should change, not be lost
OWN_SIZES = "sizes of your own"  # in place of a preset's name
# What the best model may be chosen by, the usual metric first.
METRICS_OF = {"translate": ("chrf", "bleu", "loss"), "classify": ("accuracy", "loss"), "generate": ("loss",)}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All training settings besides the data, the tokenizer and the model's config."""

    stop: Stop
    optimiser: str = "adam"
    schedule: str = "linear"
    rate: float = 1e-3
    warmup: int = 500
    batch_tokens: int = 8192  # source and target, padding included
    accumulate: int = 1  # batches to one step, of each process
    smoothing: float = 0.1  # §5.4
    dropout: float = 0.1
    clip: float = 1.0
    average: float = 0.999  # of the parameters: how much of the mean stays at each step
    metric: str = "loss"
    validations: int = 20  # in the whole run
    seed: int = 1
    precision: str = "float32"  # of the computation; the parameters themselves are float32


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run was started with."""

    task: str
    config: ModelConfig
    recipe: Recipe


def read_plan(run: Path) -> Plan | None:
    """The plan of the run in this folder, if there is one."""
    path = run / "plan.json"
    if not path.exists():
        return None
    try:
        data = read_json(path, what=f"the plan of the run {run}")
        recipe = Recipe(**{**data["recipe"], "stop": Stop(**data["recipe"]["stop"])})
        return Plan(task=data["task"], config=ModelConfig.from_json(data["config"]), recipe=recipe)
    except (KeyError, TypeError, AttributeError) as error:
        do = "start a new folder with --to, or continue with the version of vidrio that started it"
        raise RunError(f"{path} is not the plan of a run", found=str(error), do=do) from None


def write_plan(run: Path, plan: Plan) -> None:
    write_atomically(run / "plan.json", f"{json_text(asdict(plan), indent=2)}\n".encode())


def refuse_nonsense(request: Request, before: Plan | None) -> None:
    """Refuse options that no data can make valid."""
    start = request.start
    if before is not None and before.task != request.task:
        raise cannot_change([f"task {before.task} → {request.task}"])
    valid = METRICS_OF[request.task]
    if (metric := request.recipe.get("metric", valid[0])) not in valid:
        do = f"use --metric {' or '.join(valid)}"
        raise RunError(f"{metric} does not measure this", found=f"--task {request.task}", do=do)
    if start and (request.task != "translate" or request.preset or request.sizes):
        found = ", ".join([f"--task {request.task}", *filter(None, [request.preset]), *request.sizes])
        raise RunError("a model that is fine-tuned keeps its sizes", found=found, do="leave these out")
    if before is None:
        preset = request.preset or "tiny"
        sized(preset, **with_heads(request.sizes, PRESETS[preset]))


def continued(before: Plan, request: Request) -> Plan:
    """The plan of a run that continues. Only its end may differ from before."""
    recipe = replace(before.recipe, stop=request.stop or before.recipe.stop)
    was = {**before.config.to_json(), **asdict(recipe)}
    sizes = {**PRESETS.get(request.preset, {}), **with_heads(request.sizes, was)}
    asked = {**sizes, **request.recipe}
    changes = [f"{name} {was.get(name)} → {value}" for name, value in asked.items() if was.get(name) != value]
    if changes:
        raise cannot_change(changes)
    return replace(before, recipe=recipe)


def new_plan(request: Request, task: Task, device: torch.device) -> Plan:
    """The user's choices, completed by the rules."""
    start, pairs = request.start, task.pairs["train"]
    stop = request.stop or Stop(seconds=60 * MINUTES)
    if start:
        config = start.config
    else:
        preset = request.preset
        if not preset:
            preset = choose_preset(pairs, task.tokens, task.source.size, stop.seconds, speed_of(device))
        config = sized(preset, **{**decided_by(task), **with_heads(request.sizes, PRESETS[preset])})
    like = nearest_preset(config)
    recipe = Recipe(
        stop=stop,
        optimiser=OPTIMISER_FOR[like] if device.type == "cuda" else "adam",
        rate=RATE_FOR[like] * (SHARE_OF_RATE if start else 1),
        warmup=min(WARMUP, max(1, stop.steps // 10)) if stop.steps else WARMUP,
        batch_tokens=batch_for(like, task.tokens),
        dropout=dropout_for(pairs, task.prepared.repeats if task.kind == "translate" else 0.0),
        metric=METRICS_OF[task.kind][0],
        precision=choose_precision(device),
        validations=max(4, min(20, round(stop.seconds / 60))) if stop.seconds else 20,
    )
    return Plan(task=task.kind, config=config, recipe=replace(recipe, **request.recipe))


# --- rules ------------------------------------------------------------------------------------------------------------


def choose_precision(device: torch.device) -> str:
    """bfloat16 on a GPU that has it and on a CPU with tiles for it (AMX): one without tiles may be slower with it."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if torch.cpu.get_capabilities().get("amx_bf16") else "float32"


def speed_of(device: torch.device) -> float:
    return SPEED_OF_GPU if device.type == "cuda" else SPEED_OF_CORE * torch.get_num_threads()


def choose_preset(pairs: int, tokens: int, vocabulary: int, seconds: float, speed: float) -> str:
    """The largest size that suits the number of pairs and the time. `speed` is in multiplications per second.

    A rough guess: half of the parameters meet each token, three times (once forward, twice back), at half speed.
    """

    def seconds_a_pass(preset: str) -> float:
        return tokens * 3 * count(sized(preset, vocabulary)) / speed

    fitting = [name for name, threshold in PAIRS_FOR.items() if pairs >= threshold]
    while len(fitting) > 1 and 0 < seconds < PASSES * seconds_a_pass(fitting[-1]):
        fitting.pop()
    return fitting[-1]


def sized(preset: str, vocabulary: int = 8, **changes: Any) -> ModelConfig:
    """The config of a preset, for one vocabulary on both sides."""
    values = {"source_vocabulary": vocabulary, "target_vocabulary": vocabulary, "norm": "pre"}
    return ModelConfig(**{**values, **PRESETS[preset], **changes})


def decided_by(task: Task) -> dict[str, Any]:
    """What the data decides about the model's config."""
    values: dict[str, Any] = {
        "source_vocabulary": task.source.size,
        "target_vocabulary": task.target.size,
        "special": task.source.special,
    }
    if task.kind == "classify":
        return values | {"target_vocabulary": 0, "shape": "encoder", "n_classes": len(task.labels), "tying": "none"}
    if task.kind == "generate":
        return values | {"source_vocabulary": 0, "shape": "decoder"}
    return values | {"tying": "all" if task.source is task.target else "output"}


def with_heads(sizes: dict[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """These sizes, with heads that share the model's width; `others` has the missing sizes."""
    if "d_model" not in sizes and "n_heads" not in sizes:
        return sizes
    wide = {**others, **sizes}
    return {"d_head": max(1, wide["d_model"] // wide["n_heads"]), **sizes}


def preset_of(config: ModelConfig) -> str:
    """The preset with these sizes, or the words for sizes of the user's own."""
    return next((name for name, sizes in PRESETS.items() if sizes.items() <= vars(config).items()), OWN_SIZES)


def nearest_preset(config: ModelConfig) -> str:
    """The preset whose number of parameters would be the most similar, all else being equal."""

    def times(name: str) -> float:
        sizes: dict[str, Any] = dict(PRESETS[name])
        return abs(math.log(count(replace(config, **sizes)) / count(config)))

    return min(PRESETS, key=times)


def dropout_for(pairs: int, repeats: float) -> float:
    """The dropout rate: the fewer the pairs, the higher, but low for few words that recur."""
    rate = min(rate for rate, threshold in DROPOUT_FOR.items() if pairs >= threshold)
    return min(rate, DROPOUT_OF_FEW) if repeats >= FEW_WORDS else rate


def batch_for(preset: str, tokens: int) -> int:
    """The preset's batch, or a smaller one that makes about twenty steps per epoch."""
    return max(256, min(BATCH_FOR[preset], tokens // 20))


# --- what the user reads ----------------------------------------------------------------------------------------------


def describe_plan(plan: Plan, device: torch.device, task: Task) -> Sequence[str]:
    """The plan in words, and how many pairs are too long for the model."""
    c, r, most = plan.config, plan.recipe, plan.config.max_positions
    vocabulary = max(c.source_vocabulary, c.target_vocabulary)
    where = "a GPU" if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    parts = f" in {r.accumulate} parts" if r.accumulate > 1 else ""
    if (out := int((task.longest > most).sum())) == len(task.longest):
        found = f"the shortest has {int(task.longest.min()):,} tokens, the model {most:,} positions"
        raise RunError("every sentence is longer than the model's positions", found=found, do="give --max-positions")
    left_out = [f"left out {out:,} pairs of more than {most:,} tokens (--max-positions changes that)"] if out else []
    return [
        f"model: {preset_of(c)}, {count(c):,} parameters, {c.layers_in_words} layers, {c.d_model} wide, "
        f"{c.n_heads} heads, vocabulary of {vocabulary:,}",
        f"computing in {r.precision} on {where}, batches of {r.batch_tokens * r.accumulate:,} tokens{parts}, "
        f"{task.pairs['train']:,} pairs, dropout {r.dropout:g}, {r.optimiser.title()} at rate {r.rate:g} "
        f"({r.schedule})",
        f"it ends {end_in_words(r.stop)}" + (" (--time changes that)" if r.stop.seconds else ""),
        *left_out,
    ]


def end_in_words(stop: Stop) -> str:
    if stop.steps:
        return f"after {stop.steps:,} steps"
    return f"after {stop.epochs:g} passes over the data" if stop.epochs else f"after {duration(stop.seconds)}"


def duration(seconds: float) -> str:
    """A duration in words, to the second below 100 minutes."""
    seconds = round(seconds)
    if seconds < 100:
        return f"{seconds} s"
    if seconds < 6000:
        return f"{seconds // 60} min" + (f" {seconds % 60} s" if seconds % 60 else "")
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
