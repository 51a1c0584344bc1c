"""The receipt of one number: its formula, the numbers put in, the same worked out again, and how far apart they are.

at = locate(trace, parse_address("enc.0.self.scores.h0[0,0]"))
bill = receipt(trace, at)
bill.working()          # ["8*4 + 3*8 + 3*4", "32 + 24 + 12", "68"]
bill.compared.agrees
made_from(trace, at)    # how many numbers of each quantity it is made from, down to parameters and ids
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Address, Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.proof import expressions, notations
from vidrio.glass.proof.expressions import Expression, Number, Precision, Row, Squares, evaluate, leaves, replaced
from vidrio.glass.proof.recompute import (
    INDICES,
    Cells,
    Compared,
    Place,
    compared,
    expression,
    letters,
    picked_by,
    precision_of,
)

ANY = ":"  # in an address: every index of that axis


@dataclass(frozen=True)
class At:
    """One number: its quantity, its place, and the decoding step at which it is looked at."""

    name: str
    place: Place
    step: int | None = None

    def __str__(self) -> str:
        return written(self.name, tuple(map(str, self.place)), self.step)


def written(name: str, index: tuple[str, ...], step: int | None) -> str:
    """An address as people write it: at a step, an output has lost its row."""
    at_step = step is not None and name.startswith("out.") and index[:1] == (str(step),)
    return str(Address(name, index[1:] if at_step else index, step))


def locate(trace: Trace, address: Address) -> At:
    """Which number an address means; AddressError with the nearest valid ones if there is none."""
    place = trace.position(address)
    row = address.step is not None and address.name.startswith("out.") and trace.stage(address.name).axes[:1] == "T"
    step = address.step if "T" in trace.stage(address.name).axes else None
    return At(address.name, (step, *place) if row and step is not None else place, step)


def step_of(trace: Trace, at: At) -> int | None:
    """The step at which the numbers are read that a number was made from."""
    if at.step is None and trace.steps and at.name.startswith("out."):
        return at.place[0]  # each step computed its output by itself
    return at.step


@dataclass(frozen=True)
class Receipt:
    """Everything that can be said of one number."""

    at: At
    stage: Stage
    tokens: tuple[str, ...]  # of its indices, "" where there is none
    value: float  # what went on from here
    compared: Compared
    dtype: str
    expression: Expression
    inputs: tuple[tuple[At, float], ...]  # the numbers it is made from, each once
    used_by: tuple[str, ...]
    facts: tuple[tuple[str, float], ...]  # numbers on the way that the formula alone does not show

    @property
    def edited(self) -> bool:
        """A what-if put another number in the place of the computed one."""
        return self.value != self.compared.model and not (math.isnan(self.value) and math.isnan(self.compared.model))

    @property
    def precision(self) -> Precision:
        return expressions.PRECISIONS[self.dtype]

    @cached_property
    def short_names(self) -> dict[str, str]:
        """A short name in formulas for each quantity: its last part, or more of it where two would be the same."""
        names = list(dict.fromkeys(n.cell[0] for n in leaves(self.expression) if n.cell is not None))
        parts = {name: [p for p in name.split(".") if not (p[0] == "h" and p[1:].isdigit())] for name in names}
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
        notation = notations.plain(number)
        node, lines = self.expression, [notations.write(self.expression, notation)]
        while not isinstance(node, Number):
            node = expressions.step(node, self.precision)
            line = notations.write(node, notation)
            if line != lines[-1]:
                lines.append(line)
        return lines

    def copy(self, kind: str) -> str:
        """At full precision, to paste: `calculator`, `python`, `spreadsheet` or `latex`."""
        return notations.copy_of(self.expression, kind)

    def from_printed(self, number: Callable[[float], str]) -> str | None:
        """What comes out if one works with the numbers as printed, where that is not what is printed for this one."""
        if isinstance(self.expression, Number):
            return None
        printed = replaced(
            self.expression, lambda n: n if n.cell is None and not n.symbol else Number(float(number(n.value)))
        )
        again = number(evaluate(printed, self.precision))
        return again if again != number(self.compared.recomputed) else None


def receipt(trace: Trace, at: At, cells: Cells | None = None) -> Receipt:
    """The receipt of one number. `cells`, of its step's trace, saves fetching the same rows again for the next one."""
    step = step_of(trace, at)
    cells = cells or Cells(trace.as_of(step))
    here = cells.trace
    stage = here.stages[at.name]
    node = expression(cells, stage, at.place)
    sources = dict.fromkeys(n.cell for n in leaves(node) if n.cell is not None)
    sources |= dict.fromkeys(picked_by(stage, at.place))
    sources.pop((at.name, at.place), None)
    return Receipt(
        at=at,
        stage=stage,
        tokens=tokens_of(here, at),
        value=here.array(at.name)[at.place].item(),
        compared=compared(cells, stage, at.place, node),
        dtype=precision_of(trace).name,
        expression=node,
        inputs=tuple(
            (At(*cell, step if "T" in here.stages[cell[0]].axes else None), cells.number(*cell).value)
            for cell in sources
        ),
        used_by=tuple(used_by(here, at, alone=bool(trace.steps))),
        facts=tuple(facts(cells, stage, at.place)),
    )


