"""One table of operations: for every small step that makes a number from others, all that is to be said of it.

How the arithmetic of one number is written down, from the paper's formula and with nothing of the maths that it checks;
which numbers of its inputs it is made from; and what a receipt tells besides. To add a step: a line here, and stages
that name it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.proof.cells import Making, Place, letters
from vidrio.glass.proof.expressions import Expression, Long, Number, apply, exponential
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
    causal: bool = False  # what is right of the diagonal is made from nothing
    by_row: bool = False  # a whole row is worked out at once

    @property
    def picks(self) -> bool:
        """Whether its second input says which numbers of the first one enter: ids, choices."""
        return "p" in self.indices


# --- how one number is made -------------------------------------------------------------------------------------------


def itself(m: Making) -> Expression:
    """A trained number, a token's id, or the search's choice: not computed."""
    return m.cells.number(m.stage.address, m.place)


def scale(m: Making) -> Expression:
    config = m.cells.trace.machine.config
    if not config.scale_embeddings:
        return m.number()
    return Number(math.sqrt(config.d_model), symbol="√D", rounded=True) * m.number()


def wave(m: Making, pair: int, function: str, columns: Expression) -> Expression:
    """sin or cos of position / 10000^(2 pair / columns); §3.5."""
    scale = apply("^", Number(10000.0), Number(2.0 * pair) / columns)
    return apply("float64", apply(function, Number(float(m.place[0])) / scale))


def width(m: Making) -> Number:
    return Number(float(m.cells.trace.machine.config.d_model), symbol="D")


def interleaved(m: Making, pair: int) -> Expression:
    return wave(m, pair, "cos" if m.place[1] % 2 else "sin", width(m))


def in_halves(m: Making, columns: Expression) -> Expression:
    column, half = m.place[1], m.cells.trace.machine.config.d_model // 2
    return wave(m, column % half, "sin" if column < half else "cos", columns)


def dot(m: Making) -> Expression:
    return Long("product", m.row(0), m.row(1))


def project(m: Making) -> Expression:
    return dot(m) if len(m.inputs) == 2 else dot(m) + m.number(2)


def divide(m: Making) -> Expression:
    return m.number() / Number(math.sqrt(m.cells.trace.machine.config.d_head), symbol="√K", rounded=True)


def divide_by(m: Making) -> Expression:
    return m.number() / Number(float(m.cells.trace.machine.score_divisor), rounded=True)


def hidden(m: Making, by: Number) -> Expression:
    """Right of the diagonal another number stands in the place."""
    row, column = m.place
    return m.number() if column <= row else by


def share(m: Making, *, shifted: bool) -> Expression:
    """Softmax, with the row's maximum taken off first or not."""
    row = m.row()
    exps = m.cells.exps(row.name, row.place, shifted=shifted)
    shift = exps.other if isinstance(exps.other, Number) else None
    return exponential(row[m.place[-1]], shift) / exps


def divided_by_length(m: Making, sum_: Expression) -> Expression:
    return sum_ / Number(float(len(m.row())))


def mean(m: Making) -> Expression:
    return divided_by_length(m, Long("plain", m.row()))


def variance(m: Making) -> Expression:
    return divided_by_length(m, Long("square", m.row(), m.number(1)))


def variance_by_squares(m: Making) -> Expression:
    mean_of_squares = divided_by_length(m, Long("product", m.row(), m.row()))
    return apply("max0", mean_of_squares - m.number(1).squared())


def normalise(m: Making) -> Expression:
    epsilon = Number(m.cells.trace.machine.config.norm_epsilon, symbol="ε", rounded=True)
    return (m.number(0) - m.number(1)) / apply("sqrt", m.number(2) + epsilon)


def gelu(m: Making) -> Expression:
    x = m.number()
    erf = apply("erf", x / Number(math.sqrt(2.0), symbol="√2", rounded=True))
    return x * (Number(0.5) * (Number(1.0) + erf))


def swish(m: Making) -> Expression:
    """x / (1 + exp(−x)), written so that exp never overflows."""
    x = m.number()
    e = apply("exp", Number(0.0) - apply("abs", x))
    return x * ((Number(1.0) if x.value >= 0 else e) / (Number(1.0) + e))


