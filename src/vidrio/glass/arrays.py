"""Whole quantities recomputed at once: the operations' formulas on arrays, and how far rounding can carry each number.

A second, independent implementation like operations.py, and held to it by a test: sums are taken in one go, in a wider
kind of number than the model's (long double for float64, float64 below), and never by the functions that are checked.
"""

import math
from collections.abc import Sequence

import numpy as np

from vidrio.glass.cells import Cells, Stage
from vidrio.glass.expressions import FUNCTION, PRECISIONS, Apply, Number, Precision
from vidrio.glass.maths import Array
from vidrio.glass.receipts import expression
from vidrio.glass.trace import Trace

EXACT_IN_FLOAT32 = 2**24

Bounded = tuple[Array, Array | float]  # the values, and the most that rounding can carry the model away from each

_erf = np.vectorize(math.erf, otypes=[float])


def recomputed(trace: Trace, name: str) -> Bounded:
    """All numbers of a quantity from its inputs, and the bounds."""
    stage, machine = trace.stages[name], trace.machine
    precision = PRECISIONS[next(iter(machine.parameters.values())).dtype.name]
    wide = np.longdouble if precision.name == "float64" else np.float64
    inputs = [trace.array(one) for one in stage.inputs]
    numbers = [x.astype(wide) if x.dtype.kind == "f" else x for x in inputs]
    with np.errstate(all="ignore"):
        value, error = _made(stage, trace, numbers, precision, wide)
        value = _limited(value, precision)
        own = precision.epsilon * np.abs(value) * 2.0**-8  # of the recomputation itself
        error = np.where(np.isinf(value), 0.0, np.where(error == 0, 0.0, error + own))
    return value, error


def _limited(value: Array, precision: Precision) -> Array:
    """What is beyond the precision's largest number is ∞, as it is for the model."""
    return np.where(np.abs(value) > precision.largest, np.copysign(np.inf, value), value)


def _made(stage: Stage, trace: Trace, inputs: Sequence[Array], precision: Precision, wide: type) -> Bounded:
    config, eps, tiny = trace.machine.config, precision.epsilon, precision.tiny
    x = inputs[0] if inputs else np.zeros(0, wide)
    more = inputs[1:]
    match stage.operation:
        case "copy" | "unscaled":
            return x, 0.0
        case "relu":
            return np.maximum(x, 0), 0.0
        case "concat":
            return np.concatenate(inputs, axis=-1), 0.0
        case "add":
            return _rounded(x + more[0], eps, tiny)
        case "lookup":
            return x[more[0]], 0.0
        case "lookup_whole":
            return _rounded(x[more[0]] * more[1][more[0], None], eps, tiny)
        case "scale":
            return _rounded(x * np.sqrt(wide(config.d_model)), 3 * eps, tiny)
        case "learned_positions" | "none_positions":
            length = trace.sizes[stage.axes[0]]
            return (x[:length] if inputs else np.zeros((length, config.d_model))), 0.0
        case "project" | "whole_product" | "rows_dot_columns":
            return _product(x, more[0], more[1:], stage, precision)
        case "project_tied" | "whole_product_tied" | "rows_dot_rows":
            return _product(x, more[0].T, more[1:], stage, precision)
        case "restore":
            product = x * (more[0][..., None] * more[1])
            y = product + (more[2] if len(more) > 2 else 0)
            return y, eps * (2 * np.abs(product) + np.abs(y)) + 2 * tiny
        case "divide":
            return _rounded(x / np.sqrt(wide(config.d_head)), 3 * eps, tiny)
        case "divide_by":
            return _rounded(x / wide(_divisor(trace, stage)), 3 * eps, tiny)
        case "mask" | "zero_scores":
            below = np.tri(*x.shape) == 1
            return np.where(below, x, -np.inf if stage.operation == "mask" else 0.0), 0.0
        case "softmax" | "naive_softmax":
            return _softmax(x, precision, shifted=stage.operation == "softmax")
        case "mean" | "column_mean":
            axis = 0 if stage.operation == "column_mean" else -1
            return x.mean(axis), eps * x.shape[axis] * np.abs(x).mean(axis) + tiny
        case "variance":
            n, y = x.shape[-1], _limited((x - more[0][:, None]) ** 2, precision).mean(-1)
            return y, (n + 3) * (eps * y + tiny)
        case "normalise":
            root = np.sqrt(more[1][:, None] + wide(config.norm_epsilon))
            y = (x - more[0][:, None]) / root
            return y, 10 * eps * np.abs(y) + tiny * (1 + 2 / root)
        case "gain_and_bias":
            return x * more[0] + more[1], 2 * eps * (np.abs(x * more[0]) + np.abs(more[1])) + 2 * tiny
        case "gelu":
            y = x * 0.5 * (1 + _erf((x / np.sqrt(wide(2))).astype(np.float64)))
            return y, 3 * FUNCTION * eps * np.abs(x) + 2 * tiny
        case "swish":
            e = np.exp(-np.abs(x))
            y = x * np.where(x >= 0, 1, e) / (1 + e)
            return y, (FUNCTION + 8) * eps * np.abs(y) + 2 * tiny * (1 + np.abs(x))
        case "log_of_choice":
            return _rounded(np.log(x[np.arange(len(x)), more[0]]), FUNCTION * eps, tiny)
        case "log_softmax_of_choice":
            away = x - x.max(-1, keepdims=True)
            chosen, log = away[np.arange(len(x)), more[0]], np.log(np.exp(away).sum(-1))
            sums = (2 * x.shape[-1] + 2 * FUNCTION) * eps  # relative: of exps, and of their sum
            return chosen - log, sums + eps * (2 * np.abs(chosen) + FUNCTION * np.abs(log)) + tiny
        case "scale_of_rows":
            largest = np.abs(x).max(-1)
            return _rounded(np.where(largest < 2.0**-100, 1.0, largest / 127), eps, tiny)
        case "scale_of_weight_rows" | "scale_of_weight_columns":
            largest = np.abs(x).max(0 if stage.operation.endswith("columns") else -1)
            return _rounded(np.where(largest > 0, largest, 1) / 63, eps, tiny)
        case "whole_by_rows":
            return _whole(x * (1 / more[0][..., None]), 3 * eps)
        case "whole_by_columns":
            return _whole(x / more[0], 2 * eps)
        case "whole_table":
            return _whole(x / more[0][:, None], 2 * eps)
    if stage.operation.endswith("_positions"):
        return _waves(stage, trace, precision)
    raise NotImplementedError(stage.operation)


