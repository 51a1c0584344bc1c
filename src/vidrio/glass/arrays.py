"""Whole quantities recomputed at once: the cell of an operation (cells.py) with arrays for its numbers."""

from typing import Any

import numpy as np

from vidrio.glass.cells import Making, letters
from vidrio.glass.expressions import Number, Row, bounded
from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace


def recomputed(trace: Trace, name: str) -> tuple[Array, Array]:
    """All numbers of a quantity from its inputs, and the most that rounding can carry the model away from each."""
    stage, shape = trace.stages[name], trace.array(name).shape
    if stage.operation == "concat":
        return np.concatenate([trace.array(one) for one in stage.inputs], axis=-1), np.zeros(shape)
    cell = trace.operation(stage).cell
    m = Making(trace, stage, np.indices(shape, sparse=True))
    value, error = bounded(cell.make(m, *_inputs(m, cell.indices)), m.precision)
    own = m.precision.epsilon * np.abs(value) * 2.0**-8  # of the recomputation itself
    error = np.where((error == 0) | ~np.isfinite(value), 0.0, error + own)
    return np.broadcast_to(value, shape), np.broadcast_to(error, shape)


def _inputs(m: Making, indices: str) -> list[Number | Row]:
    """The inputs, their axes put where those of the quantity are; an axis that is summed over comes last."""
    if not indices:
        return []
    wanted, made = letters(indices, len(m.place))
    found: list[Number | Row] = []
    for name, axes in zip(m.stage.inputs, wanted, strict=False):  # a projection's bias may be missing
        array, axes = _picked(m, m.trace.array(name), axes)
        free = [axis for axis in axes if axis not in made]
        array = array.transpose([axes.index(axis) for axis in (*(one for one in made if one in axes), *free)])
        array = np.expand_dims(array, [i for i, axis in enumerate(made) if axis not in axes])
        found.append(Row(name, (), array) if free else Number(_cut(array, m.place)))
    return found


def _picked(m: Making, array: Array, axes: str) -> tuple[Array, str]:
    """Where ids or choices say which numbers enter: those."""
    if "p" not in axes:
        return array, axes
    ids = m.trace.array(m.stage.inputs[1])
    if axes == "ip":
        return array[np.arange(len(ids)), ids], "i"
    return array[ids], axes.replace("p", "i")


def _cut(array: Array, place: Any) -> Array:
    """As many rows as there are: a table of positions has more."""
    return array[tuple(slice(min(length, one.size)) for length, one in zip(array.shape, place, strict=True))]
