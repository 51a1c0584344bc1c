"""One table of operations: for every small step that makes a number from others, all that is to be said of it.

How the arithmetic of one number is written down; which numbers of its inputs it is made from; and what a receipt tells
besides. To add a step: a line here, and stages that name it.

This is a second, independent implementation, from the paper's formulas. It shares nothing with the maths that it
checks: no NumPy arithmetic, no matrix product, each number by itself.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.proof.cells import Cells, Making, Place, inputs_of, letters
from vidrio.glass.proof.expressions import Expression, Long, Number, Row, apply, evaluate, exponential

Facts = Iterator[tuple[str, float]]


def no_facts(m: Making, *inputs: Number | Row) -> Facts:
    yield from ()


@dataclass(frozen=True)
class Operation:
    """One small step."""

    express: Callable[..., Expression]  # how one number is made
    indices: str = ""  # which numbers meet which: cells.letters
    facts: Callable[..., Facts] = no_facts  # numbers on the way that the formula alone does not show
    causal: bool = False  # what is right of the diagonal is made from nothing
    by_row: bool = False  # a whole row is worked out at once
    chooses: bool = False  # a number that its second input chooses has a part of its own

    @property
    def picks(self) -> bool:
        """Whether its second input says which numbers of the first one enter: ids, choices."""
        return "p" in self.indices or self.chooses


def expression(cells: Cells, stage: Stage, place: Place) -> Expression:
    """How one number is made."""
    operation, m = OPERATIONS[stage.operation], Making(cells, stage, place)
    return operation.express(m, *inputs_of(m, operation.indices))


# --- how one number is made -------------------------------------------------------------------------------------------
# Each function is given the numbers, or the rows of numbers, that `indices` picks from the inputs.


def itself(m: Making) -> Expression:
    """A trained number, a token's id, or the search's choice: not computed."""
    return m.cells.number(m.stage.address, m.place)


def copy(m: Making, x: Number) -> Expression:
    return x


def scale(m: Making, x: Number) -> Expression:
    config = m.cells.trace.machine.config
    return Number(math.sqrt(config.d_model), symbol="√D", rounded=True) * x if config.scale_embeddings else x


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


def dot(m: Making, a: Row, b: Row) -> Expression:
    return Long("product", a, b)


def project(m: Making, x: Row, W: Row, b: Number | None = None) -> Expression:
    return dot(m, x, W) if b is None else dot(m, x, W) + b


def divide(m: Making, x: Number) -> Expression:
    return x / Number(math.sqrt(m.cells.trace.machine.config.d_head), symbol="√K", rounded=True)


def divide_by(m: Making, x: Number) -> Expression:
    return x / Number(float(m.cells.trace.machine.score_divisor), rounded=True)


def hidden(m: Making, x: Number, *, by: Number) -> Expression:
    """Right of the diagonal another number stands in the place."""
    row, column = m.place
    return x if column <= row else by


def share(m: Making, row: Row, *, shifted: bool) -> Expression:
    """Of a softmax: exp(x) / Σ exp(x)."""
    exps = m.cells.exps(row, shifted=shifted)
    shift = exps.other if isinstance(exps.other, Number) else None
    return exponential(row[m.place[-1]], shift) / exps


def divided_by_length(row: Row, sum_: Expression) -> Expression:
    return sum_ / Number(float(len(row)))


def mean(m: Making, row: Row) -> Expression:
    return divided_by_length(row, Long("plain", row))


def variance(m: Making, row: Row, mean: Number) -> Expression:
    return divided_by_length(row, Long("square", row, mean))


def normalise(m: Making, x: Number, mean: Number, variance: Number) -> Expression:
    epsilon = Number(m.cells.trace.machine.config.norm_epsilon, symbol="ε", rounded=True)
    return (x - mean) / apply("sqrt", variance + epsilon)


def gelu(m: Making, x: Number) -> Expression:
    erf = apply("erf", x / Number(math.sqrt(2.0), symbol="√2", rounded=True))
    return x * (Number(0.5) * (Number(1.0) + erf))


def swish(m: Making, x: Number) -> Expression:
    """x / (1 + exp(−x)), written so that exp never overflows."""
    e = apply("exp", Number(0.0) - apply("abs", x))
    return x * ((Number(1.0) if x.value >= 0 else e) / (Number(1.0) + e))


def concat(m: Making) -> Expression:
    (row, column), d_head = m.place, m.cells.trace.machine.config.d_head
    return m.cells.number(m.stage.inputs[column // d_head], (row, column % d_head))


def scale_of_rows(m: Making, row: Row) -> Expression:
    """max |x| / 127; 1 for a row of next to nothing."""
    largest = largest_of(row)
    return apply("abs", largest) / Number(127.0) if abs(largest.value) >= 2.0**-100 else Number(1.0)


def scale_of_weights(m: Making, row: Row) -> Expression:
    """max |W| / 63; 1 / 63 where all are 0."""
    largest = largest_of(row)
    return (apply("abs", largest) if largest.value else Number(1.0)) / Number(63.0)


def largest_of(row: Row) -> Number:
    return max(row.numbers(), key=lambda number: abs(number.value))


def whole_row(m: Making, x: Number, scale: Number) -> Expression:
    return apply("round", x * (Number(1.0) / scale))


def whole_weight(m: Making, x: Number, scale: Number) -> Expression:
    return apply("round", x / scale)


def restore(m: Making, product: Number, x_scale: Number, W_scale: Number, b: Number | None = None) -> Expression:
    y = product * (x_scale * W_scale)
    return y if b is None else y + b


def log_softmax_of_choice(m: Making, row: Row, token: Number) -> Expression:
    """log of exp(x) / Σ exp(x), without the quotient."""
    chosen, largest = row[int(token.value)], Number(row.maximum, symbol="max")
    return chosen - largest - apply("log", m.cells.exps(row, shifted=True))


# --- what a receipt tells besides -------------------------------------------------------------------------------------


def facts_of_softmax(m: Making, row: Row, *, shifted: bool) -> Facts:
    if shifted:  # a row with a NaN has no maximum in it
        where = m.token_at(row.values.index(row.maximum)) if row.maximum in row.values else ""
        yield f"max x{where}", row.maximum
    hidden = sum(value == -math.inf for value in row.values)
    if hidden:
        yield "hidden by the mask: terms that are exp(−∞) = 0", hidden
    exps = m.cells.exps(row, shifted=shifted)
    yield f"the sum of the {len(row)} terms", evaluate(exps, m.cells.precision)


def facts_of_variance(m: Making, row: Row, mean: Number) -> Facts:
    yield "Σ (x − mean)²", evaluate(Long("square", row, mean), m.cells.precision)
    yield "N, which divides it (not N − 1)", len(row)


def facts_of_normalise(m: Making, *inputs: Number) -> Facts:
    yield from facts_of_norm(m, m.stage.inputs)


def facts_of_gain_and_bias(m: Making, normed: Number, gain: Number, bias: Number) -> Facts:
    yield from facts_of_norm(m, m.cells.trace.stages[m.stage.inputs[0]].inputs)
    yield "normed = (x − mean) / √(var + ε)", normed.value
    yield "gain γ", gain.value
    yield "bias β", bias.value


def facts_of_norm(m: Making, inputs: tuple[str, ...]) -> Facts:
    """Of the row that is normalised: the addresses of x, mean and var."""
    (x, mean, var), row = inputs, m.place[:1]
    mean_of_row = m.cells.number(mean, row)
    yield "mean", mean_of_row.value
    yield from facts_of_variance(m, m.cells.row(x, (*row, None)), mean_of_row)
    variance, epsilon = m.cells.number(var, row).value, m.cells.trace.machine.config.norm_epsilon
    yield "var", variance
    yield "ε, inside the root", epsilon
    yield "√(var + ε)", math.sqrt(variance + epsilon) if variance + epsilon >= 0 else math.nan


def facts_of_choice(m: Making) -> Facts:
    token, row = int(m.cells.array(m.stage.address)[m.place]), m.cells.row(m.stage.inputs[0], (*m.place, None))
    yield "its probability", row.values[token]
    yield "its rank by probability, 1 being the likeliest", 1 + sum(p > row.values[token] for p in row.values)


# --- which numbers meet which -----------------------------------------------------------------------------------------


def uses_of(trace: Trace, stage: Stage, slot: int, place: Place) -> Iterator[tuple[int | None, ...]]:
    """Which numbers of a stage are made from number `place` of its input `slot`; None: every index of that axis."""
    operation = OPERATIONS[stage.operation]
    if stage.operation == "concat":
        yield place[0], slot * trace.machine.config.d_head + place[1]
    elif stage.operation == "choice":
        yield place[:1]
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


def needs_of(trace: Trace, stage: Stage, wanted: Array) -> Iterator[tuple[str, Array]]:
    """For the wanted numbers of a stage: which numbers of its inputs they need."""
    operation = OPERATIONS[stage.operation]
    if stage.operation == "concat":
        yield from zip(stage.inputs, np.split(wanted, len(stage.inputs), axis=1), strict=True)
    elif operation.indices:
        inputs, made = letters(operation.indices, wanted.ndim)
        wanted = np.tril(wanted) if operation.causal else wanted
        for name, axes in zip(stage.inputs, inputs, strict=False):
            shape = trace.array(name).shape
            free = {axis: np.ones(length, bool) for axis, length in zip(axes, shape, strict=True) if axis not in made}
            if "p" in axes:  # of each row that number which it picks
                free = {"ip": trace.array(stage.inputs[1])[:, None] == np.arange(shape[axes.index("p")])}
            kept = "".join(axis for axis in made if axis in axes or axis in "".join(free))
            rows = np.einsum(f"{made}->{kept}", wanted)  # of true and false: whether any is true
            found = np.einsum(f"{','.join([kept, *free])}->{axes}", rows, *free.values())
            needed = np.zeros(shape, dtype=bool)  # may be longer than what is made of it: a table of positions
            needed[tuple(map(slice, found.shape))] = found
            yield name, needed


# --- the table --------------------------------------------------------------------------------------------------------


def softmax(*, shifted: bool) -> Operation:
    """With the row's maximum taken off first or not."""
    facts = partial(facts_of_softmax, shifted=shifted)
    return Operation(partial(share, shifted=shifted), "ik->ij", facts, by_row=True)


