"""Position tables (§3.5): row p is added to the embedding of the token at position p.

The tables are computed in float64. NumPy's exp, sin and cos differ in the last bit between processors, so this module
implements its own. They use only + − · /, in the same order as the engine, and so give identical results on every
processor.
"""

from collections.abc import Callable
from math import factorial

import numpy as np

from vidrio.model.exact import polynomial

# --- exp, sine and cosine in float64 ----------------------------------------------------------------------------------

LOG_10000 = 9.210340371976184
_ROUND = 6755399441055744.0  # 1.5 · 2⁵²: adding and subtracting it rounds to the nearest integer
_LOG2_E, _LN2, _LN2_REST = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
_2_BY_PI = 0.6366197723675814
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)  # π/2 in three parts
# Taylor coefficients, highest power first.
_EXP = [1.0 / factorial(k) for k in range(13, -1, -1)]
_SINE = [(-1.0) ** (k // 2) / factorial(k) for k in range(17, 1, -2)]
_COSINE = [(-1.0) ** (k // 2) / factorial(k) for k in range(16, 0, -2)]


def exp(x: np.ndarray) -> np.ndarray:
    """Compute eˣ = 2ⁿ eʳ with |r| ≤ log 2 / 2, for |x| < 700."""
    n = (x * _LOG2_E + _ROUND) - _ROUND
    r = (x - n * _LN2) - n * _LN2_REST
    y: np.ndarray = np.ldexp(polynomial(r, _EXP), n.astype(np.int32))
    return y


def sine_and_cosine(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute sin x and cos x for 0 ≤ x < 2²⁰, from the quadrant of x and a remainder r with |r| ≤ π/4."""
    k = (x * _2_BY_PI + _ROUND) - _ROUND
    r = ((x - k * _HALF_PI[0]) - k * _HALF_PI[1]) - k * _HALF_PI[2]
    z = r * r
    sine = r + (r * z) * polynomial(z, _SINE)
    cosine = 1.0 + z * polynomial(z, _COSINE)
    quarter = k.astype(np.intp) % 4
    return (
        np.choose(quarter, [sine, cosine, -sine, -cosine]),
        np.choose(quarter, [cosine, -sine, -cosine, sine]),
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def scales(d_model: int) -> np.ndarray:
    """Return the number that positions are divided by, 10000^(2i/D), for each sine/cosine pair i. §3.5."""
    return exp(np.arange(0, d_model, 2) / d_model * LOG_10000)


def marian_scales(d_model: int) -> np.ndarray:
    """Return Marian's scales, which use D − 2 in place of D, so that the longest wavelength is 2π · 10000."""
    return exp(np.arange(0, d_model, 2) / (d_model - 2) * LOG_10000)


def waves(n_positions: int, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sin(p / scale) and cos(p / scale), with one row per position p and one column per scale."""
    return sine_and_cosine(np.arange(n_positions)[:, None] / scales)


def sinusoidal(n_positions: int, d_model: int) -> np.ndarray:
    """Return PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D)). §3.5."""
    return np.stack(waves(n_positions, scales(d_model)), axis=-1).reshape(n_positions, d_model)


def sinusoidal_halves(n_positions: int, d_model: int) -> np.ndarray:
    """Return the same numbers in the order used by MarianMT in `transformers`: all sines, then all cosines."""
    return np.concatenate(waves(n_positions, scales(d_model)), axis=1)


def sinusoidal_marian(n_positions: int, d_model: int) -> np.ndarray:
    """Return Marian's own table: all sines, then all cosines, with Marian's scales."""
    return np.concatenate(waves(n_positions, marian_scales(d_model)), axis=1)


def slipped_sinusoidal(n_positions: int, d_model: int) -> np.ndarray:
    """Reproduce the mistake in the worked example, which uses the column index j instead of the pair index i.

    As a result, no two columns have the same frequency. With width 4, row 1 begins with sin 1, cos 0.01 instead of
    sin 1, cos 1.
    """
    columns = np.arange(d_model)
    return np.where(columns % 2 == 0, *waves(n_positions, exp(2 * columns / d_model * LOG_10000)))


TABLES: dict[str, Callable[[int, int], np.ndarray]] = {
    "sinusoidal": sinusoidal,
    "sinusoidal-halves": sinusoidal_halves,
    "sinusoidal-marian": sinusoidal_marian,
    "none": lambda n_positions, d_model: np.zeros((n_positions, d_model)),
}
# The wavelength of each column, in positions.
WAVELENGTHS = {
    "sinusoidal": lambda d_model: 2 * np.pi * np.repeat(scales(d_model), 2),
    "sinusoidal-halves": lambda d_model: 2 * np.pi * np.tile(scales(d_model), 2),
    "sinusoidal-marian": lambda d_model: 2 * np.pi * np.tile(marian_scales(d_model), 2),
}
