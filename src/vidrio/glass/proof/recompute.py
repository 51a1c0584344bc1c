"""One number of a trace made again from the numbers it was made from, and how far apart the two are.

A second, independent implementation: it reads the operation's name in `stages.py` and the input values in the trace,
and writes down the arithmetic of that one number (operations.py). It shares no maths with the functions that it checks:
no NumPy arithmetic, no matrix product; each number by itself.
"""

import math
from dataclasses import dataclass

from vidrio.errors import AddressError
from vidrio.glass.numbers.stages import Stage
from vidrio.glass.proof.cells import Cells, Making, Place, inputs_of
from vidrio.glass.proof.expressions import Expression, bounded
from vidrio.glass.proof.operations import OPERATIONS, Operation


def operation_of(stage: Stage) -> Operation:
    """What the table says of a stage's operation."""
    operation = OPERATIONS.get(stage.operation)
    if operation is None:
        raise AddressError(f"{stage.address} is made by {stage.operation!r}, which nobody can recompute")
    return operation


def making(cells: Cells, stage: Stage, place: Place) -> Making:
    """One number, with what it is made from."""
    return Making(cells, stage, place, inputs_of(cells, stage, operation_of(stage).indices, place))


def expression(cells: Cells, stage: Stage, place: Place) -> Expression:
    """How one number is made."""
    return operation_of(stage).express(making(cells, stage, place))


@dataclass(frozen=True)
class Compared:
    """What the model has, what comes out again, and how far apart they may be."""

    model: float
    recomputed: float
    tolerance: float  # the most that rounding can explain

    @property
    def difference(self) -> float:
        """0 where both are NaN, or the same infinity."""
        if self.model == self.recomputed or (math.isnan(self.model) and math.isnan(self.recomputed)):
            return 0.0
        difference = abs(self.model - self.recomputed)
        return math.inf if math.isnan(difference) else difference

    @property
    def agrees(self) -> bool:
        return self.difference == 0.0 or self.difference <= self.tolerance


def compared(cells: Cells, stage: Stage, place: Place, node: Expression | None = None) -> Compared:
    """Model and recomputation of one number, as it was computed: before a what-if put another in its place."""
    node = node or expression(cells, stage, place)
    before = cells.trace.computed.get(stage.address)
    model = float((cells.array(stage.address) if before is None else before)[place])
    recomputed, tolerance = bounded(node, cells.precision)
    return Compared(model, recomputed, 0.0 if model == recomputed else tolerance)
