"""The small functions that everything is made of: linear maps, softmax, layer norm, activations.

Pure functions of NumPy arrays, in the dtype of what they are given (float64 or float32). Each row is one token.
"""

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray

# `tap(name, value)` is told every intermediate value and returns the value to go on with. That is all that explaining
# needs: one code computes and explains, and nothing can drift apart.
Tap = Callable[[str, Array], Array]


def no_tap(name: str, value: Array) -> Array:
    """Nobody looks."""
    return value


def tap_heads(tap: Tap, name: str, values: Array) -> Array:
    """Tap what each head has, under name.h0, name.h1, …"""
    if tap is no_tap:
        return values
    after = values
    for h, value in enumerate(values):
        tapped = tap(f"{name}.h{h}", value)
        if tapped is not value:
            after = values.copy() if after is values else after
            after[h] = tapped
    return after


def linear(x: Array, W: Array, b: Array | None = None) -> Array:
    """x W + b; the paper's projections have no b. Where W is a matrix for each head, b is a row for each."""
    return x @ W if b is None else x @ W + (b if W.ndim == 2 else b[:, None])


def softmax(x: Array) -> Array:
    """exp(xᵢ) / Σⱼ exp(xⱼ) over the last axis. The maximum is taken off first: the same value, and no overflow."""
    exp = np.exp(x - x.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


def relu(x: Array) -> Array:
    """max(0, x), Eq. 2."""
    return np.maximum(x, 0)


_erf = np.vectorize(math.erf, otypes=[float])


def gelu(x: Array) -> Array:
    """x Φ(x), Φ the standard normal distribution function, in its exact form with erf."""
    return x * (0.5 * (1.0 + _erf(x / math.sqrt(2.0)))).astype(x.dtype)


def swish(x: Array) -> Array:
    """x σ(x), with σ written so that neither end overflows."""
    e = np.exp(-np.abs(x))
    return x * (np.where(x >= 0, 1.0, e) / (1.0 + e)).astype(x.dtype)


ACTIVATIONS = {"relu": relu, "gelu": gelu, "swish": swish}


def layer_norm(x_LD: Array, gain_D: Array, bias_D: Array, epsilon: float, name: str, tap: Tap = no_tap) -> Array:
    """γ (x − μ) / √(σ² + ε) + β, with μ and σ² of each row; σ² divides by D, not by D − 1."""
    mean_L = tap(f"{name}.mean", x_LD.mean(axis=-1))
    var_L = tap(f"{name}.var", ((x_LD - mean_L[:, None]) ** 2).mean(axis=-1))
    normed_LD = tap(f"{name}.normed", (x_LD - mean_L[:, None]) / np.sqrt(var_L[:, None] + epsilon))
    return tap(f"{name}.out", normed_LD * gain_D + bias_D)
