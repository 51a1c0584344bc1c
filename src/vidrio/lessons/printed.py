"""Where the post's arithmetic departs from the right one, and the numbers that the documents print.

Nothing else in the lesson knows how the post computes: `as_printed` puts these functions into a machine, and the maths
runs as always. Each departure has the number of its slip (`vidrio lesson errata NUMBER`).
"""

from dataclasses import replace

import numpy as np

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array, Tap, no_tap
from vidrio.glass.paper.transformer import Machine
from vidrio.glass.paper.variants import naive_softmax, slipped_sinusoidal
from vidrio.glass.proof.cells import Cells, Place
from vidrio.glass.proof.expressions import Expression, Number, apply
from vidrio.glass.proof.operations import expression
from vidrio.glass.proof.receipts import At, Receipt, compared, receipt
from vidrio.lessons.pages import pages

# What the two documents print, and the post goes on with or contradicts; data/printed.toml says what each is.
NUMBERS = {name: np.array(numbers, dtype=float) for name, numbers in pages("printed")["numbers"].items()}
DIVISOR = 30.0  # the post's second try, instead of √3: the weights were almost 0 and 1
EPSILON = 1e-6  # of the post's layer norm, beside the standard deviation


def layer_norm(x_LD: Array, gain_D: Array, bias_D: Array, epsilon: float, name: str, tap: Tap = no_tap) -> Array:
    """(x − μ) / (σ + 10⁻⁶): ε beside the root, not inside it. Slip 8. The post's γ is 1 and its β is 0."""
    mean_L = tap(f"{name}.mean", x_LD.mean(axis=-1))
    var_L = tap(f"{name}.var", x_LD.var(axis=-1))
    normed_LD = tap(f"{name}.normed", (x_LD - mean_L[:, None]) / (np.sqrt(var_L[:, None]) + EPSILON))
    return tap(f"{name}.out", normed_LD * gain_D + bias_D)


def positions(n_positions: int, d_model: int) -> Array:
    """The column for the pair's number (slip 1), to two decimals, of which one is cut off and not rounded (slip 2)."""
    table_PD = slipped_sinusoidal(n_positions, d_model).round(2)
    if d_model == 4:
        table_PD[1, 1] = 0.99  # cos 0.01 = 0.99995
    return table_PD


def as_printed(machine: Machine) -> Machine:
    """The machine with the post's softmax (slip 5), layer norm (slip 8) and positions (slips 1 and 2)."""
    machine = replace(machine, softmax=naive_softmax, normalise=layer_norm)
    if machine.config.positions != "sinusoidal":
        return machine
    table_PD = positions(machine.config.max_positions, machine.config.d_model)
    return replace(machine, source_positions_PD=table_PD, target_positions_PD=table_PD)


# --- and how it is told -----------------------------------------------------------------------------------------------

SLIPPED = "sin (even column j) or cos (odd) of p / 10000^(2j/D), two decimals"


def stage_of(trace: Trace, name: str) -> Stage:
    """What the table says of a quantity, where the post computes otherwise: what the post does."""
    return as_told(trace.stage(name), trace.machine)


def as_told(stage: Stage, machine: Machine) -> Stage:
    if stage.operation == "normalise" and machine.normalise is layer_norm:
        return replace(stage, formula="(x − mean) / (√var + 10⁻⁶)", latex=r"\frac{x-\mu}{\sigma+10^{-6}}")
    if stage.operation == "sinusoidal_positions" and _has_slipped_positions(machine):
        return replace(stage, operation="slipped_positions", formula=SLIPPED)
    return stage


def receipt_of(trace: Trace, at: At) -> Receipt:
    """The receipt of one number, by the post's arithmetic where that departs. Of a position before it was rounded."""
    bill, stage = receipt(trace, at), stage_of(trace, at.name)
    if trace.machine.normalise is layer_norm:  # ε is beside the root, not inside it
        bill = replace(bill, facts=tuple(fact for fact in bill.facts if "ε" not in fact[0]))
    if stage.operation not in ("normalise", "slipped_positions") or stage == bill.stage:
        return bill
    cells = Cells(trace)
    node = (
        _by_deviation(cells, stage, at.place) if stage.operation == "normalise" else expression(cells, stage, at.place)
    )
    again = compared(cells, stage, at.place, node)
    if stage.operation == "slipped_positions":
        again = replace(again, tolerance=0.01)  # two decimals, one of them cut off
    return replace(bill, stage=stage, expression=node, compared=again)


def _by_deviation(cells: Cells, stage: Stage, place: Place) -> Expression:
    x, mean, var = stage.inputs
    deviation = apply("sqrt", cells.number(var, place[:1])) + Number(EPSILON)
    return (cells.number(x, place) - cells.number(mean, place[:1])) / deviation


def _has_slipped_positions(machine: Machine) -> bool:
    config, table_PD = machine.config, machine.source_positions_PD
    return np.array_equal(table_PD, positions(config.max_positions, config.d_model))
