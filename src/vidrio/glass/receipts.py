"""Receipts show how a number is computed: its formula with values filled in, and an independent recomputation.

at = locate(trace, parse_address("enc.0.self.scores.h0[0,0]"))
bill = receipt(trace, at)
bill.working()          # ["8*4 + 3*8 + 3*4", "32 + 24 + 12", "68"]
bill.compared.agrees
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vidrio.glass import expressions, notations
from vidrio.glass.cells import Making, Place, inputs_of, letters
from vidrio.glass.expressions import (
    PRECISIONS,
    At,
    Expression,
    Number,
    Precision,
    bounded,
    evaluate,
    expanded,
    leaves,
    mapped,
)
from vidrio.glass.maths import Array
from vidrio.glass.trace import Address, Trace
from vidrio.glass.words import Stage, without_head

ANY = ":"  # selects all indices of an axis in an address


def locate(trace: Trace, address: Address) -> At:
    """Find the number at an address. Raises AddressError, with the closest matches, if the address is invalid."""
    return At(address.name, trace.position(address))


def distance(a: Array | float, b: Array | float) -> Array:
    """Return |a − b|, which is 0 for equal infinities and for two NaNs, and ∞ if only one number is NaN."""
    with np.errstate(invalid="ignore"):
        difference = np.where(np.equal(a, b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(np.subtract(a, b)))
    return np.where(np.isnan(difference), np.inf, difference)


@dataclass(frozen=True)
class Compared:
    """A number computed by the model, and its recomputation."""

    model: float
    recomputed: float
    tolerance: float  # the largest difference that rounding can explain

    @property
    def difference(self) -> float:
        return float(distance(self.model, self.recomputed))

    @property
    def agrees(self) -> bool:
        return self.difference <= self.tolerance


def made_from(trace: Trace, at: At) -> tuple[Expression, dict[At, None]]:
    """Return the expression of a number and the addresses of its inputs, including ids that select rows."""
    stage = trace.stages[at.name]
    cell, m = trace.operation(stage).cell, Making(trace, stage, at.place)
    inputs = inputs_of(m, cell.indices)
    node = cell.make(m, *inputs)
    ids = [one for one in inputs if isinstance(one, Number) and isinstance(one.value, int)]
    found = dict.fromkeys(number.at for number in (*leaves(expanded(node)), *ids) if number.at is not None)
    found.pop(at, None)  # a stored value, such as a parameter, is not an input of itself
    return node, found


@dataclass(frozen=True)
class Receipt:
    """The derivation of a number."""

    at: At
    stage: Stage
    tokens: tuple[str, ...]  # the token at each index; "" if the axis has no tokens
    value: float  # may have been replaced by a what-if
    compared: Compared
    precision: Precision
    expression: Expression
    inputs: tuple[tuple[At, float], ...]  # addresses and values, without duplicates
    used_by: tuple[str, ...]  # addresses

    @property
    def edited(self) -> bool:
        """Whether a what-if replaced the computed number."""
        return bool(distance(self.value, self.compared.model) > 0)

    @cached_property
    def short_names(self) -> dict[str, str]:
        """The short names of the quantities in the formula: the last part of each address, or several if ambiguous."""
        names = list(dict.fromkeys(n.at.name for n in leaves(expanded(self.expression)) if n.at is not None))
        parts = {name: without_head(name)[0].split(".") for name in names}
        for count in range(1, 8):
            short = {name: ".".join(parts[name][-count:]) for name in names}
            if len(set(short.values())) == len(names):
                return short
        return {name: name for name in names}

    @cached_property
    def formula(self) -> str:
        """The formula with the indices of this number, e.g. `Σ_k Q[0,k]*K[0,k]`."""
        return notations.formula(self.expression, lambda name: self.short_names[name])

    def working(self, number: Callable[[float], str] = repr) -> list[str]:
        """Return the formula with the values filled in, followed by each step of its evaluation, as on paper."""
        notation, node = notations.plain(number), expanded(self.expression)
        lines = [notations.write(node, notation)]
        while not isinstance(node, Number):
            node = expressions.step(node, self.precision)
            line = notations.write(node, notation)
            if line != lines[-1]:
                lines.append(line)
        return lines

    def copy(self, kind: str) -> str:
        """Return the expression at full precision, for `python` or `spreadsheet`."""
        return notations.copy_of(self.expression, kind)

    def from_printed(self, number: Callable[[float], str]) -> str | None:
        """Recompute the number from its inputs as printed. Returns the result, formatted by `number`, or None if it
        equals the printed number."""
        if isinstance(self.expression, Number):
            return None

        def printed(n: Number) -> Number:
            return n if n.at is None and not n.symbol else Number(float(number(n.value)))

        again = number(evaluate(mapped(expanded(self.expression), printed), self.precision))
        return again if again != number(self.compared.recomputed) else None


def receipt(trace: Trace, at: At) -> Receipt:
    """Return the receipt of a number."""
    (node, sources), precision = made_from(trace, at), PRECISIONS[trace.machine.dtype.name]
    model = float(trace.computed.get(at.name, trace.array(at.name))[at.place])  # before any what-if
    recomputed, tolerance = bounded(node, precision)
    return Receipt(
        at=at,
        stage=trace.stages[at.name],
        tokens=tokens_of(trace, at),
        value=trace.array(at.name)[at.place].item(),
        compared=Compared(model, recomputed, 0.0 if model == recomputed else tolerance),
        precision=precision,
        expression=node,
        inputs=tuple((one, trace.array(one.name)[one.place].item()) for one in sources),
        used_by=tuple(used_by(trace, at)),
    )


def tokens_of(trace: Trace, at: At) -> tuple[str, ...]:
    """Return the token at each index of a number, or "" if the axis has no tokens."""
    axes = [trace.axis_tokens(at.name, axis) for axis in trace.stages[at.name].axes]
    return tuple(tokens[i] if i < len(tokens) else "" for tokens, i in zip(axes, at.place, strict=True))


# --- where a number is used -------------------------------------------------------------------------------------------


def used_by(trace: Trace, at: At) -> Iterator[str]:
    """Yield the addresses of all numbers that are computed from a number, with `:` for all indices of an axis."""
    for stage in trace.stages.values():
        for slot, name in enumerate(stage.inputs):
            if name == at.name and stage.address in trace:
                for index in uses_of(trace, stage, slot, at.place):
                    yield str(Address(stage.address, tuple(ANY if i is None else str(i) for i in index)))


def uses_of(trace: Trace, stage: Stage, slot: int, place: Place) -> Iterator[tuple[int | None, ...]]:
    """Yield the positions in a stage that depend on position `place` of its input number `slot`. None represents
    all indices of an axis."""
    cell = trace.operation(stage).cell
    if not cell.indices or (cell.causal and place[1] > place[0]):
        return
    inputs, made = letters(cell.indices, len(stage.axes))
    at: dict[str, int | None] = dict(zip(inputs[min(slot, len(inputs) - 1)], place, strict=True))
    ways = [at]
    if "p" in at:  # every row that selects this number
        rows = np.flatnonzero(trace.array(stage.inputs[1]) == at["p"]).tolist()
        ways = [{**at, "i": row} for row in rows if at.get("i", row) == row]
    if "h" in at:
        ways = [{**at, "i": place[0] + 1}]
    if "c" in at:
        ways = [{**at, "j": slot * trace.machine.config.d_head + place[1]}]
    shape = trace.array(stage.address).shape  # may be shorter than its input, e.g. a position table
    for way in ways:
        index = tuple(way.get(axis) for axis in made)
        if all(i is None or i < length for i, length in zip(index, shape, strict=True)):
            yield index
