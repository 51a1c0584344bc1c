"""Plan a training run from the user's settings and from defaults that suit the data, the hardware and the time limit.

docs/training.md explains how the defaults are chosen. The plan is written to MODEL/run/plan.json. A resumed run follows
the same plan, except that its end can be changed.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidrio.errors import RunError
from vidrio.learn.task import Request, Stop, Task, cannot_change
from vidrio.model.config import ModelConfig
from vidrio.model.files import read_json, write_atomically
from vidrio.model.json_text import json_text
from vidrio.model.parameters import count

# The paper's models (Table 3), and two smaller models for less data and slower hardware.
PRESETS: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 128, "n_heads": 4, "d_head": 32, "d_ff": 256, "n_encoder_layers": 4, "n_decoder_layers": 4},
    "small": {"d_model": 256, "n_heads": 8, "d_head": 32, "d_ff": 1024, "n_encoder_layers": 4, "n_decoder_layers": 2},
    "base": {"d_model": 512, "n_heads": 8, "d_head": 64, "d_ff": 2048, "n_encoder_layers": 6, "n_decoder_layers": 6},
    "big": {"d_model": 1024, "n_heads": 16, "d_head": 64, "d_ff": 4096, "n_encoder_layers": 6, "n_decoder_layers": 6},
}
# The minimum number of pairs for each preset. With fewer pairs, a larger model is not only slower but also worse.
PAIRS_FOR = {"tiny": 0, "small": 100_000, "base": 1_000_000, "big": 5_000_000}
PASSES = 8  # minimum number of epochs within the time limit; the largest preset that is fast enough is chosen
SPEED_OF_CORE, SPEED_OF_GPU = 4e10, 2e13  # expected multiply–adds per second
RATE_FOR = {"tiny": 3e-3, "small": 1.5e-3, "base": 7e-4, "big": 5e-4}
OPTIMISER_FOR = {"tiny": "adam", "small": "muon", "base": "muon", "big": "muon"}  # on a GPU; Muon is slow on a CPU
BATCH_FOR = {"tiny": 4096, "small": 8192, "base": 16384, "big": 32768}
DROPOUT_FOR = {0.3: 0, 0.2: 100_000, 0.1: 500_000}
# Generated pairs with a small vocabulary are not memorised, so they need little dropout. A vocabulary is small if its
# words occur FEW_WORDS times or more on average.
FEW_WORDS, DROPOUT_OF_FEW = 100, 0.1
MINUTES = 30  # default training time
WARMUP = 500  # warm-up steps; short runs have fewer
SHARE_OF_RATE = 1 / 3  # fraction of the usual peak rate for fine-tuning (--from), to limit forgetting
OWN_SIZES = "custom sizes"  # shown instead of a preset's name
# Settings that Marian's engines require of a model with a recurrent decoder, in addition to their own tokenizer format.
LIKE_MARIAN: dict[str, Any] = {
    **{"norm": "post", "norm_epsilon": 1e-6, "positions": "sinusoidal-marian"},
    **{"attention_bias": True, "output_bias": True},
}
# Metrics that can select the best model; the first is the default.
METRICS_OF = {"translate": ("chrf", "bleu", "loss"), "classify": ("accuracy", "loss"), "generate": ("loss",)}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The training settings, apart from the data, the tokenizer and the model's config."""

    stop: Stop
    optimiser: str = "adam"
    schedule: str = "linear"
    rate: float = 1e-3
    warmup: int = 500
    batch_tokens: int = 8192  # source and target tokens per batch, including padding
    accumulate: int = 1  # batches per step, in each process
    smoothing: float = 0.1  # §5.4
    dropout: float = 0.1
    clip: float = 1.0
    average: float = 0.999  # decay of the running mean of the parameters
    metric: str = "loss"
    validations: int = 20  # number of validations in the entire run
    seed: int = 1
    precision: str = "float32"  # of the computation; the parameters themselves are always float32


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings with which a run was started."""

    task: str
    config: ModelConfig
    recipe: Recipe


def read_plan(run: Path) -> Plan | None:
    """Read the plan of the run in this folder, if there is one."""
    path = run / "plan.json"
    if not path.exists():
        return None
    try:
        data = read_json(path, what=f"the plan of the run {run}")
        recipe = Recipe(**{**data["recipe"], "stop": Stop(**data["recipe"]["stop"])})
        return Plan(task=data["task"], config=ModelConfig.from_json(data["config"]), recipe=recipe)
    except (KeyError, TypeError, AttributeError) as error:
        do = "choose a new folder with --to, or resume with the version of vidrio that started the run"
        raise RunError(f"{path} is not the plan of a run", found=str(error), do=do) from None


def write_plan(run: Path, plan: Plan) -> None:
    write_atomically(run / "plan.json", f"{json_text(asdict(plan), indent=2)}\n".encode())


def refuse_nonsense(request: Request, before: Plan | None) -> None:
    """Reject options that are invalid regardless of the data."""
    if before is not None and before.task != request.task:
        raise cannot_change([f"task {before.task} → {request.task}"])
    valid = METRICS_OF[request.task]
    if (metric := request.recipe.get("metric", valid[0])) not in valid:
        do = f"use --metric {' or '.join(valid)}"
        raise RunError(f"{metric} is not a metric for this task", found=f"--task {request.task}", do=do)
    if request.start and (request.task != "translate" or request.preset or request.sizes):
        found = ", ".join([f"--task {request.task}", *filter(None, [request.preset]), *request.sizes])
        raise RunError("the sizes of a fine-tuned model cannot be changed", found=found, do="omit these options")
    if before is None:
        preset = request.preset or "tiny"
        sized(preset, **with_heads(request.sizes, PRESETS[preset]))


def continued(before: Plan, request: Request) -> Plan:
    """Return the plan of a resumed run. Only the end of the run can be changed."""
    recipe = replace(before.recipe, stop=request.stop or before.recipe.stop)
    was = {**before.config.to_json(), **asdict(recipe)}
    wanted = {**PRESETS.get(request.preset, {}), **with_heads(request.sizes, was), **request.recipe}
    changes = [f"{name} {was.get(name)} → {value}" for name, value in wanted.items() if was.get(name) != value]
    if changes:
        raise cannot_change(changes)
    return replace(before, recipe=recipe)


def new_plan(request: Request, task: Task, device: torch.device) -> Plan:
    """Return a plan with the user's settings, and default values for all other settings."""
    start, pairs, gpu = request.start, task.pairs["train"], device.type == "cuda"
    stop = request.stop or Stop(seconds=60 * MINUTES)
    if start:
        config = start.config
    else:
        speed = SPEED_OF_GPU if gpu else SPEED_OF_CORE * torch.get_num_threads()
        preset = request.preset or choose_preset(pairs, task.tokens, task.source.size, stop.seconds, speed)
        config = sized(preset, **{**decided_by(task), **with_heads(request.sizes, PRESETS[preset])})
        config = ModelConfig.from_json(config.to_json())  # refuse a model that could not be read after training
    like = nearest_preset(config)
    recipe = Recipe(
        stop=stop,
        optimiser=OPTIMISER_FOR[like] if gpu else "adam",
        rate=RATE_FOR[like] * (SHARE_OF_RATE if start else 1),
        warmup=min(WARMUP, max(1, stop.steps // 10)) if stop.steps else WARMUP,
        batch_tokens=batch_for(like, task.tokens),
        dropout=dropout_for(pairs, task.prepared.repeats if task.kind == "translate" else 0.0),
        metric=METRICS_OF[task.kind][0],
        precision=choose_precision(device),
        validations=max(4, min(20, round(stop.seconds / 60))) if stop.seconds else 20,
    )
    return Plan(task=task.kind, config=config, recipe=replace(recipe, **request.recipe))


# --- defaults ---------------------------------------------------------------------------------------------------------


def choose_precision(device: torch.device) -> str:
    """Choose bfloat16 on GPUs that support it and on CPUs with AMX. On other CPUs, it can be slower than float32."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if torch.cpu.get_capabilities().get("amx_bf16") else "float32"


def choose_preset(pairs: int, tokens: int, vocabulary: int, seconds: float, speed: float) -> str:
    """Choose the largest preset for the number of pairs and the time limit, at `speed` multiply–adds per second.

    The estimate assumes half of this speed, and that each token uses half of the parameters three times: once in the
    forward pass and twice in the backward pass.
    """
    fitting = [name for name, threshold in PAIRS_FOR.items() if pairs >= threshold]
    while len(fitting) > 1 and 0 < seconds < PASSES * tokens * 3 * count(sized(fitting[-1], vocabulary)) / speed:
        fitting.pop()
    return fitting[-1]


def sized(preset: str, vocabulary: int = 8, **changes: Any) -> ModelConfig:
    """Return the config of a preset, with the same vocabulary for source and target."""
    values = {"source_vocabulary": vocabulary, "target_vocabulary": vocabulary, "norm": "pre"}
    return ModelConfig(**{**values, **PRESETS[preset], **changes})


def decided_by(task: Task) -> dict[str, Any]:
    """Return the config fields that depend on the data."""
    values: dict[str, Any] = {
        "source_vocabulary": task.source.size,
        "target_vocabulary": task.target.size,
        "special": task.source.special,
    }
    if task.kind == "classify":
        return values | {"target_vocabulary": 0, "shape": "encoder", "n_classes": len(task.labels), "tying": "none"}
    if task.kind == "generate":
        return values | {"source_vocabulary": 0, "shape": "decoder"}
    values |= LIKE_MARIAN if task.source.sentence_pieces else {}
    return values | {"tying": "all" if task.source is task.target else "output"}


def with_heads(sizes: dict[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Add the matching head width if the model's width or number of heads is given. `others` provides missing sizes."""
    if "d_model" not in sizes and "n_heads" not in sizes:
        return sizes
    both = {**others, **sizes}
    return {"d_head": max(1, both["d_model"] // both["n_heads"]), **sizes}


def preset_of(config: ModelConfig) -> str:
    """Return the name of the preset with these sizes, or OWN_SIZES."""
    return next((name for name, sizes in PRESETS.items() if sizes.items() <= vars(config).items()), OWN_SIZES)


def nearest_preset(config: ModelConfig) -> str:
    """Return the preset whose number of parameters is closest."""

    def distance(name: str) -> float:
        sizes: dict[str, Any] = dict(PRESETS[name])
        return abs(math.log(count(replace(config, **sizes)) / count(config)))

    return min(PRESETS, key=distance)


def dropout_for(pairs: int, repeats: float) -> float:
    """Return the dropout rate, which is higher for fewer pairs, but always low if the vocabulary is small."""
    rate = min(rate for rate, threshold in DROPOUT_FOR.items() if pairs >= threshold)
    return min(rate, DROPOUT_OF_FEW) if repeats >= FEW_WORDS else rate


def batch_for(preset: str, tokens: int) -> int:
    """Return the preset's batch size, or a smaller one if an epoch would otherwise have fewer than about 20 steps."""
    return max(256, min(BATCH_FOR[preset], tokens // 20))


# --- descriptions -----------------------------------------------------------------------------------------------------


def describe_plan(plan: Plan, device: torch.device, task: Task) -> Iterator[str]:
    """Yield lines that describe the plan and state how many pairs are too long for the model."""
    c, r, most = plan.config, plan.recipe, plan.config.max_positions
    lengths = np.maximum(task.examples.source.lengths, task.examples.target.lengths) + 1  # including the end token
    if (out := int((lengths > most).sum())) == len(lengths):
        found = f"the shortest has {int(lengths.min()):,} tokens; the model has {most:,} positions"
        raise RunError("every sentence is too long for the model", found=found, do="increase --max-positions")
    where = "a GPU" if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    parts = f" in {r.accumulate} parts" if r.accumulate > 1 else ""
    yield f"model: {preset_of(c)}, {sizes_in_words(c)}"
    yield (
        f"computing in {r.precision} on {where}, batches of {r.batch_tokens * r.accumulate:,} tokens{parts}, "
        f"{task.pairs['train']:,} pairs, dropout {r.dropout:g}, {r.optimiser.title()} at rate {r.rate:g} "
        f"({r.schedule})"
    )
    if r.stop.seconds:
        yield f"training ends after {duration(r.stop.seconds)} (see --time)"
    else:
        yield "training ends after " + (f"{r.stop.steps:,} steps" if r.stop.steps else f"{r.stop.epochs:g} epochs")
    if out:
        yield f"skipped {out:,} pairs with more than {most:,} tokens (see --max-positions)"


def sizes_in_words(c: ModelConfig) -> str:
    return (
        f"{count(c):,} parameters, {c.layers_in_words} layers, {c.d_model} wide, {c.n_heads} heads, "
        f"vocabulary of {max(c.source_vocabulary, c.target_vocabulary):,}"
    )


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:,.0f} min"
