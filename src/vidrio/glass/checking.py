"""Checks all numbers of a run by recomputing them from their inputs.

The cell function of each operation (cells.py) is called with arrays instead of scalars, so that an entire quantity is
recomputed in the same way as the single number of a receipt.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from vidrio.glass.cells import Making, inputs_of
from vidrio.glass.expressions import At, bounded
from vidrio.glass.maths import Array
from vidrio.glass.receipts import Compared, distance
from vidrio.glass.trace import Trace

NAMED = 8  # maximum number of mismatches to keep per quantity


@dataclass
class Checked:
    """The result of a check."""

    count: int = 0
    quantities: int = 0
    edited: int = 0  # numbers replaced by a what-if
    share: float = 0.0  # the largest ratio of an acceptable difference to its tolerance
    share_at: At | None = None
    wrong: int = 0
    exceptions: list[tuple[At, Compared]] = field(default_factory=list)  # the worst mismatches in each quantity

    def worst(self, count: int) -> list[tuple[At, Compared]]:
        """Return the `count` mismatches that exceed their tolerance the most."""

        def excess(entry: tuple[At, Compared]) -> float:
            result = entry[1]
            return math.inf if result.tolerance == 0 else result.difference / result.tolerance

        return sorted(self.exceptions, key=excess, reverse=True)[:count]


def check(trace: Trace) -> Checked:
    """Recompute every number of a run. An empty input has no numbers."""
    checked = Checked()
    for name in recomputed_names(trace) if trace.values else ():
        check_quantity(trace, name, checked)
    return checked


def recomputed_names(trace: Trace) -> list[str]:
    """Return the names of all computed quantities, excluding parameters, ids and the tokens chosen by the search."""
    return [name for name in trace.addresses() if trace.stages[name].kind in ("value", "aggregate", "constant")]


def check_quantity(trace: Trace, name: str, checked: Checked) -> None:
    """Recompute a quantity. If a what-if replaced values in it, the original values are checked."""
    after = trace.array(name)
    model = trace.computed.get(name, after)
    value, tolerance = recomputed(trace, name)
    difference = distance(model, value)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.where(difference == 0, 0.0, difference / tolerance).astype(np.float64)
    checked.count += model.size
    checked.quantities += 1
    checked.edited += int((distance(after, model) > 0).sum())
    explained = np.where(share <= 1, share, 0.0)
    if explained.size and explained.max() > checked.share:
        at = np.unravel_index(int(np.argmax(explained)), explained.shape)
        checked.share, checked.share_at = float(explained.max()), At(name, tuple(map(int, at)))
    wrong = np.argwhere(~(share <= 1))
    checked.wrong += len(wrong)
    for place in sorted(map(tuple, wrong.tolist()), key=lambda place: -share[place])[:NAMED]:
        result = Compared(float(model[place]), float(value[place]), float(tolerance[place]))
        checked.exceptions.append((At(name, place), result))


def recomputed(trace: Trace, name: str) -> tuple[Array, Array]:
    """Recompute a quantity from its inputs. Returns the values, and the largest differences that rounding explains."""
    stage, shape = trace.stages[name], trace.array(name).shape
    cell, m = trace.operation(stage).cell, Making(trace, stage, tuple(np.indices(shape, sparse=True)))
    value, error = bounded(cell.make(m, *inputs_of(m, cell.indices)), m.precision)
    own = m.precision.epsilon * np.abs(value) * 2.0**-8  # the rounding error of the recomputation itself
    error = np.where((error == 0) | ~np.isfinite(value), 0.0, error + own)
    return np.broadcast_to(value, shape), np.broadcast_to(error, shape)
