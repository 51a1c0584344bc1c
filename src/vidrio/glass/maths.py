"""Softmax and activations in NumPy floating-point arithmetic; types for arrays and taps.

All functions are pure and compute in the dtype of their inputs. Each row is one token.
"""

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray

# `tap(address, value)` is called with each quantity as it is computed, and returns the value to continue with.
Tap = Callable[[str, Array], Array]


def no_tap(address: str, value: Array) -> Array:
    """Return the value unchanged."""
    return value


def softmax(x: Array) -> Array:
    """Compute exp(xᵢ) / Σⱼ exp(xⱼ) over the last axis. Subtracting the maximum first prevents overflow and does not
    change the result."""
    exp = np.exp(x - x.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


def naive_softmax(x: Array) -> Array:
    """Compute exp(xᵢ) / Σⱼ exp(xⱼ) literally. exp overflows above 709.78 (88.72 in float32), and ∞/∞ is NaN."""
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def allowed(n_queries: int, n_keys: int) -> Array:
    """Return a mask that is True where a query may attend to a key. The queries correspond to the last keys. §3.2.3."""
    return np.tri(n_queries, n_keys, n_keys - n_queries, dtype=bool)


erf = np.vectorize(math.erf, otypes=[float])


def gelu(x: Array) -> Array:
    """Compute x Φ(x) exactly, where Φ is the cumulative distribution function of the standard normal distribution."""
    return x * (0.5 * (1.0 + erf(x / math.sqrt(2.0)))).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    """Compute σ(x) = 1 / (1 + exp(−x)) in a form that never overflows."""
    e = np.exp(-np.abs(x))
    return (np.where(x >= 0, 1.0, e) / (1.0 + e)).astype(x.dtype)
