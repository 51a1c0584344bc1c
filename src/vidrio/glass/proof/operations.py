"""One table of operations: for every small step that makes a number from others, all that is to be said of it.

How the arithmetic of one number is written down, from the paper's formula and with nothing of the maths that it checks;
which numbers of its inputs it is made from; and what a receipt tells besides. To add a step: a line here, and stages
that name it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.proof.cells import Making, Place, letters
from vidrio.glass.proof.expressions import (
    Apply,
    Difference,
    Dot,
    Expression,
    InFloat64,
    Number,
    Power,
    Product,
    Quotient,
    Squares,
    Sum,
    Total,
    exponential,
)
from vidrio.glass.proof.facts import (
    Facts,
    facts_of_choice,
    facts_of_gain_and_bias,
    facts_of_naive_softmax,
    facts_of_normalise,
    facts_of_softmax,
    facts_of_variance,
    no_facts,
)

Used = Iterator[tuple[int | None, ...]]  # places; None: every index of that axis
Needed = Iterator[tuple[str, Array]]


@dataclass(frozen=True)
class Operation:
    """One small step. Where `indices` tell it all, `uses` and `needs` follow from them."""

    express: Callable[[Making], Expression]
    indices: str = ""  # cells.letters
    facts: Callable[[Making], Facts] = no_facts
    # Which numbers of a stage are made from number `place` of its input `slot`.
    uses: "Callable[[Trace, Stage, int, Place], Used] | None" = None
    # For the wanted numbers of a stage: which numbers of its inputs they need.
    needs: "Callable[[Trace, Stage, Array], Needed] | None" = None
    picks: bool = False  # its second input says which numbers of the first one enter: ids, choices
    by_row: bool = False  # a whole row is worked out at once


# --- how one number is made -------------------------------------------------------------------------------------------


def itself(m: Making) -> Expression:
    """A trained number, a token's id, or the search's choice: not computed."""
    return m.cells.number(m.stage.address, m.place)


def lookup(m: Making) -> Expression:
    table, ids = m.stage.inputs[:2]
    token = m.cells.number(ids, m.place[:1])
    return m.cells.number(table, (int(token.value), m.place[1]))


def lookup_whole(m: Making) -> Expression:
    table, ids, factor = m.stage.inputs
    token = int(m.cells.number(ids, m.place[:1]).value)
    return Quotient(m.cells.number(table, (token, m.place[1])), m.cells.number(factor, (token,)))


def scale(m: Making) -> Expression:
    config = m.cells.trace.machine.config
    if not config.scale_embeddings:
        return m.number()
    return Product(Number(math.sqrt(config.d_model), symbol="√D", rounded=True), m.number())


def wave(m: Making, pair: int, function: str, columns: Expression) -> Expression:
    """sin or cos of position / 10000^(2 pair / columns); §3.5."""
    exponent = Quotient(Number(2.0 * pair), columns)
    return InFloat64(Apply(function, Quotient(Number(float(m.place[0])), Power(Number(10000.0), exponent))))


def width(m: Making) -> Number:
    return Number(float(m.cells.trace.machine.config.d_model), symbol="D")


def interleaved(m: Making, pair: int) -> Expression:
    return wave(m, pair, "cos" if m.place[1] % 2 else "sin", width(m))


def in_halves(m: Making, columns: Expression) -> Expression:
    column, half = m.place[1], m.cells.trace.machine.config.d_model // 2
    return wave(m, column % half, "sin" if column < half else "cos", columns)


def project(m: Making) -> Expression:
    product = Dot(m.row(0), m.row(1))
    return product if len(m.inputs) == 2 else Sum((product, m.number(2)))


def dot(m: Making) -> Expression:
    return Dot(m.row(0), m.row(1))


def divide(m: Making) -> Expression:
    root = math.sqrt(m.cells.trace.machine.config.d_head)
    return Quotient(m.number(), Number(root, symbol="√K", rounded=True))


def divide_by(m: Making) -> Expression:
    return Quotient(m.number(), Number(float(m.cells.trace.machine.score_divisor), rounded=True))


def mask(m: Making) -> Expression:
    row, column = m.place
    return m.number() if column <= row else Number(-math.inf, symbol="−∞")


def zero_scores(m: Making) -> Expression:
    row, column = m.place
    return m.number() if column <= row else Number(0.0)


def share(m: Making, *, shifted: bool) -> Expression:
    """Softmax, with the row's maximum taken off first or not."""
    row = m.row()
    exps = m.cells.exps(row.name, row.place, shifted=shifted)
    return Quotient(exponential(row[m.place[-1]], exps.shift), exps)


def mean(m: Making) -> Expression:
    return Quotient(Total(m.row()), Number(float(len(m.row()))))


