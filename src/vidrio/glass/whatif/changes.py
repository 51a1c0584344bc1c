"""A machine with something changed, and the table of what its numbers then are.

Each change is a function from a machine to another one. `stages_of` rewrites the table of `stages.py` for the changed
parts, so that a receipt of a machine that divides by 30 says so, and recomputes with 30.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from vidrio.errors import ConfigError
from vidrio.glass.numbers.stages import Stage, stages
from vidrio.glass.paper import attention, maths, positions
from vidrio.glass.paper.attention import allowed_LM
from vidrio.glass.paper.maths import Array, Tap, no_tap
from vidrio.glass.paper.transformer import Machine
from vidrio.model.config import ModelConfig

WHAT_IF = "what if: not in the paper"

# --- functions to put in place of the paper's -------------------------------------------------------------------------


def naive_softmax(x: Array) -> Array:
    """exp(xᵢ) / Σⱼ exp(xⱼ) as the formula stands: exp overflows above 709.78 (88.72 in float32), and ∞/∞ is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        exp = np.exp(x)
        return exp / exp.sum(axis=-1, keepdims=True)


def unmasked(scaled_LM: Array, name: str, tap: Tap) -> Array:
    """Nothing is hidden: every row sees the later ones that are there."""
    return tap(name, scaled_LM)


def zero_scores(scaled_LM: Array, name: str, tap: Tap) -> Array:
    """Scores of later rows set to 0: a common slip, for 0 is a score like any other and hides nothing."""
    return tap(name, np.where(allowed_LM(*scaled_LM.shape), scaled_LM, 0.0))


def zero_after(weights_LM: Array) -> Array:
    """Weights of later rows set to 0 after the softmax: they are hidden, but the rows no longer sum to 1."""
    return np.where(allowed_LM(*weights_LM.shape), weights_LM, weights_LM.dtype.type(0))


def zero_after_renormalised(weights_LM: Array) -> Array:
    """The same with each row divided by its sum: again what −∞ before the softmax gives."""
    kept_LM = zero_after(weights_LM)
    return kept_LM / kept_LM.sum(axis=-1, keepdims=True)


def unnormalised(x_LD: Array, gain_D: Array, bias_D: Array, epsilon: float, name: str, tap: Tap = no_tap) -> Array:
    """No layer norm: the rows go on as they are."""
    return tap(f"{name}.out", x_LD)


def no_residual(x_LD: Array, made_LD: Array) -> Array:
    """What came in is lost: only what the sub-layer made of it goes on."""
    return made_LD


def slipped_sinusoidal(n_positions: int, d_model: int) -> Array:
    """The worked example's slip: the column j stands where the pair's number i should, so that no two columns share a
    frequency. Row 1 of width 4 begins sin 1, cos 0.01 instead of sin 1, cos 1."""
    angle = np.arange(n_positions)[:, None] / 10000.0 ** (2 * np.arange(d_model) / d_model)
    return np.where(np.arange(d_model) % 2 == 0, np.sin(angle), np.cos(angle))


# --- changes of a machine ---------------------------------------------------------------------------------------------


def with_softmax(machine: Machine, kind: str) -> Machine:
    return replace(machine, softmax={"naive": naive_softmax, "stable": maths.softmax}[kind])


def with_mask(machine: Machine, kind: str) -> Machine:
    """Those that work after the softmax let everything through here; `whatif.py` changes the weights."""
    return replace(machine, mask={"causal": attention.causal, "zeros": zero_scores}.get(kind, unmasked))


def without_layer_norm(machine: Machine) -> Machine:
    return replace(machine, normalise=unnormalised)


def without_residual(machine: Machine) -> Machine:
    return replace(machine, add_residual=no_residual)


def with_divisor(machine: Machine, divisor: float) -> Machine:
    return replace(machine, score_divisor=divisor)


def with_config(machine: Machine, **fields: Any) -> Machine:
    """A choice of the closed set made otherwise; ConfigError if it cannot be."""
    return replace(machine, config=replace(machine.config, **fields))


def without_embedding_scale(machine: Machine) -> Machine:
    return replace(with_config(machine, scale_embeddings=False), embedding_scale=1.0)


def with_norm_epsilon(machine: Machine, epsilon: float) -> Machine:
    return with_config(machine, norm_epsilon=epsilon)


def with_positions(machine: Machine, kind: str) -> Machine:
    """One of config.POSITIONS, or `seed`: the worked example's slip."""
    if kind == machine.config.positions:
        return machine
    if kind == "learned":
        raise ConfigError(
            "this model has no learned positions", found=machine.config.positions, do="train one that has"
        )
    config = replace(machine.config, positions="sinusoidal" if kind == "seed" else kind)
    make = slipped_sinusoidal if kind == "seed" else positions.TABLES[kind]
    table_PD = make(config.max_positions, config.d_model).astype(_dtype(machine))
    return replace(
        machine,
        config=config,
        parameters={name: p for name, p in machine.parameters.items() if not name.endswith(".pos")},
        source_positions_PD=table_PD,
        target_positions_PD=table_PD,
    )


