"""How one number of a quantity is made, written down from the paper's formulas: for receipts, and to check by.

A second, independent implementation: it shares nothing with the maths that it checks. Each function writes an
expression (expressions.py) of the numbers that one number is made from; checking.py puts whole quantities in their
place.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from vidrio.glass.expressions import (
    PRECISIONS,
    Expression,
    Long,
    Number,
    Precision,
    Row,
    apply,
    exponential,
    where,
)

Place = tuple[int, ...]
Pattern = tuple[int | None, ...]  # a place with an axis left free


@dataclass(frozen=True)
class Stage:
    """One quantity: a number, a vector or a matrix that has an address."""

    address: str  # enc.0.self.scores.h1
    axes: str  # SS: one letter an axis, as in config.py; empty for a single number
    operation: str  # how it is made from its inputs: operations.py
    inputs: tuple[str, ...]  # their addresses, in the formula's order
    formula: str  # plain text
    latex: str
    place: str  # where the paper says so
    says: str  # what it is, in a few words
    # input, parameter, value, aggregate or choice; constant: made from parameters alone, before there is a text
    kind: str = "value"
    code: str = ""  # the line of NumPy that makes it

    @property
    def of_the_model(self) -> bool:
        """Whether it is the same for every text."""
        return self.kind in ("parameter", "constant")


@lru_cache(maxsize=256)
def letters(indices: str, rank: int) -> tuple[tuple[str, ...], str]:
    """The index letters of the inputs and of the number itself; without the rows where there is only one row.

    `ik,kj,j->ij`: number (i, j) is made from row i of the first input, column j of the second, number j of the third. A
    letter on the left alone runs over its whole axis, but p is what the second input holds (a token's id, the token
    chosen) and h is the row before i.
    """
    inputs, made = indices.split("->")
    if len(made) > rank:
        inputs, made = inputs.replace("i", ""), made.replace("i", "")
    return tuple(inputs.split(",")), made


@dataclass(frozen=True)
class Making:
    """One number to be written down, or all of a quantity (checking.py): where it stands, where to read its inputs."""

    trace: Any  # a Trace: trace.py, which needs this file
    stage: Stage
    place: Any  # a place; for all numbers at once, an array of places for each axis

    @property
    def config(self) -> Any:
        return self.trace.machine.config

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.trace.machine.dtype.name]

    def number(self, name: str, place: Place) -> Number:
        return Number(self.trace.array(name)[place].item(), (name, place))

    def row(self, name: str, pattern: Pattern) -> Row:
        values = self.trace.array(name)[tuple(slice(None) if p is None else p for p in pattern)]
        return Row(name, pattern, values.tolist())


def exps(row: Row, *, shifted: bool) -> Long:
    """The sum of the exponentials of a row; `shifted`: with its maximum taken off first."""
    return Long("exp", row, Number(row.maximum, symbol="max") if shifted else None)


def inputs_of(m: Making, indices: str) -> list[Number | Row]:
    """The numbers, or rows of numbers, that one number is made from."""
    if not indices:
        return []
    wanted, made = letters(indices, len(m.place))
    at: dict[str, int] = dict(zip(made, m.place, strict=True))
    if "p" in indices:
        at["p"] = int(m.trace.array(m.stage.inputs[1])[at["i"]])
    if "h" in indices:
        at["h"] = at["i"] - 1
    found: list[Number | Row] = []
    for name, axes in zip(m.stage.inputs, wanted, strict=False):  # a projection's bias may be missing
        pattern = tuple([at.get(axis) for axis in axes])
        if at.get("h") == -1 and "h" in axes:
            found.append(Number(0.0))
            continue
        found.append(m.row(name, pattern) if None in pattern else m.number(name, pattern))  # type: ignore[arg-type]
    return found


# --- how one number is made -------------------------------------------------------------------------------------------
# Each function is given the numbers, or the rows of numbers, that `indices` picks from the inputs.


def itself(m: Making) -> Expression:
    """A trained number, a token's id, or the search's choice: not computed."""
    return m.number(m.stage.address, m.place)


def copy(m: Making, x: Number) -> Expression:
    return x


def scale(m: Making, x: Number) -> Expression:
    return Number(math.sqrt(m.config.d_model), symbol="√D", rounded=True) * x


def wave(m: Making, pair: Any, sine: Any, columns: Expression) -> Expression:
    """sin or cos of position / 10000^(2 pair / columns); §3.5."""
    scale = apply("^", Number(10000.0), Number(2.0 * pair) / columns)
    angle = Number(1.0 * m.place[0]) / scale
    return apply("float64", where(sine, apply("sin", angle), apply("cos", angle)))


def width(m: Making) -> Number:
    return Number(float(m.config.d_model), symbol="D")


def interleaved(m: Making, pair: Any) -> Expression:
    return wave(m, pair, m.place[1] % 2 == 0, width(m))


def in_halves(m: Making, columns: Expression) -> Expression:
    column, half = m.place[1], m.config.d_model // 2
    return wave(m, column % half, column < half, columns)


def dot(m: Making, a: Row, b: Row) -> Expression:
    return Long("product", a, b)


def project(m: Making, x: Row, W: Row, b: Number | None = None) -> Expression:
    return dot(m, x, W) if b is None else dot(m, x, W) + b


def divide(m: Making, x: Number) -> Expression:
    return x / Number(math.sqrt(m.config.d_head), symbol="√d_k", rounded=True)


def hidden(m: Making, x: Number, *, by: Number) -> Expression:
    """Right of the diagonal another number stands in the place."""
    row, column = m.place
    return where(column <= row, x, by)


def share(m: Making, row: Row, *, shifted: bool) -> Expression:
    """Of a softmax: exp(x) / Σ exp(x)."""
    total = exps(row, shifted=shifted)
    shift = total.other if isinstance(total.other, Number) else None
    return exponential(row.pick(m.place[-1]), shift) / total


def divided_by_length(row: Row, sum_: Expression) -> Expression:
    return sum_ / Number(float(len(row)))


def mean(m: Making, row: Row) -> Expression:
    return divided_by_length(row, Long("plain", row))


def variance(m: Making, row: Row, mean: Number) -> Expression:
    return divided_by_length(row, Long("square", row, mean))


def normalise(m: Making, x: Number, mean: Number, variance: Number) -> Expression:
    epsilon = Number(m.config.norm_epsilon, symbol="ε", rounded=True)
    return (x - mean) / apply("sqrt", variance + epsilon)


def normalise_beside(m: Making, x: Number, mean: Number, variance: Number) -> Expression:
    epsilon = Number(m.config.norm_epsilon, symbol="ε", rounded=True)
    return (x - mean) / (apply("sqrt", variance) + epsilon)


def gelu(m: Making, x: Number) -> Expression:
    erf = apply("erf", x / Number(math.sqrt(2.0), symbol="√2", rounded=True))
    return x * (Number(0.5) * (Number(1.0) + erf))


def sigmoid(m: Making, x: Number) -> Expression:
    """1 / (1 + exp(−x)), written so that exp never overflows."""
    e = apply("exp", Number(0.0) - apply("abs", x))
    return where(x.value >= 0, Number(1.0), e) / (Number(1.0) + e)


def swish(m: Making, x: Number) -> Expression:
    return x * sigmoid(m, x)


def recurrence(m: Making, forget: Number, candidate: Number, before: Number) -> Expression:
    return forget * before + (Number(1.0) - forget) * candidate


def row_or_zero(m: Making, x: Number, token: Number) -> Expression:
    return where(token.value >= 0, x, Number(0.0))


def concat(m: Making) -> Expression:
    (row, column), d_head = m.place, m.config.d_head
    return m.number(m.stage.inputs[column // d_head], (row, column % d_head))


def scale_of_rows(m: Making, row: Row) -> Expression:
    """max |x| / 127; 1 for a row of next to nothing."""
    largest = largest_of(row)
    return where(abs(largest.value) >= 2.0**-100, apply("abs", largest) / Number(127.0), Number(1.0))


def scale_of_weights(m: Making, row: Row) -> Expression:
    """max |W| / 63; 1 / 63 where all are 0."""
    largest = largest_of(row)
    return where(largest.value != 0, apply("abs", largest), Number(1.0)) / Number(63.0)


def largest_of(row: Row) -> Number:
    return row.pick(np.abs(row.values).argmax(-1))


def whole_row(m: Making, x: Number, scale: Number) -> Expression:
    return apply("round", x * (Number(1.0) / scale))


def whole_weight(m: Making, x: Number, scale: Number) -> Expression:
    return apply("round", x / scale)


def restore(m: Making, product: Number, x_scale: Number, W_scale: Number, b: Number | None = None) -> Expression:
    y = product * (x_scale * W_scale)
    return y if b is None else y + b


def log_softmax_of_choice(m: Making, row: Row, token: Number) -> Expression:
    """log of exp(x) / Σ exp(x), without the quotient."""
    chosen, largest = row.pick(token.value), Number(row.maximum, symbol="max")
    return chosen - largest - apply("log", exps(row, shifted=True))
