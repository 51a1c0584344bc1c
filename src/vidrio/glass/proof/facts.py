"""What the formula of a number alone does not show: numbers on the way to it, each with what it is."""

import math
from collections.abc import Iterator

from vidrio.glass.proof.cells import Cells, Making, Place
from vidrio.glass.proof.expressions import Long, evaluate

Facts = Iterator[tuple[str, float]]


def no_facts(m: Making) -> Facts:
    yield from ()


def facts_of_softmax(m: Making) -> Facts:
    row = m.row()
    # A row with a NaN has no maximum in it.
    where = m.token_at(row.values.index(row.maximum)) if row.maximum in row.values else ""
    yield f"max x{where}", row.maximum
    yield from _terms(m, shifted=True)


def facts_of_naive_softmax(m: Making) -> Facts:
    yield from _terms(m, shifted=False)


def _terms(m: Making, *, shifted: bool) -> Facts:
    row = m.row()
    hidden = sum(value == -math.inf for value in row.values)
    if hidden:
        yield "hidden by the mask: terms that are exp(−∞) = 0", hidden
    exps = m.cells.exps(row.name, row.place, shifted=shifted)
    yield f"the sum of the {len(row)} terms", evaluate(exps, m.cells.precision)


def facts_of_variance(m: Making) -> Facts:
    yield from _spread(m.cells, m.stage.inputs[0], m.stage.inputs[1], m.place)


def facts_of_normalise(m: Making) -> Facts:
    yield from _norm(m.cells, m.stage.inputs, m.place[:1])


def facts_of_gain_and_bias(m: Making) -> Facts:
    yield from _norm(m.cells, m.cells.trace.stages[m.stage.inputs[0]].inputs, m.place[:1])
    yield "normed = (x − mean) / √(var + ε)", m.number(0).value
    yield "gain γ", m.number(1).value
    yield "bias β", m.number(2).value


def _norm(cells: Cells, inputs: tuple[str, ...], row: Place) -> Facts:
    x, mean, var = inputs
    yield "mean", cells.number(mean, row).value
    yield from _spread(cells, x, mean, row)
    variance, epsilon = cells.number(var, row).value, cells.trace.machine.config.norm_epsilon
    yield "var", variance
    yield "ε, inside the root", epsilon
    yield "√(var + ε)", math.sqrt(variance + epsilon) if variance + epsilon >= 0 else math.nan


def _spread(cells: Cells, x: str, mean: str, place: Place) -> Facts:
    row = cells.row(x, (*place, None))
    yield "Σ (x − mean)²", evaluate(Long("square", row, cells.number(mean, place)), cells.precision)
    yield "N, which divides it (not N − 1)", len(row)


def facts_of_choice(m: Making) -> Facts:
    token, row = int(m.cells.array(m.stage.address)[m.place]), m.cells.row(m.stage.inputs[0], (*m.place, None))
    yield "its probability", row.values[token]
    yield "its rank by probability, 1 being the likeliest", 1 + sum(p > row.values[token] for p in row.values)