def concat(m: Making) -> Expression:
    (row, column), d_head = m.place, m.cells.trace.machine.config.d_head
    return m.cells.number(m.stage.inputs[column // d_head], (row, column % d_head))


def factor(m: Making) -> Expression:
    """127 / max |x|; 1 where all are 0."""
    largest = max(m.row().numbers(), key=lambda number: abs(number.value))
    return Number(127.0) / apply("abs", largest) if largest.value else Number(1.0)


def whole_row(m: Making) -> Expression:
    """Rounded as the fast engine does, which adds 128 before it rounds, and takes it off again."""
    return apply("round", m.number(0) * m.number(1) + Number(128.0)) - Number(128.0)


def whole_weight(m: Making) -> Expression:
    return apply("round", m.number(0) * m.number(1))


def restore(m: Making) -> Expression:
    y = m.number(0) / m.number(1) / m.number(2)
    return y if len(m.inputs) == 3 else y + m.number(3)


# --- which numbers meet which -----------------------------------------------------------------------------------------


def uses_of_concat(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    yield place[0], slot * trace.machine.config.d_head + place[1]


def needs_of_concat(trace: Trace, stage: Stage, wanted: Array) -> Needed:
    yield from zip(stage.inputs, np.split(wanted, len(stage.inputs), axis=1), strict=True)


def uses_of_choice(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    yield place[:1]


def uses_of(trace: Trace, stage: Stage, slot: int, place: Place) -> Used:
    """Which numbers of a stage are made from number `place` of its input `slot`."""
    operation = OPERATIONS[stage.operation]
    if operation.uses is not None:
        yield from operation.uses(trace, stage, slot, place)
    elif operation.indices and not (operation.causal and place[1] > place[0]):
        inputs, made = letters(operation.indices, len(stage.axes))
        bound = dict(zip(inputs[slot], place, strict=True))
        ways = [bound]
        if "p" in bound:  # every row that picks this number
            rows = np.flatnonzero(trace.array(stage.inputs[1]) == bound["p"]).tolist()
            ways = [{**bound, "i": row} for row in rows if bound.get("i", row) == row]
        shape = trace.array(stage.address).shape  # may be shorter than its input: a table of positions
        for way in ways:
            index = tuple(way.get(axis) for axis in made)
            if all(i is None or i < length for i, length in zip(index, shape, strict=True)):
                yield index


def needs_of(trace: Trace, stage: Stage, wanted: Array) -> Needed:
    """For the wanted numbers of a stage: which numbers of its inputs they need."""
    operation = OPERATIONS[stage.operation]
    if operation.needs is not None:
        yield from operation.needs(trace, stage, wanted)
    elif operation.indices:
        inputs, made = letters(operation.indices, wanted.ndim)
        wanted = np.tril(wanted) if operation.causal else wanted
        for name, axes in zip(stage.inputs, inputs, strict=False):
            of_rows = axes.replace("p", "" if "i" in axes else "i")  # each row picks one number
            left = [axis for axis in made if axis in of_rows]
            gone = tuple(i for i, axis in enumerate(made) if axis not in of_rows)
            rows: Array = np.asarray(np.any(wanted, axis=gone))
            rows = rows.transpose([left.index(axis) for axis in of_rows if axis in left])
            spread = rows[tuple(slice(None) if axis in left else None for axis in of_rows)]
            needed = np.zeros(trace.array(name).shape, dtype=bool)
            if "p" in axes:
                picked = trace.array(stage.inputs[1])
                at: dict[str, Any] = {"p": picked, "i": np.arange(len(picked))}
                places: Any = tuple(at.get(axis, slice(None)) for axis in axes)
                np.logical_or.at(needed, places, spread)
            else:
                lengths = zip(axes, spread.shape, strict=True)
                needed[tuple(slice(length if axis in left else None) for axis, length in lengths)] = spread
            yield name, needed


# --- the table --------------------------------------------------------------------------------------------------------

OPERATIONS = {
    "parameter": Operation(itself),
    "input": Operation(itself),
    "lookup": Operation(Making.number, "pj,i->ij"),
    "lookup_whole": Operation(lambda m: m.number(0) / m.number(2), "pj,i,p->ij"),
    "scale": Operation(scale, "ij->ij"),
    "sinusoidal_positions": Operation(lambda m: interleaved(m, m.place[1] // 2)),
    "sinusoidal_halves_positions": Operation(lambda m: in_halves(m, width(m))),
    "sinusoidal_marian_positions": Operation(lambda m: in_halves(m, width(m) - Number(2.0))),
    "slipped_positions": Operation(lambda m: interleaved(m, m.place[1])),
    "learned_positions": Operation(Making.number, "ij->ij"),
    "none_positions": Operation(lambda m: Number(0.0)),
    "add": Operation(lambda m: m.number(0) + m.number(1), "ij,ij->ij"),
    "project": Operation(project, "ik,kj,j->ij"),
    "project_tied": Operation(project, "ik,jk,j->ij"),
    "rows_dot_rows": Operation(dot, "ik,jk->ij"),
    "divide": Operation(divide, "ij->ij"),
    "divide_by": Operation(divide_by, "ij->ij"),
    "mask": Operation(partial(hidden, by=Number(-math.inf, symbol="−∞")), "ij->ij", causal=True),
    "zero_scores": Operation(partial(hidden, by=Number(0.0)), "ij->ij", causal=True),
    "softmax": Operation(partial(share, shifted=True), "ik->ij", facts_of_softmax, by_row=True),
    "naive_softmax": Operation(partial(share, shifted=False), "ik->ij", facts_of_naive_softmax, by_row=True),
    "rows_dot_columns": Operation(dot, "ik,kj->ij"),
    "concat": Operation(concat, uses=uses_of_concat, needs=needs_of_concat),
    "mean": Operation(mean, "ij->i"),
    "variance": Operation(variance, "ij,i->i", facts_of_variance),
    "variance_by_squares": Operation(variance_by_squares, "ij,i->i", facts_of_variance),
    "normalise": Operation(normalise, "ij,i,i->ij", facts_of_normalise),
    "gain_and_bias": Operation(lambda m: m.number(0) * m.number(1) + m.number(2), "ij,j,j->ij", facts_of_gain_and_bias),
    "relu": Operation(lambda m: apply("max0", m.number()), "ij->ij"),
    "gelu": Operation(gelu, "ij->ij"),
    "swish": Operation(swish, "ij->ij"),
    "copy": Operation(Making.number, "ij->ij"),
    "column_mean": Operation(mean, "ij->j"),
    "choice": Operation(itself, facts=facts_of_choice, uses=uses_of_choice),
    "log_of_choice": Operation(lambda m: apply("log", m.number()), "ip,i->i"),
    "factor_of_rows": Operation(factor, "ik->i"),
    "factor_of_columns": Operation(factor, "kj->j"),
    "whole_by_rows": Operation(whole_row, "ij,i->ij"),
    "whole_by_columns": Operation(whole_weight, "ij,j->ij"),
    "whole_table": Operation(whole_weight, "ij,i->ij"),
    "whole_product": Operation(dot, "ik,kj->ij"),
    "whole_product_tied": Operation(dot, "ik,jk->ij"),
    "restore": Operation(restore, "ij,i,j,j->ij"),
}