def tokens_of(trace: Trace, at: At) -> tuple[str, ...]:
    """What the indices stand for: the tokens of rows and columns, where they stand for tokens."""
    found = []
    for axis, i in zip(trace.stages[at.name].axes, at.place, strict=True):
        tokens = trace.axis_tokens(at.name, axis)
        found.append(tokens[i] if i < len(tokens) else "")
    return tuple(found)


# --- what the formula alone does not show -----------------------------------------------------------------------------


def facts(cells: Cells, stage: Stage, place: Place) -> Iterator[tuple[str, float]]:
    """Numbers on the way to this one, each with what it is."""
    match stage.operation:
        case "softmax" | "naive_softmax":
            row = cells.row(stage.inputs[0], (*place[:-1], None))
            shifted = stage.operation == "softmax"
            if shifted:
                yield f"max x{_at_token(cells.trace, stage, row)}", row.maximum
            hidden = sum(value == -math.inf for value in row.values)
            if hidden:
                yield "hidden by the mask: terms that are exp(−∞) = 0", hidden
            exps = cells.exps(row.name, row.place, shifted=shifted)
            yield f"the sum of the {len(row)} terms", evaluate(exps, precision_of(cells.trace))
        case "variance":
            yield from _spread(cells, stage.inputs[0], stage.inputs[1], place)
        case "normalise":
            yield from _norm(cells, stage, place)
        case "gain_and_bias":
            normed, gain, bias = stage.inputs
            yield from _norm(cells, cells.trace.stages[normed], place)
            yield "normed = (x − mean) / √(var + ε)", cells.number(normed, place).value
            yield "gain γ", cells.number(gain, place[1:]).value
            yield "bias β", cells.number(bias, place[1:]).value
        case "choice":
            token, row = int(cells.array(stage.address)[place]), cells.row(stage.inputs[0], (*place, None))
            yield "its probability", row.values[token]
            yield "its rank by probability, 1 being the likeliest", 1 + sum(p > row.values[token] for p in row.values)


def _at_token(trace: Trace, stage: Stage, row: Row) -> str:
    """Where the row's maximum stands; nothing if it has none, because of a NaN."""
    if row.maximum not in row.values:
        return ""
    i = row.values.index(row.maximum)
    tokens = trace.axis_tokens(stage.address, stage.axes[-1])
    return f", at index {i}" + (f" {tokens[i]!r}" if i < len(tokens) else "")


def _norm(cells: Cells, stage: Stage, place: Place) -> Iterator[tuple[str, float]]:
    x, mean, var = stage.inputs
    yield "mean", cells.number(mean, place[:1]).value
    yield from _spread(cells, x, mean, place[:1])
    variance, epsilon = cells.number(var, place[:1]).value, cells.trace.machine.config.norm_epsilon
    yield "var", variance
    yield "ε, inside the root", epsilon
    yield "√(var + ε)", math.sqrt(variance + epsilon) if variance + epsilon >= 0 else math.nan


def _spread(cells: Cells, x: str, mean: str, place: Place) -> Iterator[tuple[str, float]]:
    row = cells.row(x, (*place, None))
    yield "Σ (x − mean)²", evaluate(Squares(row, cells.number(mean, place)), precision_of(cells.trace))
    yield "N, which divides it (not N − 1)", len(row)


# --- where it goes ----------------------------------------------------------------------------------------------------


def used_by(trace: Trace, at: At, *, alone: bool = False) -> Iterator[str]:
    """The numbers that are made from this one, by address; `:` stands for every index. `alone`: each step was computed
    by itself, so an output is made from its own step's rows only."""
    for stage in trace.stages.values():
        for slot, name in enumerate(stage.inputs):
            if name != at.name or stage.address not in trace:
                continue
            for index in _uses(trace, stage, slot, at.place):
                step = at.step if "T" in stage.axes else None
                if step is not None and stage.address.startswith("out."):
                    if alone and index[0] != step:
                        continue
                    step = index[0]
                yield written(stage.address, tuple(ANY if i is None else str(i) for i in index), step)


