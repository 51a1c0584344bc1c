"""How a run is planned: what is asked for is done, the rest follows from the data, the machine and the time.

The rules are few, and stand here as tables; docs/training.md tells them in words.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vidrio.errors import RunError
from vidrio.learn.net.loss import CHUNK
from vidrio.learn.processes import ALONE, Processes
from vidrio.learn.run.plan import Plan, Recipe, Stop, cannot_change, compare
from vidrio.learn.run.prepare import Task
from vidrio.learn.run.request import Choices, Request
from vidrio.model.config import DecodingDefaults, ModelConfig, SpecialIds
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
DROPOUT_FOR = {0.3: 0, 0.2: 100_000, 0.1: 500_000}
# Pairs made from few words by a rule (each stands there so often, on average) are not learned by heart: little dropout.
FEW_WORDS, DROPOUT_OF_FEW = 100, 0.1
RATE_FOR = {"tiny": 3e-3, "small": 1.5e-3, "base": 7e-4, "big": 5e-4}
# Muon learns more from each step, but its products take a sixth of the time where matrices are small: no gain there.
OPTIMISER_FOR = {"tiny": "adam", "small": "muon", "base": "muon", "big": "muon"}
BATCH_FOR = {"tiny": 4096, "small": 8192, "base": 16384, "big": 32768}
MINUTES = 30  # a run takes, unless it is told when to stop
WARMUP = 500  # steps; fewer where the whole run is short
# Of the usual highest rate, where a model is learned on from: what it knows shall change, and not be lost.
SHARE_OF_RATE = 1 / 3
SHARE = 0.8  # of what is free, to be used
LIBRARIES = 64e6  # bytes that they take for themselves at the first step
OWN_SIZES = "sizes of your own"  # in place of a preset's name
# What a model may be best by, the usual one first.
METRICS_OF = {"translate": ("chrf", "bleu", "loss"), "classify": ("accuracy", "loss"), "generate": ("loss",)}


def refuse_nonsense(request: Request, before: Plan | None) -> None:
    """Refuse at once what no data can make right."""
    choices, start = request.choices, request.start
    if before is not None and before.task != choices.task:
        raise cannot_change([f"task {before.task} → {choices.task}"])
    valid = METRICS_OF[choices.task]
    if (metric := choices.recipe.get("metric", valid[0])) not in valid:
        do = f"use --metric {' or '.join(valid)}"
        raise RunError(f"{metric} is no measure for this", found=f"--task {choices.task}", do=do)
    if start and (choices.task != "translate" or choices.preset or choices.sizes):
        found = ", ".join([f"--task {choices.task}", *filter(None, [choices.preset]), *choices.sizes])
        raise RunError("a model that is learned on from has its sizes already", found=found, do="leave these out")
    if before is None:
        preset, stop = choices.preset or "tiny", choices.stop or Stop(steps=1)
        sized(preset, 8, SpecialIds(), **with_heads(choices.sizes, PRESETS[preset]))
        Recipe(**{"stop": stop, "schedule": schedule_for(stop), **choices.recipe})


@dataclass(frozen=True)
class Room:
    """What there is to train on."""

    device: torch.device
    memory: int | None  # bytes that may be used; None: nobody knows
    processes: Processes = ALONE
    shares: int = 1  # that a batch is learned from in, side by side


def choose_plan(request: Request, task: Task, before: Plan | None, room: Room) -> tuple[Plan, list[str]]:
    """The plan, and what is to be told of it."""
    notes: list[str] = []
    if before is None:
        plan = new_plan(request, task, room.device)
        if "batch_tokens" not in request.choices.recipe and room.memory is not None:
            plan, notes = fit_memory(plan, task, room, parts="accumulate" not in request.choices.recipe)
    else:
        plan = changed_plan(before, task, request.choices)
    accumulate, size = plan.recipe.accumulate, room.processes.size
    if before is not None and accumulate == before.recipe.accumulate and accumulate % size:
        raise RunError(
            f"{size} processes cannot share out the steps of this run evenly",
            found=f"{accumulate} batches to a step",
            do=f"start a number of processes that {accumulate} can be divided by, or another run",
        )
    plan = replace(plan, recipe=replace(plan.recipe, accumulate=-(-accumulate // size) * size))
    changes = compare(before, plan) if before is not None else []
    return plan, [*describe_plan(plan, room.device, task), *changes, *notes, *too_long(plan, task)]


def new_plan(request: Request, task: Task, device: torch.device) -> Plan:
    """What is asked for is done; the rest is chosen by the rules."""
    choices, start, pairs = request.choices, request.start, task.pairs["train"]
    tokens = int(task.examples.source.lengths.sum() + task.examples.target.lengths.sum())  # in one pass
    precision, stop = choose_precision(device), choices.stop or Stop(seconds=60 * MINUTES)
    if start:
        config = start.config
    else:
        preset = choices.preset
        if not preset:
            vocabulary = (task.source or task.target).size  # type: ignore[union-attr]
            speed = measure_speed(device, getattr(torch, precision))
            preset = choose_preset(pairs, tokens, vocabulary, stop.seconds, speed)
        config = make_config(task, preset, choices.sizes)
    like = nearest_preset(config)
    recipe = Recipe(
        stop=stop,
        optimiser=OPTIMISER_FOR[like],
        rate=RATE_FOR[like] * (SHARE_OF_RATE if start else 1),
        warmup=min(WARMUP, max(1, stop.steps // 10)) if stop.steps else WARMUP,
        batch_tokens=batch_for(like, tokens),
        dropout=dropout_for(pairs, task.repeats),
        schedule=schedule_for(stop),
        patience=10 if stop.converged else 0,
        metric=METRICS_OF[task.kind][0],
        precision=precision,
        validations=max(4, min(20, round(stop.seconds / 60))) if stop.seconds else 20,
    )
    return _planned(task, config, replace(recipe, **choices.recipe))


def changed_plan(before: Plan, task: Task, choices: Choices) -> Plan:
    """What is asked for is done; the rest stays as it was in the run before."""
    config = make_config(task, choices.preset, choices.sizes) if choices.preset else before.config
    if choices.sizes and not choices.preset:
        config = replace(config, **with_heads(choices.sizes, config.to_json()))
    return _planned(task, config, replace(before.recipe, stop=choices.stop or before.recipe.stop, **choices.recipe))


def _planned(task: Task, config: ModelConfig, recipe: Recipe) -> Plan:
    preset, tokenizers = preset_of(config), task.fingerprints
    return Plan(task=task.kind, preset=preset, data=task.key, config=config, recipe=recipe, tokenizers=tokenizers)


def fit_memory(plan: Plan, task: Task, room: Room, *, parts: bool) -> tuple[Plan, list[str]]:
    """The plan with batches that fit into the memory that is free, as many to a step as make the same whole; told."""
    assert room.memory is not None
    on_cpu = room.device.type == "cpu"
    free = room.memory // room.processes.local_size if on_cpu else room.memory  # processes share a machine
    recipe, longest = plan.recipe, int(min(longest_of(task).max(), plan.config.max_positions))
    most = need(plan.config, recipe, longest, room.device.type, room.shares).most_tokens(free)
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
    note = f"{there} holds batches of {batch:,} tokens, not of {recipe.batch_tokens:,}"
    accumulate = recipe.accumulate * (pieces if parts else 1)
    if parts:
        note += f": {accumulate} of them make one step"
    return replace(plan, recipe=replace(recipe, batch_tokens=batch, accumulate=accumulate)), [note]


# --- rules ------------------------------------------------------------------------------------------------------------


def choose_preset(pairs: int, tokens: int, vocabulary: int, seconds: float, speed: float) -> str:
    """The largest size that the pairs can fill and the time can train. `speed`: multiplications a second."""
    fitting = [name for name, threshold in PAIRS_FOR.items() if pairs >= threshold]
    while len(fitting) > 1 and seconds and tokens_a_second(fitting[-1], vocabulary, speed) * seconds < PASSES * tokens:
        fitting.pop()
    return fitting[-1]


def tokens_a_second(preset: str, vocabulary: int, speed: float) -> float:
    """A rough guess: half of the parameters meet each token, three times (once forward, twice back), at half speed."""
    return speed / (3 * count(sized(preset, vocabulary, SpecialIds())))


def sized(preset: str, vocabulary: int, special: SpecialIds, **changes: Any) -> ModelConfig:
    """The config of a preset, for one vocabulary on both sides."""
    values = {"source_vocabulary": vocabulary, "target_vocabulary": vocabulary, "special": special, "norm": "pre"}
    return ModelConfig(**{**values, **PRESETS[preset], **changes})


def make_config(task: Task, preset: str, sizes: dict[str, Any]) -> ModelConfig:
    own = with_heads(sizes, PRESETS[preset])
    return sized(preset, 0, **{**decided_by(task), "decoding": DecodingDefaults(), **own})


def decided_by(task: Task) -> dict[str, Any]:
    """What the data decides about the model's config."""
    tokenizer = task.source or task.target
    assert tokenizer is not None
    values: dict[str, Any] = {
        "source_vocabulary": task.source.size if task.source else 0,
        "target_vocabulary": task.target.size if task.target else 0,
        "special": tokenizer.special,
    }
    if task.kind == "classify":
        return values | {"shape": "encoder", "n_classes": len(task.labels), "tying": "none"}
    if task.kind == "generate":
        return values | {"shape": "decoder"}
    return values | {"tying": "all" if task.source is task.target else "output"}