def variance_by_squares(m: Making) -> Expression:
    mean_of_squares = Quotient(Dot(m.row(0), m.row(0)), Number(float(len(m.row(0)))))
    return Apply("max0", Difference(mean_of_squares, Power(m.number(1), Number(2.0))))


def normalise(m: Making) -> Expression:
    epsilon = Number(m.cells.trace.machine.config.norm_epsilon, symbol="ε", rounded=True)
    return Quotient(Difference(m.number(0), m.number(1)), Apply("sqrt", Sum((m.number(2), epsilon))))


def gelu(m: Making) -> Expression:
    x = m.number()
    erf = Apply("erf", Quotient(x, Number(math.sqrt(2.0), symbol="√2", rounded=True)))
    return Product(x, Product(Number(0.5), Sum((Number(1.0), erf))))


def swish(m: Making) -> Expression:
    """x / (1 + exp(−x)), written so that exp never overflows."""
    x = m.number()
    e = Apply("exp", Difference(Number(0.0), Apply("abs", x)))
    above = Number(1.0) if x.value >= 0 else e
    return Product(x, Quotient(above, Sum((Number(1.0), e))))


def concat(m: Making) -> Expression:
    (row, column), d_head = m.place, m.cells.trace.machine.config.d_head
    return m.cells.number(m.stage.inputs[column // d_head], (row, column % d_head))


def log_of_choice(m: Making) -> Expression:
    (step,) = m.place
    token = int(m.cells.array("out.choice")[step])
    return Apply("log", m.cells.number("out.prob", (step, token)))


def factor(m: Making) -> Expression:
    """127 / max |x|; 1 where all are 0."""
    largest = max(m.row().numbers(), key=lambda number: abs(number.value))
    return Quotient(Number(127.0), Apply("abs", largest)) if largest.value else Number(1.0)


def whole_row(m: Making) -> Expression:
    """Rounded as the fast engine does, which adds 128 before it rounds, and takes it off again."""
    shifted = Sum((Product(m.number(0), m.number(1)), Number(128.0)))
    return Difference(Apply("round", shifted), Number(128.0))


def whole_weight(m: Making) -> Expression:
    return Apply("round", Product(m.number(0), m.number(1)))


def restore(m: Making) -> Expression:
    y = Quotient(Quotient(m.number(0), m.number(1)), m.number(2))
    return y if len(m.inputs) == 3 else Sum((y, m.number(3)))


# --- which numbers meet which, where indices do not tell --------------------------------------------------------------


def uses_of_lookup(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    """A row of the table is used for each token that has this id."""
    if slot == 1:
        yield place[0], None
        return
    for row in np.flatnonzero(trace.array(stage.inputs[1]) == place[0]):
        yield int(row), place[1] if slot == 0 else None


def needs_of_lookup(trace: Trace, stage: Stage, wanted: Array) -> Needed:
    ids = trace.array(stage.inputs[1])
    rows = np.any(wanted, axis=1)
    yield stage.inputs[1], rows
    for name, wanted_of in zip(stage.inputs[::2], (wanted, rows), strict=False):  # the table, and its factors if any
        needed = np.zeros(trace.array(name).shape, dtype=bool)
        np.logical_or.at(needed, ids, wanted_of)
        yield name, needed


def uses_of_positions(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    if place[0] < len(trace.array(stage.address)):  # else the text is shorter than the table
        yield place


def needs_of_positions(trace: Trace, stage: Stage, wanted: Array) -> Needed:
    table = np.zeros(trace.array(stage.inputs[0]).shape, dtype=bool)
    table[: len(wanted)] = wanted
    yield stage.inputs[0], table


def uses_of_concat(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    yield place[0], slot * trace.machine.config.d_head + place[1]


def needs_of_concat(trace: Trace, stage: Stage, wanted: Array) -> Needed:
    yield from zip(stage.inputs, np.split(wanted, len(stage.inputs), axis=1), strict=True)


def uses_of_choice(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    yield place[:1]


def uses_of_score(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    if slot == 1 or int(trace.array(stage.inputs[1])[place[0]]) == place[1]:
        yield place[:1]


def needs_of_score(trace: Trace, stage: Stage, wanted: Array) -> Needed:
    prob, choice = stage.inputs
    chosen = np.zeros(trace.array(prob).shape, dtype=bool)
    chosen[np.arange(len(wanted)), trace.array(choice)] = wanted
    yield prob, chosen
    yield choice, wanted


def uses_of_mask(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    if place[1] <= place[0]:
        yield place


def needs_of_mask(trace: Trace, stage: Stage, wanted: Array) -> Needed:
    yield stage.inputs[0], np.tril(wanted)


def uses_of(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    """Which numbers of a stage are made from number `place` of its input `slot`."""
    operation = OPERATIONS[stage.operation]
    if operation.uses is not None:
        yield from operation.uses(trace, stage, slot, place)
    elif operation.indices:
        wanted, made = letters(operation.indices, len(stage.axes))
        bound = dict(zip(wanted[slot], place, strict=True))
        yield tuple(bound.get(axis) for axis in made)


def needs_of(trace: Trace, stage: Stage, wanted: Array) -> Needed:
    """For the wanted numbers of a stage: which numbers of its inputs they need."""
    operation = OPERATIONS[stage.operation]
    if operation.needs is not None:
        yield from operation.needs(trace, stage, wanted)
    elif operation.indices:
        inputs, made = letters(operation.indices, wanted.ndim)
        for name, axes in zip(stage.inputs, inputs, strict=False):
            left = [axis for axis in made if axis in axes]
            gone = tuple(i for i, axis in enumerate(made) if axis not in axes)
            rows: Array = np.asarray(np.any(wanted, axis=gone))
            rows = rows.transpose([left.index(axis) for axis in axes if axis in left])
            spread = rows[tuple(slice(None) if axis in left else None for axis in axes)]
            yield name, np.broadcast_to(spread, trace.array(name).shape)


# --- the table --------------------------------------------------------------------------------------------------------

OPERATIONS = {
    "parameter": Operation(itself),
    "input": Operation(itself),
    "lookup": Operation(lookup, uses=uses_of_lookup, needs=needs_of_lookup, picks=True),
    "lookup_whole": Operation(lookup_whole, uses=uses_of_lookup, needs=needs_of_lookup, picks=True),
    "scale": Operation(scale, "ij->ij"),
    "sinusoidal_positions": Operation(lambda m: interleaved(m, m.place[1] // 2)),
    "sinusoidal_halves_positions": Operation(lambda m: in_halves(m, width(m))),
    "sinusoidal_marian_positions": Operation(lambda m: in_halves(m, Difference(width(m), Number(2.0)))),
    "slipped_positions": Operation(lambda m: interleaved(m, m.place[1])),
    "learned_positions": Operation(Making.number, "ij->ij", uses=uses_of_positions, needs=needs_of_positions),
    "none_positions": Operation(lambda m: Number(0.0)),
    "add": Operation(lambda m: Sum((m.number(0), m.number(1))), "ij,ij->ij"),
    "project": Operation(project, "ik,kj,j->ij"),
    "project_tied": Operation(project, "ik,jk,j->ij"),
    "rows_dot_rows": Operation(dot, "ik,jk->ij"),
    "divide": Operation(divide, "ij->ij"),
    "divide_by": Operation(divide_by, "ij->ij"),
    "mask": Operation(mask, "ij->ij", uses=uses_of_mask, needs=needs_of_mask),
    "zero_scores": Operation(zero_scores, "ij->ij", needs=needs_of_mask),
    "softmax": Operation(partial(share, shifted=True), "ik->ij", facts_of_softmax, by_row=True),
    "naive_softmax": Operation(partial(share, shifted=False), "ik->ij", facts_of_naive_softmax, by_row=True),
    "rows_dot_columns": Operation(dot, "ik,kj->ij"),
    "concat": Operation(concat, uses=uses_of_concat, needs=needs_of_concat),
    "mean": Operation(mean, "ij->i"),
    "variance": Operation(
        lambda m: Quotient(Squares(m.row(0), m.number(1)), Number(float(len(m.row(0))))), "ij,i->i", facts_of_variance
    ),
    "variance_by_squares": Operation(variance_by_squares, "ij,i->i", facts_of_variance),
    "normalise": Operation(normalise, "ij,i,i->ij", facts_of_normalise),
    "gain_and_bias": Operation(
        lambda m: Sum((Product(m.number(0), m.number(1)), m.number(2))), "ij,j,j->ij", facts_of_gain_and_bias
    ),
    "relu": Operation(lambda m: Apply("max0", m.number()), "ij->ij"),
    "gelu": Operation(gelu, "ij->ij"),
    "swish": Operation(swish, "ij->ij"),
    "copy": Operation(Making.number, "ij->ij"),
    "column_mean": Operation(mean, "ij->j"),
    "choice": Operation(itself, facts=facts_of_choice, uses=uses_of_choice),
    "log_of_choice": Operation(log_of_choice, uses=uses_of_score, needs=needs_of_score, picks=True),
    "factor_of_rows": Operation(factor, "ik->i"),
    "factor_of_columns": Operation(factor, "kj->j"),
    "whole_by_rows": Operation(whole_row, "ij,i->ij"),
    "whole_by_columns": Operation(whole_weight, "ij,j->ij"),
    "whole_table": Operation(whole_weight, "ij,i->ij"),
    "whole_product": Operation(dot, "ik,kj->ij"),
    "whole_product_tied": Operation(dot, "ik,jk->ij"),
    "restore": Operation(restore, "ij,i,j,j->ij"),
}
