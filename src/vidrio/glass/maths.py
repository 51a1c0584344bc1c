"""Softmax and activations in NumPy's floating point; types of arrays and taps.

Pure functions of arrays, in the dtype of their inputs. Each row is one token.
"""

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray

# `tap(address, value)` receives every quantity as it is computed, and returns the value to continue with.
Tap = Callable[[str, Array], Array]


def no_tap(address: str, value: Array) -> Array:
    """Returns the value."""
    return value


def softmax(x: Array) -> Array:
    """exp(xᵢ) / Σⱼ exp(xⱼ) over the last axis. The maximum is subtracted first, which prevents overflow and does not
    change the result."""
    exp = np.exp(x - x.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


def naive_softmax(x: Array) -> Array:
    """exp(xᵢ) / Σⱼ exp(xⱼ) exactly as in the formula: exp overflows above 709.78 (88.72 in float32), and ∞/∞ is NaN."""
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def allowed(n_queries: int, n_keys: int) -> Array:
    """True where the query row may see the key row. The queries are the last rows of the keys' sequence. §3.2.3."""
    return np.tri(n_queries, n_keys, n_keys - n_queries, dtype=bool)


erf = np.vectorize(math.erf, otypes=[float])


def gelu(x: Array) -> Array:
    """x Φ(x), Φ the standard normal distribution function, in its exact form with erf."""
    return x * (0.5 * (1.0 + erf(x / math.sqrt(2.0)))).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    """σ(x) = 1 / (1 + exp(−x)), in a form that never overflows."""
    e = np.exp(-np.abs(x))
    return (np.where(x >= 0, 1.0, e) / (1.0 + e)).astype(x.dtype)