def _uses(trace: Trace, stage: Stage, slot: int, place: Place) -> Iterator[tuple[int | None, ...]]:
    match stage.operation:
        case "lookup" if slot == 0:  # a row of the table, for each token that has this id
            for row in np.flatnonzero(trace.array(stage.inputs[1]) == place[0]):
                yield int(row), place[1]
        case "lookup":
            yield place[0], None
        case "learned_positions" if place[0] >= len(trace.array(stage.address)):
            return  # the text is shorter than the table
        case "concat":
            yield place[0], slot * trace.machine.config.d_head + place[1]
        case "choice":
            yield place[:1]
        case "log_of_choice":
            if slot == 1 or int(trace.array(stage.inputs[1])[place[0]]) == place[1]:
                yield place[:1]
        case "mask" if place[1] > place[0]:
            return
        case operation if operation in INDICES:
            wanted, made = letters(operation, len(stage.axes))
            bound = dict(zip(wanted[slot], place, strict=True))
            yield tuple(bound.get(axis) for axis in made)


# --- where it comes from ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One number of the way down: how deep it lies under the first, and its receipt."""

    depth: int
    receipt: Receipt


def walk(trace: Trace, at: At, limit: int) -> list[Line]:
    """The receipts from a number down to parameters and ids, each number once, `limit` of them at most.

    Under each number first the parameters and ids it is made from, then the numbers that are made from others.
    """
    lines: list[Line] = []
    seen = {at}
    waiting = [(0, at)]
    cells: dict[int | None, Cells] = {}  # of each step
    while waiting and len(lines) < limit:
        depth, now = waiting.pop()
        step = step_of(trace, now)
        if step not in cells:
            cells[step] = Cells(trace.as_of(step))
        bill = receipt(trace, now, cells[step])
        lines.append(Line(depth, bill))
        new = [source for source, _ in reversed(bill.inputs) if source not in seen]
        seen.update(new)
        new.sort(key=lambda source: trace.stages[source.name].kind in ("parameter", "input"))  # these come off first
        waiting += [(depth + 1, source) for source in new]
    return lines


def made_from(trace: Trace, at: At) -> dict[str, int]:
    """How many numbers of each quantity go into one number, itself left out; parameters first, then along the way."""
    here = trace.as_of(step_of(trace, at))
    start = np.zeros(here.array(at.name).shape, dtype=bool)
    start[at.place] = True
    wanted: dict[str, Array] = {at.name: start}
    for stage in reversed(list(here.stages.values())):
        if stage.address in wanted:
            for name, needed in _needed(here, stage, wanted[stage.address]):
                wanted[name] = wanted[name] | needed if name in wanted else needed
    wanted[at.name] = wanted[at.name] & ~start
    return {name: int(wanted[name].sum()) for name in here.stages if name in wanted and wanted[name].any()}


def _needed(trace: Trace, stage: Stage, wanted: Array) -> Iterator[tuple[str, Array]]:
    """For the wanted numbers of a stage: which numbers of its inputs they need."""
    shapes = [trace.array(name).shape for name in stage.inputs]
    match stage.operation:
        case "lookup":
            table = np.zeros(shapes[0], dtype=bool)
            np.logical_or.at(table, trace.array(stage.inputs[1]), wanted)
            yield stage.inputs[0], table
            yield stage.inputs[1], np.any(wanted, axis=1)
        case "learned_positions":
            table = np.zeros(shapes[0], dtype=bool)
            table[: len(wanted)] = wanted
            yield stage.inputs[0], table
        case "concat":
            yield from zip(stage.inputs, np.split(wanted, len(stage.inputs), axis=1), strict=True)
        case "log_of_choice":
            chosen = np.zeros(shapes[0], dtype=bool)
            chosen[np.arange(len(wanted)), trace.array(stage.inputs[1])] = wanted
            yield stage.inputs[0], chosen
            yield stage.inputs[1], wanted
        case "mask" | "zero_scores":
            yield stage.inputs[0], np.tril(wanted)
        case operation if operation in INDICES:
            inputs, made = letters(operation, wanted.ndim)
            for name, axes, shape in zip(stage.inputs, inputs, shapes, strict=False):
                left = [axis for axis in made if axis in axes]
                gone = tuple(i for i, axis in enumerate(made) if axis not in axes)
                rows: Array = np.asarray(np.any(wanted, axis=gone))
                rows = rows.transpose([left.index(axis) for axis in axes if axis in left])
                spread = rows[tuple(slice(None) if axis in left else None for axis in axes)]
                yield name, np.broadcast_to(spread, shape)
