"""How a run is planned: what is asked for is done, the rest follows from the data, the machine and the time.

The rules are few, and stand here as tables; docs/training.md explains them.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import torch

from vidrio.errors import RunError
from vidrio.learn.machine import find_device
from vidrio.learn.plan import Plan, Recipe, Request, Stop, cannot_change
from vidrio.learn.task import Task
from vidrio.model.config import ModelConfig
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
RATE_FOR = {"tiny": 3e-3, "small": 1.5e-3, "base": 7e-4, "big": 5e-4}
# Muon learns more from each step, but its products take time: a GPU hardly notices, a CPU does.
OPTIMISER_FOR = {"tiny": "adam", "small": "muon", "base": "muon", "big": "muon"}
BATCH_FOR = {"tiny": 4096, "small": 8192, "base": 16384, "big": 32768}
DROPOUT_FOR = {0.3: 0, 0.2: 100_000, 0.1: 500_000}
# Pairs made from few words by a rule (each stands there so often, on average) are not learned by heart: little dropout.
FEW_WORDS, DROPOUT_OF_FEW = 100, 0.1
MINUTES = 30  # of training, unless the user chooses an end
WARMUP = 500  # steps; fewer where the whole run is short
SHARE_OF_RATE = 1 / 3  # of the usual highest rate, with --from: what the model knows should change, not be lost
OWN_SIZES = "sizes of your own"  # in place of a preset's name
# What the best model may be chosen by, the usual metric first.
METRICS_OF = {"translate": ("chrf", "bleu", "loss"), "classify": ("accuracy", "loss"), "generate": ("loss",)}


def refuse_nonsense(request: Request, before: Plan | None) -> None:
    """Refuse at once what no data can make right."""
    start = request.start
    if before is not None and before.task != request.task:
        raise cannot_change([f"task {before.task} → {request.task}"])
    valid = METRICS_OF[request.task]
    if (metric := request.recipe.get("metric", valid[0])) not in valid:
        do = f"use --metric {' or '.join(valid)}"
        raise RunError(f"{metric} does not measure this", found=f"--task {request.task}", do=do)
    if start and (request.task != "translate" or request.preset or request.sizes):
        found = ", ".join([f"--task {request.task}", *filter(None, [request.preset]), *request.sizes])
        raise RunError("a model that is learned on from has its sizes already", found=found, do="leave these out")
    if request.recipe.get("optimiser") == "muon" and not multiplies_bfloat16(find_device(request.device)):
        what = "PyTorch's Muon computes in bfloat16, which this processor does not multiply in: a step would take long"
        raise RunError(what, do="use --optimiser adam")
    if before is None:
        preset, stop = request.preset or "tiny", request.stop or Stop(steps=1)
        sized(preset, **with_heads(request.sizes, PRESETS[preset]))
        Recipe(**{"stop": stop, "schedule": schedule_for(stop), **request.recipe})


def continued(before: Plan, request: Request, processes: int = 1) -> Plan:
    """The plan of a run that goes on: as before, but for its end. What else was asked for must be as it was."""
    config, recipe = before.config, replace(before.recipe, stop=request.stop or before.recipe.stop)
    sizes = with_heads(request.sizes, config.to_json())
    if request.preset:
        sizes = {**PRESETS[request.preset], **sizes}
    asked = {**sizes, **request.recipe}
    if "accumulate" in asked:
        asked["accumulate"] = rounded_up(asked["accumulate"], processes)
    was = {**config.to_json(), **asdict(recipe)}
    changes = [f"{name} {was.get(name)} → {value}" for name, value in asked.items() if was.get(name) != value]
    if changes:
        raise cannot_change(changes)
    if recipe.accumulate % processes:
        raise RunError(
            f"{processes} processes cannot share out the steps of this run evenly",
            found=f"{recipe.accumulate} batches to a step",
            do=f"start a number of processes that divides {recipe.accumulate}, or another run",
        )
    return replace(before, recipe=recipe)


def rounded_up(batches: int, processes: int) -> int:
    """As many batches to a step as every process has the same number of."""
    return -(-batches // processes) * processes


def new_plan(request: Request, task: Task, device: torch.device, processes: int = 1) -> Plan:
    """What is asked for is done; the rest is chosen by the rules."""
    start, pairs = request.start, task.pairs["train"]
    precision, stop = choose_precision(device), request.stop or Stop(seconds=60 * MINUTES)
    if start:
        config = start.config
    else:
        preset = request.preset
        if not preset:
            speed = measure_speed(device, getattr(torch, precision))
            preset = choose_preset(pairs, task.tokens, task.source.size, stop.seconds, speed)
        own = with_heads(request.sizes, PRESETS[preset])
        config = sized(preset, **{**decided_by(task), **own})
    like = nearest_preset(config)
    recipe = Recipe(
        stop=stop,
        optimiser=OPTIMISER_FOR[like] if device.type == "cuda" else "adam",
        rate=RATE_FOR[like] * (SHARE_OF_RATE if start else 1),
        warmup=min(WARMUP, max(1, stop.steps // 10)) if stop.steps else WARMUP,
        batch_tokens=batch_for(like, task.tokens),
        dropout=dropout_for(pairs, task.prepared.repeats if task.kind == "translate" else 0.0),
        schedule=schedule_for(stop),
        patience=10 if stop.converged else 0,
        metric=METRICS_OF[task.kind][0],
        precision=precision,
        validations=max(4, min(20, round(stop.seconds / 60))) if stop.seconds else 20,
    )
    recipe = replace(recipe, **request.recipe)
    recipe = replace(recipe, accumulate=rounded_up(recipe.accumulate, processes))
    return Plan(task=task.kind, preset=preset_of(config), config=config, recipe=recipe)


# --- rules ------------------------------------------------------------------------------------------------------------


def choose_preset(pairs: int, tokens: int, vocabulary: int, seconds: float, speed: float) -> str:
    """The largest size that the pairs can fill and the time can train. `speed`: multiplications a second."""
    fitting = [name for name, threshold in PAIRS_FOR.items() if pairs >= threshold]
    while len(fitting) > 1 and seconds and tokens_a_second(fitting[-1], vocabulary, speed) * seconds < PASSES * tokens:
        fitting.pop()
    return fitting[-1]


def tokens_a_second(preset: str, vocabulary: int, speed: float) -> float:
    """A rough guess: half of the parameters meet each token, three times (once forward, twice back), at half speed."""
    return speed / (3 * count(sized(preset, vocabulary)))


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
    """These sizes, with heads that share the model's width unless `d_head` is given; `others` has the missing sizes."""
    if "d_model" not in sizes and "n_heads" not in sizes:
        return sizes
    wide = {**others, **sizes}
    return {"d_head": max(1, wide["d_model"] // wide["n_heads"]), **sizes}


def preset_of(config: ModelConfig) -> str:
    """The preset whose sizes these are; empty if none has them."""
    return next((name for name, sizes in PRESETS.items() if sizes.items() <= vars(config).items()), "")


def nearest_preset(config: ModelConfig) -> str:
    """The preset whose model would have the most similar number of parameters, all else being the same."""

    def times(name: str) -> float:
        sizes: dict[str, Any] = dict(PRESETS[name])
        return abs(math.log(count(replace(config, **sizes)) / count(config)))

    return min(PRESETS, key=times)


def schedule_for(stop: Stop) -> str:
    """One that falls to 0 at the end, if the end is known."""
    return "inverse-sqrt" if stop.converged else "linear"


def dropout_for(pairs: int, repeats: float) -> float:
    """The fewer the pairs, the more; little for a few words that come again and again."""
    rate = min(rate for rate, threshold in DROPOUT_FOR.items() if pairs >= threshold)
    return min(rate, DROPOUT_OF_FEW) if repeats >= FEW_WORDS else rate


def batch_for(preset: str, tokens: int) -> int:
    """The size's own batch, but at least some twenty steps in each pass over small data."""
    return max(256, min(BATCH_FOR[preset], tokens // 20))


def measure_speed(device: torch.device, dtype: torch.dtype) -> float:
    """Multiplications (with their additions) a second, in matrix products of the sizes that matter."""
    a, b = torch.ones(2048, 512, dtype=dtype, device=device), torch.ones(512, 512, dtype=dtype, device=device)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        product = a @ b
        product[0, 0].item()  # wait for a GPU
        best = min(best, time.perf_counter() - start)
    return a.shape[0] * a.shape[1] * b.shape[1] / best


@cache
def choose_precision(device: torch.device) -> str:
    """bfloat16 where the machine multiplies in it and is not slower for it, else float32. A processor with AVX-512 and
    without AMX may have the instruction and take half as long again."""
    if not multiplies_bfloat16(device):
        return "float32"
    slower = device.type == "cpu" and measure_speed(device, torch.bfloat16) < measure_speed(device, torch.float32)
    return "float32" if slower else "bfloat16"


def multiplies_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    can = torch.cpu.get_capabilities()
    return bool(can.get("avx512_bf16") or can.get("amx_bf16"))


# --- what the user reads ----------------------------------------------------------------------------------------------


def too_long(plan: Plan, task: Task) -> list[str]:
    """What is left out because the model has not so many positions."""
    most, out = plan.config.max_positions, int((task.longest > plan.config.max_positions).sum())
    if out == len(task.longest):
        raise RunError(
            "every sentence is longer than the model's positions",
            found=f"the shortest has {int(task.longest.min()):,} tokens, the model {most:,} positions",
            do="give more --max-positions",
        )
    return [f"left out {out:,} pairs of more than {most:,} tokens (--max-positions changes that)"] if out else []


def describe_plan(plan: Plan, device: torch.device, task: Task) -> Sequence[str]:
    """What will be done, in three lines."""
    c, r = plan.config, plan.recipe
    vocabulary = max(c.source_vocabulary, c.target_vocabulary)
    where = "a GPU" if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    why = " (bfloat16 is not faster on this machine)" if choose_precision(device) != "bfloat16" else ""
    parts = f" in {r.accumulate} parts" if r.accumulate > 1 else ""
    return [
        f"model: {plan.preset or OWN_SIZES}, {count(c):,} parameters, {c.layers_in_words} layers, {c.d_model} wide, "
        f"{c.n_heads} heads, vocabulary of {vocabulary:,}",
        f"computing in {r.precision}{why} on {where}, batches of {r.batch_tokens * r.accumulate:,} tokens{parts}, "
        f"{task.pairs['train']:,} pairs, dropout {r.dropout:g}, {r.optimiser.title()} at rate {r.rate:g} "
        f"({r.schedule})",
        f"it ends {r.stop}" + (" (--time changes that)" if r.stop.seconds else ""),
    ]