def _divisor(trace: Trace, stage: Stage) -> float:
    """Of the scores, in a what-if."""
    match expression(Cells(trace), stage, (0, 0)):
        case Apply("/", (_, Number(divisor))):
            return divisor
    raise NotImplementedError(stage.operation)


def _rounded(y: Array, share: float, tiny: float) -> Bounded:
    return y, share * np.abs(y) + tiny


def _product(x: Array, W: Array, bias: Sequence[Array], stage: Stage, precision: Precision) -> Bounded:
    y = np.einsum("...k,kj->...j", x, W) if x.dtype == np.longdouble else x @ W
    if stage.operation.startswith("whole"):  # exact, as long as float32 holds the sum
        return y, np.where(np.abs(y) < EXACT_IN_FLOAT32, 0.0, precision.epsilon * np.abs(y))
    sizes = np.abs(x).astype(np.float64) @ np.abs(W).astype(np.float64)
    error = len(W) * (precision.epsilon * sizes + precision.tiny)
    for b in bias:
        y, error = y + b, error + precision.epsilon * (sizes + np.abs(b))
    return y, np.where(np.isnan(error), 0.0, error)


def _softmax(x: Array, precision: Precision, *, shifted: bool) -> Bounded:
    away = x - x.max(-1, keepdims=True) if shifted else x
    exps = _limited(np.exp(away), precision)
    exps = np.where(
        exps < np.longdouble(np.finfo(precision.name).smallest_subnormal) / 2, 0.0, exps
    )  # as it is for the model
    sums = _limited(exps.sum(-1, keepdims=True), precision)
    y, n = exps / sums, x.shape[-1]
    far = np.where(np.isfinite(away), np.abs(away), 0.0) if shifted else 0.0
    return y, precision.epsilon * y * (4 * FUNCTION + 2 * n + 4 * far) + (n + 2) * precision.tiny * (1 + 1 / sums)


def _whole(x: Array, share: float) -> Bounded:
    """The nearest whole number; next to a half, either of the two."""
    y, error = np.rint(x), share * np.abs(x)
    return y, np.maximum(np.rint(x + error) - y, y - np.rint(x - error))


def _waves(stage: Stage, trace: Trace, precision: Precision) -> Bounded:
    """sin and cos of position / 10000^(…); §3.5. They are made in float64, and rounded once."""
    d, columns = trace.machine.config.d_model, np.arange(trace.machine.config.d_model)
    pair, sine, width = columns // 2, columns % 2 == 0, d
    if stage.operation == "slipped_positions":
        pair = columns
    elif stage.operation != "sinusoidal_positions":
        pair, sine = columns % (d // 2), columns < d // 2
        width = d - 2 if stage.operation == "sinusoidal_marian_positions" else d
    exponent = (2 * pair).astype(np.longdouble) / width
    angle = np.arange(trace.sizes[stage.axes[0]])[:, None] / np.longdouble(10000) ** exponent
    value = np.where(sine, np.sin(angle), np.cos(angle))
    made = 2.0**-52
    return value, 20 * made * angle + (FUNCTION * made + precision.epsilon) * np.abs(value) + precision.tiny
