"""exp, log and sums that are bit-for-bit identical on every processor. (NumPy's may differ in the last bit.)

Everything is float32, rounded after each operation. The engine implements the same functions in C (docs/engine.md). exp
and log are based on expf and logf from Cephes, and are accurate to two units in the last place.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

F = np.float32
LANES = 16
LARGE = 1 << 18  # number of elements above which arrays are processed row by row
_TO_WHOLE = F(12582912)  # 1.5 · 2²³: adding and subtracting it rounds to the nearest integer, ties to even
_LOG2_E, _LN2, _LN2_REST = F(1.44269504), F(0.693359375), F(-2.12194440e-4)  # ln 2 in two parts; the first is exact
_EXP = [
    *map(F, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3)),
    *map(F, (4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)),
]
_LOG = [
    *map(F, (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1)),
    *map(F, (-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)),
]
_SQRT_HALF = F(0.70710678)


def rint(x: np.ndarray) -> np.ndarray:
    """Round to the nearest integer, with ties to even, for |x| < 2²²."""
    return (x + _TO_WHOLE) - _TO_WHOLE


def exp(x: ArrayLike) -> np.ndarray:
    """Compute eˣ. The result is 0 below −87, and e⁸⁸ above 88."""
    x = np.asarray(x, F)
    if x.ndim > 1 and x.size > LARGE:  # row by row, so that intermediate values stay in the cache
        return np.stack([exp(row) for row in x])
    vanishes = x < F(-87)
    x = np.minimum(np.where(vanishes, F(0), x), F(88))
    n = rint(x * _LOG2_E)
    r = (x - n * _LN2) - n * _LN2_REST
    y = polynomial(r, _EXP)
    y = y * (r * r) + r
    y = y + F(1)
    power = (np.where(np.isnan(n), F(0), n).astype(np.int32) + 127 << 23).view(F)  # 2ⁿ
    return np.where(vanishes, F(0), y * power)


def log(x: ArrayLike) -> np.ndarray:
    """Compute the natural logarithm of positive normal numbers."""
    m, e = np.frexp(np.asarray(x, F))
    small = m < _SQRT_HALF
    f = np.where(small, m + m, m) - F(1)
    e = np.where(small, e - 1, e).astype(F)
    z = f * f
    y = f * (z * polynomial(f, _LOG))
    y = y + e * _LN2_REST
    y = y - F(0.5) * z
    y = f + y
    return y + e * _LN2


def in_lanes(x: ArrayLike) -> np.ndarray:
    """Sum over the last axis in 16 lanes. Each lane is summed in order from +0, then the lanes are added pairwise."""
    x = np.asarray(x, F)
    rows = -(-x.shape[-1] // LANES)
    padded = np.zeros((*x.shape[:-1], rows * LANES), F)
    padded[..., : x.shape[-1]] = x
    total = np.add.reduce(padded.reshape(*x.shape[:-1], rows, LANES), axis=-2, initial=F(0))
    for half in (8, 4, 2, 1):
        total = total[..., :half] + total[..., half : 2 * half]
    return total[..., 0]


def polynomial(x: np.ndarray, coefficients: Sequence[float | np.float32]) -> np.ndarray:
    """Evaluate a polynomial by Horner's rule. The coefficients are ordered from the highest power to the lowest."""
    y = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        y = y * x + c
    return y
