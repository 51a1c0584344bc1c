"""How the numbers of a quantity are made, as data: the table of operations for who has the numbers but not the glass.

A pattern says which numbers of the inputs meet (`ik,kj,j->ij`) and what is done with them, as nested lists:

    ["in", 0]                       the number of input 0 at these indices
    ["dot", 0, 1], ["total", 0]     a sum over the letter that is on the left alone
    ["+", a, b], ["/", a, b], ["max0", a] …
    ["num", value, symbol]          a constant

It is written from the operations' own expressions (glass/proof/operations.py), so there is no second table. Only where
an operation looks at its numbers before it says what it does with them stands here what it looks at. A letter p is the
number that the second input holds: the id of a token, the token chosen.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.proof.cells import Cells, Making, letters
from vidrio.glass.proof.expressions import Apply, Expression, Long, Number, Row
from vidrio.glass.proof.operations import OPERATIONS

Node = list[Any]

_X: Node = ["in", 0]
_E: Node = ["exp", ["-", ["num", 0.0, ""], ["abs", _X]]]

# Operations that look at their numbers, or at the place, first.
_LOOKING: dict[str, tuple[str, Node]] = {
    "mask": ("ij->ij", ["seen", _X, ["num", "-inf", "−∞"]]),
    "zero_scores": ("ij->ij", ["seen", _X, ["num", 0.0, ""]]),
    "softmax": ("ik->ij", ["/", ["exp", ["-", ["of", 0], ["max", 0]]], ["exps", 0, True]]),
    "naive_softmax": ("ik->ij", ["/", ["exp", ["of", 0]], ["exps", 0, False]]),
    "factor_of_rows": ("ik->i", ["/", ["num", 127.0, ""], ["abs", ["largest", 0]]]),
    "factor_of_columns": ("kj->j", ["/", ["num", 127.0, ""], ["abs", ["largest", 0]]]),
    "swish": ("ij->ij", ["*", _X, ["/", ["above0", _X, ["num", 1.0, ""], _E], ["+", ["num", 1.0, ""], _E]]]),
    "concat": ("->ij", ["part"]),
}


class Pattern(NamedTuple):
    """How a quantity is made of which."""

    inputs: Sequence[str]
    indices: str
    make: Node


def patterns(trace: Trace) -> dict[str, Pattern]:
    """Of every quantity of the run that is computed: not of parameters, ids and what the search chose."""
    alike: dict[Any, tuple[str, Node] | None] = {}
    found = {}
    for name in trace.addresses():
        stage = trace.stages[name]
        shapes = [trace.array(one).shape for one in stage.inputs[:1]]
        key = (stage.operation, len(stage.inputs), len(stage.axes), *shapes)
        if key not in alike:
            alike[key] = _pattern(trace, stage)
        if (how := alike[key]) is not None:
            found[name] = Pattern(stage.inputs, *how)
    return found


def _pattern(trace: Trace, stage: Stage) -> tuple[str, Node] | None:
    if stage.operation in _LOOKING:
        return _LOOKING[stage.operation]
    if stage.operation == "sinusoidal_positions":
        width: Node = ["num", float(trace.machine.config.d_model), "D"]
        angle: Node = ["/", ["place", "row"], ["^", ["num", 10000.0, ""], ["/", ["place", "pair"], width]]]
        return "->ij", ["even", ["sin", angle], ["cos", angle]]
    operation = OPERATIONS.get(stage.operation)
    if operation is None or not (operation.indices and stage.inputs):
        return None
    wanted, made = letters(operation.indices, len(stage.axes))
    inputs: list[Number | Row] = [
        Row(str(slot), (), [1.0] * _length(trace, name, axes, made))
        if any(axis not in (*made, "p") for axis in axes)
        else Number(1.0, (str(slot), ()))
        for slot, (name, axes) in enumerate(zip(stage.inputs, wanted, strict=False))
    ]
    expression = operation.express(Making(Cells(trace), stage, (0,) * len(stage.axes)), *inputs)
    return f"{','.join(wanted)}->{made}", _as_data(expression)


def _length(trace: Trace, name: str, axes: str, made: str) -> int:
    """How many numbers are summed over."""
    return int(trace.array(name).shape[next(i for i, axis in enumerate(axes) if axis not in made)])


def _as_data(node: Expression) -> Node:
    match node:
        case Number(value, cell, symbol):
            return ["in", int(cell[0])] if cell else ["num", value, symbol]
        case Apply("float64", (inside,)):
            return _as_data(inside)
        case Apply(function, parts):
            return [function, *map(_as_data, parts)]
        case Long("product", a, Row() as b):
            return ["dot", int(a.name), int(b.name)]
        case Long("plain", x):
            return ["total", int(x.name)]
        case Long("square", x, Number() as mean):
            return ["squares", int(x.name), _as_data(mean)]
    raise TypeError(f"{node} cannot be written as data")
