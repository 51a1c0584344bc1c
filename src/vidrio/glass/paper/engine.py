"""The engine's arithmetic: the same bits as the C code that translates, on every processor (docs/engine.md).

Two arithmetics, which differ only in how a parameter multiplies:

WHOLE_NUMBERS   matrices of seven bits (model/quantised.py) times rows of eight; the product is exact
IN_ORDER        float32, term by term

A row x becomes whole numbers with one scale, and so has each column of W:

    scale   = max |x| / 127
    whole   = rint(x · (1 / scale))        −127 … 127
    product = whole_x whole_W              whole numbers, no rounding
    x W + b ≈ product · (scale_x · scale_W) + b

Everything else is float32, each operation rounded by itself. Sums have one order, whatever the width of a processor's
vectors: scores and mixtures term by term, sums over a row in 16 lanes (model/exact.py). exp and log are our own.
"""

from dataclasses import replace

import numpy as np

from vidrio.glass.paper.arithmetic import Arithmetic, Machine, Projection, Rows, as_they_are, look_up
from vidrio.glass.paper.maths import Array, Tap, no_tap, relu, tap_heads
from vidrio.model.exact import exp, in_lanes, log, rint
from vidrio.model.quantised import LARGEST, WholeNumbers

F = np.float32
LARGEST_INPUT = 127
SMALLEST_SCALED = F(2.0**-100)  # a row of smaller numbers has the scale 1: all of it becomes 0
EXACT_IN_FLOAT32 = 2**24

# --- products with parameters: whole numbers --------------------------------------------------------------------------


def rows(x_LD: Array, name: str, tap: Tap) -> Rows:
    """Each row as whole numbers."""
    largest_L = np.abs(x_LD).max(axis=-1)
    scale_L = tap(f"{name}.scale", np.where(largest_L < SMALLEST_SCALED, F(1), largest_L / F(LARGEST_INPUT)))
    return WholeNumbers(tap(f"{name}.whole", rint(x_LD * (F(1) / scale_L)[..., None])), scale_L)


def project(machine: Machine, x: Rows, to: Projection, tap: Tap) -> Array:
    """x W + b by whole numbers, for each head where there is a matrix for each."""
    assert isinstance(x, WholeNumbers)
    (whole, scale), b = machine.whole_parameters[to.weight], machine.parameters.get(to.bias)
    product, name = whole_product(x.whole, whole.T if to.transposed else whole), f"{to.name}.product"
    if whole.ndim == 2:
        y = tap(name, product) * (x.scale[..., None] * scale)
        return y if b is None else y + b
    y = tap_heads(tap, name, product) * (x.scale[:, None] * scale[:, None, :])
    return y if b is None else y + b[:, None]


def whole_product(a: Array, b: Array) -> Array:
    """Exact, in whatever order: as long as every sum stays below 2²⁴, float32 holds each whole number, and float64 does
    far beyond."""
    if b.shape[-2] * LARGEST_INPUT * LARGEST < EXACT_IN_FLOAT32:
        return a @ b
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(F)


def look_up_whole(machine: Machine, table: str, ids_L: Array) -> Array:
    whole, scale = machine.whole_parameters[table]
    return whole[ids_L] * scale[ids_L, None]


# --- sums in a fixed order --------------------------------------------------------------------------------------------


def in_order(a: Array, b: Array) -> Array:
    """a b, each sum term by term, from 0 on. A processor may work on several rows and columns at once, and does."""
    if a.ndim == 1:  # a classifier's one row
        return in_order(a[None], b)[0]
    total = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), F)
    for k in range(a.shape[-1]):
        total += a[..., :, k, None] * b[..., None, k, :]
    return total


def project_in_order(machine: Machine, x: Rows, to: Projection, tap: Tap) -> Array:
    """x W + b in float32, for each head where there is a matrix for each."""
    assert isinstance(x, np.ndarray)
    W, b = machine.parameters[to.weight], machine.parameters.get(to.bias)
    y = in_order(x, W.T if to.transposed else W)
    return y if b is None else y + (b if W.ndim == 2 else b[:, None])


def scores(Q_HLK: Array, K_HMK: Array) -> Array:
    """Q Kᵀ: every query with every key."""
    return in_order(Q_HLK, K_HMK.swapaxes(-1, -2))


def softmax(x: Array) -> Array:
    """exp(xᵢ) / Σⱼ exp(xⱼ) over the last axis. What the mask hides is exactly 0, so it does not change the sum."""
    exps = exp(x - x.max(axis=-1, keepdims=True))
    return exps / in_lanes(exps)[..., None]


def log_of_choice(logits_TV: Array, prob_TV: Array, choice_T: Array) -> Array:
    """log softmax of the logits, at the tokens chosen."""
    chosen_T, largest_T = logits_TV[np.arange(len(choice_T)), choice_T], logits_TV.max(axis=-1)
    return (chosen_T - largest_T) - log(in_lanes(exp(logits_TV - largest_T[:, None])))


def layer_norm(x_LD: Array, gain_D: Array, bias_D: Array, epsilon: float, name: str, tap: Tap = no_tap) -> Array:
    """γ (x − μ) / √(σ² + ε) + β, with μ and σ² of each row."""
    d = F(x_LD.shape[-1])
    mean_L = tap(f"{name}.mean", in_lanes(x_LD) / d)
    centred_LD = x_LD - mean_L[:, None]
    var_L = tap(f"{name}.var", in_lanes(centred_LD * centred_LD) / d)
    inverse_L = F(1) / np.sqrt(var_L + F(epsilon))
    normed_LD = tap(f"{name}.normed", centred_LD * inverse_L[:, None])
    return tap(f"{name}.out", normed_LD * gain_D + bias_D)


def column_mean(x_LD: Array) -> Array:
    """The mean row: one row added after the other, from 0 on."""
    return in_order(np.ones((1, len(x_LD)), F), x_LD)[0] / F(len(x_LD))


# --- activations ------------------------------------------------------------------------------------------------------


def swish(x: Array) -> Array:
    """x σ(x), with σ written so that neither end overflows."""
    e = exp(-np.abs(x))
    return x * (np.where(x >= 0, F(1), e) / (F(1) + e))


_ERF = [F(c) for c in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)]


def gelu(x: Array) -> Array:
    """x Φ(x), Φ(x) = ½ (1 + erf(x / √2)), erf by Abramowitz & Stegun 7.1.26: within 1.5e-7."""
    z = np.abs(x) * F(0.70710678)
    t = F(1) / (F(1) + F(0.3275911) * z)
    p = np.full_like(t, _ERF[0])
    for c in _ERF[1:]:
        p = p * t + c
    erf = F(1) - (p * t) * exp(-(z * z))
    return x * (F(0.5) * (F(1) + np.where(x < 0, -erf, erf)))


# --- the two ----------------------------------------------------------------------------------------------------------

WHOLE_NUMBERS = Arithmetic(
    name="whole numbers",
    rows=rows,
    project=project,
    look_up=look_up_whole,
    scores=scores,
    mix=in_order,
    softmax=softmax,
    log_of_choice=log_of_choice,
    normalise=layer_norm,
    column_mean=column_mean,
    activations={"relu": relu, "gelu": gelu, "swish": swish},
)
IN_ORDER = replace(WHOLE_NUMBERS, name="float32 in order", rows=as_they_are, project=project_in_order, look_up=look_up)