OPERATIONS = {
    "parameter": Operation(itself),
    "input": Operation(itself),
    "lookup": Operation(lambda m, x, token: x, "pj,i->ij"),
    "lookup_whole": Operation(lambda m, whole, token, scale: whole * scale, "pj,i,p->ij"),
    "scale": Operation(scale, "ij->ij"),
    "sinusoidal_positions": Operation(lambda m: interleaved(m, m.place[1] // 2)),
    "sinusoidal_halves_positions": Operation(lambda m: in_halves(m, width(m))),
    "sinusoidal_marian_positions": Operation(lambda m: in_halves(m, width(m) - Number(2.0))),
    "slipped_positions": Operation(lambda m: interleaved(m, m.place[1])),
    "learned_positions": Operation(copy, "ij->ij"),
    "none_positions": Operation(lambda m: Number(0.0)),
    "add": Operation(lambda m, a, b: a + b, "ij,ij->ij"),
    "project": Operation(project, "ik,kj,j->ij"),
    "project_tied": Operation(project, "ik,jk,j->ij"),
    "rows_dot_rows": Operation(dot, "ik,jk->ij"),
    "divide": Operation(divide, "ij->ij"),
    "divide_by": Operation(divide_by, "ij->ij"),
    "mask": Operation(partial(hidden, by=Number(-math.inf, symbol="−∞")), "ij->ij", causal=True),
    "zero_scores": Operation(partial(hidden, by=Number(0.0)), "ij->ij", causal=True),
    "softmax": softmax(shifted=True),
    "naive_softmax": softmax(shifted=False),
    "rows_dot_columns": Operation(dot, "ik,kj->ij"),
    "concat": Operation(concat),
    "mean": Operation(mean, "ij->i"),
    "variance": Operation(variance, "ij,i->i", facts_of_variance),
    "normalise": Operation(normalise, "ij,i,i->ij", facts_of_normalise),
    "gain_and_bias": Operation(lambda m, x, gain, bias: x * gain + bias, "ij,j,j->ij", facts_of_gain_and_bias),
    "relu": Operation(lambda m, x: apply("max0", x), "ij->ij"),
    "gelu": Operation(gelu, "ij->ij"),
    "swish": Operation(swish, "ij->ij"),
    "copy": Operation(copy, "ij->ij"),
    "column_mean": Operation(mean, "ij->j"),
    "choice": Operation(itself, facts=facts_of_choice),
    "log_of_choice": Operation(lambda m, prob, token: apply("log", prob), "ip,i->i"),
    "log_softmax_of_choice": Operation(log_softmax_of_choice, "ik,i->i", chooses=True),
    "scale_of_rows": Operation(scale_of_rows, "ik->i"),
    "scale_of_weight_rows": Operation(scale_of_weights, "ik->i"),
    "scale_of_weight_columns": Operation(scale_of_weights, "kj->j"),
    "whole_by_rows": Operation(whole_row, "ij,i->ij"),
    "whole_by_columns": Operation(whole_weight, "ij,j->ij"),
    "whole_table": Operation(whole_weight, "ij,i->ij"),
    "whole_product": Operation(dot, "ik,kj->ij"),
    "whole_product_tied": Operation(dot, "ik,jk->ij"),
    "restore": Operation(restore, "ij,i,j,j->ij"),
}
