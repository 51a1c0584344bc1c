"""The receipt of one number: its formula, the numbers put in, the same worked out again, and how far apart they are.

at = locate(trace, parse_address("enc.0.self.scores.h0[0,0]"))
bill = receipt(trace, at)
bill.working()          # ["8*4 + 3*8 + 3*4", "32 + 24 + 12", "68"]
bill.compared.agrees
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vidrio.glass import expressions, notations
from vidrio.glass.cells import Making, Place, inputs_of, letters
from vidrio.glass.expressions import (
    PRECISIONS,
    Expression,
    Number,
    Precision,
    bounded,
    evaluate,
    expanded,
    leaves,
    mapped,
)
from vidrio.glass.trace import Address, Trace
from vidrio.glass.words import Stage, without_head

ANY = ":"  # in an address: every index of that axis


@dataclass(frozen=True)
class At:
    """One number: its quantity, and its place."""

    name: str
    place: Place

    def __str__(self) -> str:
        return str(Address(self.name, tuple(map(str, self.place))))


def locate(trace: Trace, address: Address) -> At:
    """Which number an address means; AddressError with the nearest valid ones if there is none."""
    return At(address.name, trace.position(address))


def same(a: float, b: float) -> bool:
    """NaN is the same as NaN here."""
    return a == b or (math.isnan(a) and math.isnan(b))


@dataclass(frozen=True)
class Compared:
    """What the model has, what comes out again, and how far apart they may be."""

    model: float
    recomputed: float
    tolerance: float  # the most that rounding can explain

    @property
    def difference(self) -> float:
        """0 where both are NaN, or the same infinity."""
        if same(self.model, self.recomputed):
            return 0.0
        difference = abs(self.model - self.recomputed)
        return math.inf if math.isnan(difference) else difference

    @property
    def agrees(self) -> bool:
        return self.difference == 0.0 or self.difference <= self.tolerance


def expression(trace: Trace, stage: Stage, place: Place) -> Expression:
    """How one number is made."""
    cell, m = trace.operation(stage).cell, Making(trace, stage, place)
    return cell.make(m, *inputs_of(m, cell.indices))


def compared(trace: Trace, stage: Stage, place: Place, node: Expression | None = None) -> Compared:
    """Model and recomputation of one number, as it was computed: before a what-if put another in its place."""
    model = float(trace.computed.get(stage.address, trace.array(stage.address))[place])
    recomputed, tolerance = bounded(node or expression(trace, stage, place), PRECISIONS[trace.machine.dtype.name])
    return Compared(model, recomputed, 0.0 if model == recomputed else tolerance)


@dataclass(frozen=True)
class Receipt:
    """Everything that can be said of one number."""

    at: At
    stage: Stage
    tokens: tuple[str, ...]  # of its indices, "" where there is none
    value: float  # what went on from here
    compared: Compared
    precision: Precision
    expression: Expression
    inputs: tuple[tuple[At, float], ...]  # the numbers it is made from, each once
    used_by: tuple[str, ...]

    @property
    def edited(self) -> bool:
        """A what-if put another number in the place of the computed one."""
        return not same(self.value, self.compared.model)

    @cached_property
    def short_names(self) -> dict[str, str]:
        """A short name in formulas for each quantity: its last part, or more of it where two would be the same."""
        names = list(dict.fromkeys(n.cell[0] for n in leaves(expanded(self.expression)) if n.cell is not None))
        parts = {name: without_head(name)[0].split(".") for name in names}
        for count in range(1, 8):
            short = {name: ".".join(parts[name][-count:]) for name in names}
            if len(set(short.values())) == len(names):
                return short
        return {name: name for name in names}

    @cached_property
    def formula(self) -> str:
        """With the indices of this number: `Σ_k Q[0,k]*K[0,k]`."""
        return notations.formula(self.expression, lambda name: self.short_names[name])

    def working(self, number: Callable[[float], str] = repr) -> list[str]:
        """The formula with the numbers put in, then worked out line by line, as on paper."""
        notation, node = notations.plain(number), expanded(self.expression)
        lines = [notations.write(node, notation)]
        while not isinstance(node, Number):
            node = expressions.step(node, self.precision)
            line = notations.write(node, notation)
            if line != lines[-1]:
                lines.append(line)
        return lines

    def copy(self, kind: str) -> str:
        """At full precision, to paste: `python` or `spreadsheet`."""
        return notations.copy_of(self.expression, kind)

    def from_printed(self, number: Callable[[float], str]) -> str | None:
        """What comes out if one works with the numbers as printed, where that is not what is printed for this one."""
        if isinstance(self.expression, Number):
            return None

        def printed(n: Number) -> Number:
            return n if n.cell is None and not n.symbol else Number(float(number(n.value)))

        again = number(evaluate(mapped(expanded(self.expression), printed), self.precision))
        return again if again != number(self.compared.recomputed) else None


def receipt(trace: Trace, at: At) -> Receipt:
    """The receipt of one number."""
    stage = trace.stages[at.name]
    cell, node = trace.operation(stage).cell, expression(trace, stage, at.place)
    sources = dict.fromkeys(n.cell for n in leaves(expanded(node)) if n.cell is not None)
    if cell.picks:
        sources[stage.inputs[1], at.place[:1]] = None
    sources.pop((at.name, at.place), None)
    return Receipt(
        at=at,
        stage=stage,
        tokens=tokens_of(trace, at),
        value=trace.array(at.name)[at.place].item(),
        compared=compared(trace, stage, at.place, node),
        precision=PRECISIONS[trace.machine.dtype.name],
        expression=node,
        inputs=tuple((At(name, place), trace.array(name)[place].item()) for name, place in sources),
        used_by=tuple(used_by(trace, at)),
    )


def tokens_of(trace: Trace, at: At) -> tuple[str, ...]:
    """What the indices stand for: the tokens of rows and columns, where they stand for tokens."""
    found = []
    for axis, i in zip(trace.stages[at.name].axes, at.place, strict=True):
        tokens = trace.axis_tokens(at.name, axis)
        found.append(tokens[i] if i < len(tokens) else "")
    return tuple(found)


# --- where it goes ----------------------------------------------------------------------------------------------------


def used_by(trace: Trace, at: At) -> Iterator[str]:
    """The numbers that are made from this one, by address; `:` stands for every index."""
    for stage in trace.stages.values():
        for slot, name in enumerate(stage.inputs):
            if name == at.name and stage.address in trace:
                for index in uses_of(trace, stage, slot, at.place):
                    yield str(Address(stage.address, tuple(ANY if i is None else str(i) for i in index)))


def uses_of(trace: Trace, stage: Stage, slot: int, place: Place) -> Iterator[tuple[int | None, ...]]:
    """Which numbers of a stage are made from number `place` of its input `slot`; None: every index of that axis."""
    cell = trace.operation(stage).cell
    if not cell.indices or (cell.causal and place[1] > place[0]):
        return
    inputs, made = letters(cell.indices, len(stage.axes))
    at: dict[str, int | None] = dict(zip(inputs[min(slot, len(inputs) - 1)], place, strict=True))
    ways = [at]
    if "p" in at:  # every row that picks this number
        rows = np.flatnonzero(trace.array(stage.inputs[1]) == at["p"]).tolist()
        ways = [{**at, "i": row} for row in rows if at.get("i", row) == row]
    if "h" in at:
        ways = [{**at, "i": place[0] + 1}]
    if "c" in at:
        ways = [{**at, "j": slot * trace.machine.config.d_head + place[1]}]
    shape = trace.array(stage.address).shape  # may be shorter than its input: a table of positions
    for way in ways:
        index = tuple(way.get(axis) for axis in made)
        if all(i is None or i < length for i, length in zip(index, shape, strict=True)):
            yield index
