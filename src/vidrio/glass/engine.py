"""The engine's arithmetic in NumPy, bit-for-bit identical to the C code on every processor (docs/engine.md).

There are two variants, which differ only in how parameters are multiplied:

INT8       7-bit matrices stored as int8 (model/quantised.py) times int8 rows; the products are exact
IN_ORDER   float32, with the terms of each sum added in order

Each row x and each column of W has its own scale:

    scale   = max |x| / 127
    whole   = rint(x · (1 / scale))        −127 … 127
    product = whole_x whole_W              exact
    x W + b ≈ product · (scale_x · scale_W) + b

Everything else is float32, rounded after each operation. The order of summation does not depend on the processor's
vector width: matrix products add terms in order, and sums over a row use 16 lanes (model/exact.py, which also
implements exp and log).
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from vidrio.glass.maths import Array
from vidrio.glass.operations import Operation, named
from vidrio.model.exact import exp, in_lanes, log, polynomial, rint
from vidrio.model.quantised import LARGEST, to_int8

float32 = np.float32
EXACT_IN_FLOAT32 = 2**24


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """The operations that replace NumPy's floating-point arithmetic."""

    name: str
    operations: Mapping[str, Operation]


FLOAT = Arithmetic("float", {})

# --- sums in a fixed order --------------------------------------------------------------------------------------------


def in_order(a: Array, b: Array) -> Array:
    """Compute the product a b, adding terms in order. Different rows and columns can be computed in parallel."""
    if a.ndim == 1:  # the single row of a classifier
        return in_order(a[None], b)[0]
    total = np.zeros((len(a), b.shape[1]), float32)
    for k in range(a.shape[1]):
        total += a[:, k, None] * b[k]
    return total


def whole_product(a: Array, b: Array) -> Array:
    """Compute the product a b of integers exactly: float32 represents all integers up to 2²⁴, and float64 far larger
    ones."""
    if b.shape[-2] * 127 * LARGEST < EXACT_IN_FLOAT32:
        return a @ b
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(float32)


if sys.platform == "emscripten":  # in a browser, where NumPy is slow, use the C code
    from vidrio.glass.browser import in_order, whole_product


def softmax(x: Array) -> Array:
    """Compute exp(xᵢ) / Σⱼ exp(xⱼ) over the last axis. Masked entries become exactly 0 and do not affect the sum."""
    exps = exp(x - x.max(axis=-1, keepdims=True))
    return exps / in_lanes(exps)[..., None]


def variance(x: Array, mean: Array) -> Array:
    """Compute the variance of each row."""
    centred = x - mean[:, None]
    return in_lanes(centred * centred) / float32(x.shape[-1])


def normalise(x: Array, mean: Array, var: Array, epsilon: float) -> Array:
    """Compute (x − μ) / √(σ² + ε) as a product with the reciprocal of the root."""
    inverse = float32(1) / np.sqrt(var + float32(epsilon))
    return (x - mean[:, None]) * inverse[:, None]


def log_softmax_of_choice(logits: Array, choice: Array) -> Array:
    """Compute the log-softmax of the logits at the chosen tokens."""
    largest = logits.max(axis=-1)
    return (logits[np.arange(len(choice)), choice] - largest) - log(in_lanes(exp(logits - largest[:, None])))


# --- activations ------------------------------------------------------------------------------------------------------


def sigmoid(x: Array) -> Array:
    """Compute σ(x) = 1 / (1 + exp(−x)) in a form that never overflows."""
    e = exp(-np.abs(x))
    return np.where(x >= 0, float32(1), e) / (float32(1) + e)


_ERF = [float32(c) for c in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)]


def gelu(x: Array) -> Array:
    """Compute x Φ(x), where Φ(x) = ½ (1 + erf(x / √2)), with erf by Abramowitz & Stegun 7.1.26 (error ≤ 1.5e-7)."""
    z = np.abs(x) * float32(0.70710678)
    t = float32(1) / (float32(1) + float32(0.3275911) * z)
    erf = float32(1) - (polynomial(t, _ERF) * t) * exp(-(z * z))
    return x * (float32(0.5) * (float32(1) + np.where(x < 0, -erf, erf)))


def scale_of_rows(x: Array) -> Array:
    """Return the int8 scale of each row. A row that is nearly zero has a scale of 1, so it is rounded to 0."""
    largest = np.abs(x).max(axis=-1)
    return np.where(largest < float32(2.0**-100), float32(1), largest / float32(127))


# --- the two variants -------------------------------------------------------------------------------------------------

RUNS: dict[str, Callable[..., Array]] = {
    "project": lambda x, W, b=None: in_order(x, W) if b is None else in_order(x, W) + b,
    "project_tied": lambda x, E, b=None: in_order(x, E.T) if b is None else in_order(x, E.T) + b,
    "rows_dot_rows": lambda Q, K: in_order(Q, K.T),
    "rows_dot_columns": lambda weights, V: in_order(weights, V),
    "softmax": softmax,
    "mean": lambda x: in_lanes(x) / float32(x.shape[-1]),
    "variance": variance,
    "normalise": normalise,
    "column_mean": lambda x: in_order(np.ones((1, len(x)), float32), x)[0] / float32(len(x)),
    "gelu": gelu,
    "swish": lambda x: x * sigmoid(x),
    "sigmoid": sigmoid,
    "log_softmax_of_choice": log_softmax_of_choice,
    # int8 products
    "lookup_whole": lambda whole, ids, scale: whole[ids] * scale[ids, None],
    "lookup_whole_or_zero": lambda whole, ids, scale: np.where(
        ids[:, None] < 0, np.float32(0), whole[ids] * scale[ids, None]
    ),
    "scale_of_rows": scale_of_rows,
    "scale_of_weight_rows": lambda W: to_int8(W, 1).scale,
    "scale_of_weight_columns": lambda W: to_int8(W, 0).scale,
    "whole_by_rows": lambda x, scale: rint(x * (float32(1) / scale)[..., None]),
    "whole_by_columns": lambda W, scale: rint(W / scale),
    "whole_table": lambda W, scale: rint(W / scale[:, None]),
    "whole_product": lambda x, W: whole_product(x, W),
    "whole_product_tied": lambda x, E: whole_product(x, E.T),
    "restore": lambda product, x, W, b=None: (
        product * (x[..., None] * W) if b is None else product * (x[..., None] * W) + b
    ),
}
_OPERATIONS = {name: named(name, run) for name, run in RUNS.items()}
IN_ORDER = Arithmetic("float32 in order", _OPERATIONS)
INT8 = Arithmetic("int8", _OPERATIONS)
