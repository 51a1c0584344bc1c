"""Formulas that compute the numbers of each quantity one by one. Receipts and checks recompute numbers with them.

This is a second implementation of the paper's maths, which shares no code with the one that it checks. Each cell's
function takes the numbers and rows that `indices` selects, and returns an expression (expressions.py). checking.py
calls the same functions with arrays to recompute an entire quantity at once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from vidrio.glass.expressions import PRECISIONS, At, Expression, Number, Precision, Row, apply, where
from vidrio.glass.words import Stage

Place = tuple[int, ...]


@dataclass(frozen=True)
class Making:
    """The number to express as a formula or, if `place` contains arrays of indices, all numbers of a quantity."""

    trace: Any  # a Trace, which cannot be imported here because trace.py depends on this module
    stage: Stage
    place: Any

    @property
    def config(self) -> Any:
        return self.trace.machine.config

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.trace.machine.dtype.name]

    def read(self, name: str, pattern: tuple[Any, ...]) -> Number | Row:
        """Return the number at a position of an input, or the row along the axis whose index is None."""
        found = self.trace.array(name)[tuple(slice(None) if i is None else i for i in pattern)]
        if not any(i is None for i in pattern):
            return Number(found if np.ndim(found) else found.item(), At(name, pattern))
        if self.place and np.ndim(self.place[0]):  # move the row's axis to the end, after the quantity's axes
            found = np.moveaxis(found, 0, -1) if pattern[0] is None else found
            found = found.reshape((1,) * (len(self.place) + 1 - found.ndim) + found.shape)
        return Row(name, pattern, found)


@lru_cache(maxsize=256)
def letters(indices: str, rank: int) -> tuple[tuple[str, ...], str]:
    """Split `indices` into the letters of each input and of the result. The letter i is omitted for a single row.

    For example, with `ik,kj,j->ij`, number (i, j) is computed from row i of the first input, column j of the second and
    number j of the third. A letter that occurs only on the left selects its entire axis, with three exceptions: p is
    the value of the second input (a token id or the chosen token), h is the previous row, and c is the position of
    column j within its head.
    """
    inputs, made = indices.split("->")
    if len(made) > rank:
        inputs, made = inputs.replace("i", ""), made.replace("i", "")
    return tuple(inputs.split(",")), made


def inputs_of(m: Making, indices: str) -> list[Any]:
    """Return the numbers and rows that a number is computed from."""
    if not indices:
        return []
    wanted, made = letters(indices, len(m.place))
    at = dict(zip(made, m.place, strict=True))
    if "p" in indices:
        ids = m.trace.array(m.stage.inputs[1])[at["i"]]
        at["p"] = ids if np.ndim(ids) else int(ids)
    if "h" in indices:
        at["h"] = at["i"] - 1
    if "c" in indices:
        at["c"], wanted = at["j"] % m.config.d_head, wanted * len(m.stage.inputs)
    found: list[Any] = []
    for name, axes in zip(m.stage.inputs, wanted, strict=False):  # the bias of a projection may be missing
        read = m.read(name, tuple([at.get(axis) for axis in axes]))
        found.append(where(at["h"] >= 0, read, Number(0.0)) if "h" in axes else read)  # zero before the first row
    return found


# --- formulas ---------------------------------------------------------------------------------------------------------

ZERO, ONE = Number(0.0), Number(1.0)


def root(of: float, symbol: str) -> Number:
    return Number(math.sqrt(of), symbol=symbol, rounded=True)


def epsilon(m: Making) -> Number:
    return Number(m.config.norm_epsilon, symbol="ε", rounded=True)


def wave(m: Making, pair: Any, sine: Any, less: float = 0.0) -> Expression:
    """Return sin or cos of position / 10000^(2 pair / (D − less)). §3.5."""
    width = Number(float(m.config.d_model), symbol="D")
    exponent = Number(2.0 * pair) / (width - Number(less) if less else width)
    angle = Number(1.0 * m.place[0]) / apply("^", Number(10000.0), exponent)
    return apply("float64", where(sine, apply("sin", angle), apply("cos", angle)))


def in_halves(m: Making, less: float = 0.0) -> Expression:
    column, half = m.place[1], m.config.d_model // 2
    return wave(m, column % half, column < half, less)


def concat(m: Making, *heads: Number) -> Expression:
    made: Expression = ZERO
    for h, head in enumerate(heads):
        made = where(m.place[1] // m.config.d_head == h, head, made)
    return made


def dot(m: Making, a: Row, b: Row) -> Expression:
    return apply("Σ", a * b)


def project(m: Making, x: Row, W: Row, *b: Number) -> Expression:
    return plus_bias(dot(m, x, W), *b)


def plus_bias(y: Expression, *b: Number) -> Expression:
    return y + b[0] if b else y


def below_diagonal(m: Making, x: Number, otherwise: Number) -> Expression:
    row, column = m.place
    return where(column <= row, x, otherwise)


def softmax(m: Making, row: Row) -> Expression:
    """Compute exp(x − max) / Σ exp(x − max)."""
    largest = row.maximum()
    return apply("exp", row.pick(m.place[-1]) - largest) / apply("Σ", apply("exp", row - largest))


def mean(m: Making, row: Row) -> Expression:
    return apply("Σ", row) / row.length()


def variance(m: Making, row: Row, mean: Number) -> Expression:
    return apply("Σ", apply("squared", row - mean)) / row.length()


def normalise(m: Making, x: Number, mean: Number, variance: Number) -> Expression:
    return (x - mean) / apply("sqrt", variance + epsilon(m))


def gelu(m: Making, x: Number) -> Expression:
    return x * (Number(0.5) * (ONE + apply("erf", x / root(2.0, "√2"))))


def sigmoid(m: Making, x: Number) -> Expression:
    """Compute 1 / (1 + exp(−x)) in a form that never overflows."""
    e = apply("exp", ZERO - apply("abs", x))
    return where(x.value >= 0, ONE, e) / (ONE + e)


def log_softmax_of_choice(m: Making, row: Row, token: Number) -> Expression:
    """Compute log(exp(x) / Σ exp(x)) for the chosen token, without a division."""
    largest = row.maximum()
    return row.pick(token.value) - largest - apply("log", apply("Σ", apply("exp", row - largest)))


def scale_of_rows(m: Making, row: Row) -> Expression:
    """Compute max |x| / 127, or 1 for a row that is nearly zero."""
    largest = row.pick(np.abs(row.values).argmax(-1))
    return where(abs(largest.value) < 2.0**-100, ONE, apply("abs", largest) / Number(127.0))


def scale_of_weights(m: Making, row: Row) -> Expression:
    """Compute max |W| / 63, or 1 / 63 if all weights are 0."""
    largest = row.pick(np.abs(row.values).argmax(-1))
    return where(abs(largest.value) > 0, apply("abs", largest), ONE) / Number(63.0)


def restore(m: Making, product: Number, x_scale: Number, W_scale: Number, *b: Number) -> Expression:
    return plus_bias(product * (x_scale * W_scale), *b)


class Cell(NamedTuple):
    """The formula of a single number, and the index letters that select its inputs."""

    indices: str = ""  # index letters (see `letters`)
    make: Callable[..., Expression] = lambda m, *_: m.read(m.stage.address, m.place)  # by default, the stored value
    causal: bool = False  # whether numbers above the diagonal have no inputs


COPY = Cell("ij->ij", lambda m, x: x)
CELLS = {
    "parameter": Cell(),
    "input": Cell(),
    "choice": Cell("ik->i"),
    "copy": COPY,
    "left_out": COPY,
    "add": Cell("ij,ij->ij", lambda m, a, b: a + b),
    # embeddings and positions
    "lookup": Cell("pj,i->ij", lambda m, x, token: x),
    "lookup_or_zero": Cell("pj,i->ij", lambda m, x, token: where(token.value >= 0, x, ZERO)),
    "scale": Cell("ij->ij", lambda m, x: root(m.config.d_model, "√D") * x),
    "unscaled": COPY,
    "sinusoidal_positions": Cell(make=lambda m: wave(m, m.place[1] // 2, m.place[1] % 2 == 0)),
    "sinusoidal_halves_positions": Cell(make=in_halves),
    "sinusoidal_marian_positions": Cell(make=lambda m: in_halves(m, less=2.0)),
    "learned_positions": COPY,
    "none_positions": Cell(make=lambda m: ZERO),
    # attention
    "project": Cell("ik,kj,j->ij", project),
    "rows_dot_rows": Cell("ik,jk->ij", dot),
    "divide": Cell("ij->ij", lambda m, x: x / root(m.config.d_head, "√d_k")),
    "mask": Cell("ij->ij", lambda m, x: below_diagonal(m, x, Number(-math.inf, symbol="−∞")), causal=True),
    "softmax": Cell("ik->ij", softmax),
    "rows_dot_columns": Cell("ik,kj->ij", dot),
    "concat": Cell("ic->ij", concat),
    # the recurrent cell
    "sigmoid": Cell("ij->ij", sigmoid),
    "recurrence": Cell("ij,ij,hj->ij", lambda m, forget, new, before: forget * before + (ONE - forget) * new),
    "relu_of_cell": Cell("ij->ij", lambda m, x: apply("max0", x)),
    # feed-forward and layer norm
    "relu": Cell("ij->ij", lambda m, x: apply("max0", x)),
    "gelu": Cell("ij->ij", gelu),
    "swish": Cell("ij->ij", lambda m, x: x * sigmoid(m, x)),
    "mean": Cell("ij->i", mean),
    "variance": Cell("ij,i->i", variance),
    "normalise": Cell("ij,i,i->ij", normalise),
    "gain_and_bias": Cell("ij,j,j->ij", lambda m, x, gain, bias: x * gain + bias),
    # output
    "project_tied": Cell("ik,jk,j->ij", project),
    "column_mean": Cell("ij->j", mean),
    "log_of_choice": Cell("ip,i->i", lambda m, prob, token: apply("log", prob)),
    "log_softmax_of_choice": Cell("ik,i->i", log_softmax_of_choice),
    # int8 products
    "lookup_whole": Cell("pj,i,p->ij", lambda m, x, token, scale: x * scale),
    "lookup_whole_or_zero": Cell("pj,i,p->ij", lambda m, x, token, scale: where(token.value >= 0, x * scale, ZERO)),
    "scale_of_rows": Cell("ik->i", scale_of_rows),
    "scale_of_weight_rows": Cell("ik->i", scale_of_weights),
    "scale_of_weight_columns": Cell("kj->j", scale_of_weights),
    "whole_by_rows": Cell("ij,i->ij", lambda m, x, scale: apply("round", x * (ONE / scale))),
    "whole_by_columns": Cell("ij,j->ij", lambda m, x, scale: apply("round", x / scale)),
    "whole_table": Cell("ij,i->ij", lambda m, x, scale: apply("round", x / scale)),
    "whole_product": Cell("ik,kj->ij", dot),
    "whole_product_tied": Cell("ik,jk->ij", dot),
    "restore": Cell("ij,i,j,j->ij", restore),
}
