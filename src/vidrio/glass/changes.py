"""Functions that return a copy of a machine with different operations, parameters or settings."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from vidrio.glass.cells import ZERO, Cell, below_diagonal, epsilon, wave
from vidrio.glass.engine import INT8, Arithmetic
from vidrio.glass.expressions import Number, apply
from vidrio.glass.machine import Machine
from vidrio.glass.maths import Array, Tap, allowed, naive_softmax
from vidrio.glass.operations import OPERATIONS, Operation
from vidrio.glass.positions import slipped_sinusoidal
from vidrio.glass.words import WHAT_IF, Formula, without_head
from vidrio.model.parameters import parameter_specs
from vidrio.model.quantised import SUMMED, int8_matrices, to_int8

# --- operations that are not in the paper -----------------------------------------------------------------------------

NAIVE_SOFTMAX = Operation(
    "naive_softmax",
    naive_softmax,
    Formula("exp(x) / Σ exp(x)", r"\frac{e^{x_i}}{\sum_j e^{x_j}}"),
    Cell("ik->ij", lambda m, row: apply("exp", row.pick(m.place[-1])) / apply("Σ", apply("exp", row))),
)
UNMASKED = replace(OPERATIONS["copy"], formula=Formula("scaled, with nothing hidden", "s_{ij}", WHAT_IF))
CLOSED_GATE = Operation(
    "closed_gate",
    lambda x: np.zeros_like(x),
    Formula("0", "0", WHAT_IF),
    Cell("ij->ij", lambda m, x: ZERO),
)
ZERO_SCORES = Operation(
    "zero_scores",
    lambda scaled: np.where(allowed(*scaled.shape), scaled, scaled.dtype.type(0)),
    Formula("scaled where column ≤ row, else 0", r"\begin{cases}s_{ij}&j\le i\\0&j>i\end{cases}", WHAT_IF),
    Cell("ij->ij", lambda m, x: below_diagonal(m, x, ZERO), causal=True),
)
SLIPPED_POSITIONS = Operation(
    "slipped_positions",
    lambda first, n, d_model, dtype: slipped_sinusoidal(first + n, d_model)[first:].astype(dtype),
    Formula(
        "sin(p / 10000^(2j/D)) in an even column j, cos in an odd one",
        r"PE_{p,j}=\sin(p/10000^{2j/d}),\ j\text{ even};\ \cos(p/10000^{2j/d}),\ j\text{ odd}",
        WHAT_IF,
    ),
    Cell(make=lambda m: wave(m, m.place[1], m.place[1] % 2 == 0)),
)
NORMALISED_BESIDE = Operation(
    "normalise_beside",
    lambda x, mean, var, epsilon: (x - mean[:, None]) / (np.sqrt(var[:, None]) + epsilon),
    Formula("(x − mean) / (√var + ε)", r"\frac{x-\mu}{\sqrt{\sigma^2}+\varepsilon}", WHAT_IF),
    Cell("ij,i,i->ij", lambda m, x, mean, var: (x - mean) / (apply("sqrt", var) + epsilon(m))),
)


def divide_by(divisor: float) -> Operation:
    """Return an operation that divides scores by `divisor` instead of √d_k."""
    return Operation(
        "divide_by",
        lambda scores, d_head: scores / divisor,
        Formula(f"scores / {divisor:g}", rf"\frac{{QK^\top}}{{{divisor:g}}}", WHAT_IF),
        Cell("ij->ij", lambda m, x: x / Number(divisor, rounded=True)),
    )


# --- changed machines -------------------------------------------------------------------------------------------------


def with_row(machine: Machine, name: str, row: Operation | None = None) -> Machine:
    """Replace an operation or, if `row` is None, restore the original."""
    others = {key: other for key, other in machine.changes.items() if key != name}
    return replace(machine, changes=others if row is None else {**others, name: row})


def without(machine: Machine, what: str) -> Machine:
    """Leave out all layer norms (`layer-norm`) or all residual connections (`residual`)."""
    return replace(machine, without=machine.without | {what})


def with_config(machine: Machine, **fields: Any) -> Machine:
    """Change fields of the config. Raises ConfigError for invalid values."""
    return replace(machine, config=replace(machine.config, **fields))


def with_edits(machine: Machine, edit: Tap, *, rows: bool = True) -> Machine:
    """Edit quantities as they are computed. `rows` tells whether the edit depends on the row."""
    tapped = machine.tapped(lambda address, value: edit(address, machine.tap(address, value)))
    return replace(tapped, edits_rows=machine.edits_rows or rows)


def with_positions(machine: Machine, kind: str) -> Machine:
    """Use one of config.POSITIONS or `seed`, which reproduces the mistake in the worked example."""
    if kind == machine.config.positions:
        return machine
    config = replace(machine.config, positions="sinusoidal" if kind == "seed" else kind)
    parameters = {name: p for name, p in machine.parameters.items() if not name.endswith(".pos")}
    changed = replace(machine, config=config, parameters=parameters)
    return with_row(changed, "sinusoidal_positions", SLIPPED_POSITIONS if kind == "seed" else None)


def with_arithmetic(machine: Machine, arithmetic: Arithmetic, dtype: type) -> Machine:
    """Change the number format. Operations that another what-if replaced stay replaced."""
    with np.errstate(over="ignore"):  # float16 turns values above 65504 into ∞, as intended
        parameters: dict[str, Array] = {name: p.astype(dtype) for name, p in machine.parameters.items()}
    whole = int8_matrices(parameters, machine.config) if arithmetic is INT8 else {}
    return replace(machine, arithmetic=arithmetic, parameters=parameters, whole_parameters=whole)


def with_parameter(machine: Machine, name: str, change: Callable[[Array], Array]) -> Machine:
    """Change a parameter, or only one head of it if the name includes one. The original array is not modified."""
    whole, head = without_head(name)
    if whole not in machine.parameters:
        return machine  # learned positions that another what-if has replaced
    array = machine.parameters[whole].copy()
    part = int(head.removeprefix(".h")) if head else ...
    array[part] = change(array[part])
    whole_parameters = machine.whole_parameters
    if whole in whole_parameters:
        changed = to_int8(array, SUMMED[parameter_specs(machine.config)[whole].axes])
        whole_parameters = {**whole_parameters, whole: changed}
    return replace(machine, parameters={**machine.parameters, whole: array}, whole_parameters=whole_parameters)