def with_dtype(machine: Machine, dtype: type) -> Machine:
    with np.errstate(over="ignore"):  # beyond float16's 65504 is ∞, and that is the lesson
        return replace(
            machine,
            parameters={name: np.asarray(p).astype(dtype) for name, p in machine.parameters.items()},
            source_positions_PD=machine.source_positions_PD.astype(dtype),
            target_positions_PD=machine.target_positions_PD.astype(dtype),
        )


def with_parameter(machine: Machine, name: str, change: Callable[[Array], Array]) -> Machine:
    """One parameter (one head of it, where its address says so) altered in a copy."""
    whole, _, head = (name, "", "") if name in machine.parameters else name.rpartition(".h")
    array = machine.parameters[whole].copy()
    if head:
        array[int(head)] = change(array[int(head)])
    else:
        array = change(array)
    return replace(machine, parameters={**machine.parameters, whole: array})


def with_learned_positions_of_parameters(machine: Machine) -> Machine:
    """The positions taken afresh from the parameters, after these were changed."""
    p = machine.parameters
    return replace(
        machine,
        source_positions_PD=p.get("src.pos", machine.source_positions_PD),
        target_positions_PD=p.get("tgt.pos", machine.target_positions_PD),
    )


def _dtype(machine: Machine) -> np.dtype[Any]:
    return next(iter(machine.parameters.values())).dtype


# --- the table of a changed machine -----------------------------------------------------------------------------------


def stages_of(machine: Machine) -> dict[str, Stage]:
    """What each number of this machine is. A function that is not known here leaves the table as the config has it:
    then receipts show that the machine does something else."""
    table = dict(stages(machine.config))
    config = machine.config
    if machine.softmax is naive_softmax:
        _rewrite(table, "softmax", "naive_softmax", "exp(x) / Σ exp(x)", r"\frac{e^{x_i}}{\sum_j e^{x_j}}")
    if machine.mask is unmasked:
        _rewrite(table, "mask", "copy", "scaled: nothing is hidden", "s_{ij}", WHAT_IF)
    if machine.mask is zero_scores:
        latex = r"\begin{cases}s_{ij}&j\le i\\0&j>i\end{cases}"
        _rewrite(table, "mask", "zero_scores", "scaled where column ≤ row, else 0", latex, WHAT_IF)
    if not math.isclose(machine.score_divisor, attention.divisor(config.d_head), rel_tol=1e-12):
        number = f"{machine.score_divisor:g}"
        _rewrite(table, "divide", "divide_by", f"scores / {number}", rf"\frac{{QK^\top}}{{{number}}}", WHAT_IF)
    if machine.add_residual is no_residual:
        for stage in list(table.values()):
            if stage.operation == "add" and stage.address.endswith(".sum"):
                made = stage.inputs[1]
                table[stage.address] = replace(
                    stage, operation="copy", inputs=(made,), formula=made, latex="x", place=WHAT_IF
                )
    if machine.normalise is unnormalised:
        for stage in [s for s in table.values() if s.operation == "normalise"]:
            name, x = stage.address.removesuffix(".normed"), stage.inputs[0]
            for step in ("mean", "var", "normed"):
                del table[f"{name}.{step}"]
            table[f"{name}.out"] = replace(
                table[f"{name}.out"], operation="copy", inputs=(x,), formula=x, latex="x", place=WHAT_IF
            )
    if config.positions in positions.TABLES:
        _rewrite_positions(table, machine, config)
    return table


def _rewrite(
    table: dict[str, Stage], was: str, operation: str, formula: str, latex: str, place: str | None = None
) -> None:
    """Other words for every stage that was made by one operation, and is now made by another."""
    for stage in list(table.values()):
        if stage.operation == was:
            table[stage.address] = replace(
                stage, operation=operation, formula=formula, latex=latex, place=place or stage.place
            )


def _rewrite_positions(table: dict[str, Stage], machine: Machine, config: ModelConfig) -> None:
    """The first rows tell which table it is: every kind differs from every other at position 1."""
    rows = machine.source_positions_PD[:2]

    def is_made_by(make: Callable[[int, int], Array]) -> bool:
        return np.array_equal(rows, make(len(rows), config.d_model).astype(rows.dtype))

    if not is_made_by(positions.TABLES[config.positions]) and is_made_by(slipped_sinusoidal):
        operation = config.positions.replace("-", "_") + "_positions"
        formula = "sin(p / 10000^(2j/D)) in an even column j, cos in an odd one"
        latex = r"PE_{p,j}=\sin(p/10000^{2j/d}),\ j\text{ even};\ \cos(p/10000^{2j/d}),\ j\text{ odd}"
        _rewrite(table, operation, "slipped_positions", formula, latex, WHAT_IF)