def with_heads(sizes: dict[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """These sizes; heads share the model's width, unless told otherwise. What is not given is as in the others."""
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
    """The fewer the pairs, the more; little, where the same few words are said again and again."""
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


def choose_precision(device: torch.device) -> str:
    """bfloat16 where the machine multiplies in it, else float32."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    can = torch.cpu.get_capabilities()
    return "bfloat16" if can.get("avx512_bf16") or can.get("amx_bf16") else "float32"


# --- how much memory a step takes -------------------------------------------------------------------------------------
#
# A step's largest part is what the forward pass keeps for the way back. It is counted here in numbers a token, by
# sub-layers, as `net/model.py` keeps them; the letters are the axes of `config.py`.


@dataclass(frozen=True)
class Need:
    """Bytes that training takes whatever the batch, and for each token of a batch."""

    fixed: float
    token: float

    def most_tokens(self, free: float) -> int:
        """The largest batch that leaves a part of what is free alone; below 1 there is room for none."""
        return int((SHARE * free - self.fixed) / self.token)


def need(config: ModelConfig, recipe: Recipe, longest: int, device_type: str = "cpu", shares: int = 1) -> Need:
    """What training takes, in batches of the longest sentences: they need most, since attention is L · M numbers."""
    size = 2 if recipe.precision == "bfloat16" else 4
    # Parameters, their mean, the best, Adam's two, a gradient, all in float32; and while a state is saved, a copy of
    # the first five. A backward pass's own gradients take no more than that copy; but of a second share they lie in
    # memory of another thread, which nothing else can use.
    parameters = (20 + 20 * shares) * count(config)
    W = max(config.source_vocabulary, config.target_vocabulary, config.n_classes) * config.d_model
    loss = 2 * size * CHUNK + 2 * 4 * W
    passes = 1
    if recipe.r_drop:  # each token goes through twice, with six float32 for each logit
        passes, loss = 2, loss + 6 * 4 * CHUNK
    return Need(
        LIBRARIES + parameters + shares * loss,
        passes * size * (kept(config, recipe, longest, device_type) + passing(config, longest)),
    )


def kept(config: ModelConfig, recipe: Recipe, longest: int, device_type: str) -> float:
    """Numbers that a token leaves behind for the way back; of a source and a target token, the mean."""
    c = config
    D, E, F = c.d_model, c.n_heads * c.d_head, c.d_ff
    dropped, thinned = recipe.dropout > 0, recipe.attention_dropout > 0
    around = (3 if dropped else 2) * D  # a sub-layer's input, the same normalised, the dropout mask
    whole = device_type == "cpu" or thinned  # a GPU's own kernel keeps no weights
    weights = c.n_heads * longest * (whole + thinned)
    heads = 5 * E + weights  # Q, K, V, what was gathered, the same with its heads side by side
    feed = around + F * (3 if recipe.activation_dropout else 1)
    source = c.n_encoder_layers * (around + heads + feed) + 3 * D
    target = c.n_decoder_layers * (around + heads + feed) + 5 * D  # the last rows, and their gradient
    if not c.has_decoder:
        return source
    if not c.has_encoder:
        return target
    source += c.n_decoder_layers * 2 * E  # cross-attention's keys and values
    target += c.n_decoder_layers * (around + 3 * E + weights)
    return (source + target) / 2


def passing(config: ModelConfig, longest: int) -> float:
    """Numbers that a token needs while one layer is computed, forward or back, and no longer."""
    return 4 * config.n_heads * longest + 2 * config.d_ff + 6 * config.d_model


# --- telling ----------------------------------------------------------------------------------------------------------


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


def describe_plan(plan: Plan, device: torch.device, task: Task) -> Sequence[str]:
    """What will be done, in three lines."""
    c, r = plan.config, plan.recipe
    vocabulary = max(c.source_vocabulary, c.target_vocabulary)
    where = "a GPU" if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    why = " (this machine does not multiply in bfloat16)" if choose_precision(device) != "bfloat16" else ""
    return [
        f"model: {plan.preset or OWN_SIZES}, {count(c):,} parameters, {c.layers_in_words} layers, {c.d_model} wide, "
        f"{c.n_heads} heads, vocabulary of {vocabulary:,}",
        f"computing in {r.precision}{why} on {where}, batches of {r.batch_tokens * r.accumulate:,} tokens, "
        f"{len(task.examples.source.lengths):,} pairs, dropout {r.dropout:g}, {r.optimiser.title()} at rate {r.rate:g} "
        f"({r.schedule})" + (f", R-Drop {r.r_drop:g}" if r.r_drop else ""),
        f"it ends {r.stop}" + (" (--time changes that)" if r.stop.seconds else ""),
    ]
