"""Where a token stands, as a table of rows: row p is added to the embedding of the token at position p. §3.5.

In float64, by an exp, a sine and a cosine of our own: made of + − · / alone, they are the same on every processor, and
the engine has them in the same order. NumPy's own differ in the last bit from one processor to the next.
"""

from math import factorial

import numpy as np


def scales(d_model: int) -> np.ndarray:
    """10000^(2i/D), what a position is divided by: each pair of sine and cosine has its own. §3.5."""
    return exp(np.arange(0, d_model, 2) / d_model * LOG_10000)


def marian_scales(d_model: int) -> np.ndarray:
    """As Marian has them: D − 2 for D, so that the longest wave is 2π · 10000."""
    return exp(np.arange(0, d_model, 2) / (d_model - 2) * LOG_10000)


def sinusoidal(n_positions: int, d_model: int) -> np.ndarray:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D)): each pair shares one frequency. §3.5."""
    position_P1 = np.arange(n_positions)[:, None]
    table_PD = np.empty((n_positions, d_model))
    table_PD[:, 0::2], table_PD[:, 1::2] = sine_and_cosine(position_P1 / scales(d_model))
    return table_PD


def sinusoidal_halves(n_positions: int, d_model: int) -> np.ndarray:
    """The same numbers as `transformers` has them for MarianMT: all the sines first, then all the cosines."""
    return np.concatenate(sine_and_cosine(np.arange(n_positions)[:, None] / scales(d_model)), axis=1)


def sinusoidal_marian(n_positions: int, d_model: int) -> np.ndarray:
    """As Marian itself has them: sines first, then cosines."""
    return np.concatenate(sine_and_cosine(np.arange(n_positions)[:, None] / marian_scales(d_model)), axis=1)


def none(n_positions: int, d_model: int) -> np.ndarray:
    """No positions: the encoder then cannot tell the order of the words."""
    return np.zeros((n_positions, d_model))


def slipped_sinusoidal(n_positions: int, d_model: int) -> np.ndarray:
    """The worked example's slip: the column j stands where the pair's number i should, so that no two columns share a
    frequency. Row 1 of width 4 begins sin 1, cos 0.01 instead of sin 1, cos 1."""
    scale_D = exp(2 * np.arange(d_model) / d_model * LOG_10000)
    sine_PD, cosine_PD = sine_and_cosine(np.arange(n_positions)[:, None] / scale_D)
    return np.where(np.arange(d_model) % 2 == 0, sine_PD, cosine_PD)


TABLES = {
    "sinusoidal": sinusoidal,
    "sinusoidal-halves": sinusoidal_halves,
    "sinusoidal-marian": sinusoidal_marian,
    "none": none,
}

# How many positions the wave of each column is long.
WAVELENGTHS = {
    "sinusoidal": lambda d_model: 2 * np.pi * np.repeat(scales(d_model), 2),
    "sinusoidal-halves": lambda d_model: 2 * np.pi * np.tile(scales(d_model), 2),
    "sinusoidal-marian": lambda d_model: 2 * np.pi * np.tile(marian_scales(d_model), 2),
}

# --- exp, sine and cosine in float64 ----------------------------------------------------------------------------------

LOG_10000 = 9.210340371976184
_TO_WHOLE = 6755399441055744.0  # 1.5 · 2⁵²: adding and taking it away again rounds to the nearest whole number
_LOG2_E, _LN2, _LN2_REST = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
_2_BY_PI = 0.6366197723675814
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)  # its sum; two are exact
# Taylor's coefficients, the highest power's first.
_EXP = [1.0 / factorial(k) for k in range(13, -1, -1)]
_SINE = [(-1.0) ** (k // 2) / factorial(k) for k in range(17, 1, -2)]
_COSINE = [(-1.0) ** (k // 2) / factorial(k) for k in range(16, 0, -2)]


def _rint(x: np.ndarray) -> np.ndarray:
    return (x + _TO_WHOLE) - _TO_WHOLE


def _polynomial(x: np.ndarray, coefficients: list[float]) -> np.ndarray:
    """By Horner's rule."""
    y = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        y = y * x + c
    return y


def exp(x: np.ndarray) -> np.ndarray:
    """eˣ = 2ⁿ eʳ with |r| ≤ log 2 / 2, ln 2 taken off in two parts; |x| < 700."""
    n = _rint(x * _LOG2_E)
    r = (x - n * _LN2) - n * _LN2_REST
    y: np.ndarray = np.ldexp(_polynomial(r, _EXP), n.astype(np.int32))
    return y


def sine_and_cosine(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sin x and cos x, 0 ≤ x < 2²⁰: of the rest r of a division by π/2, |r| ≤ π/4, and of which quarter it lies in."""
    k = _rint(x * _2_BY_PI)
    r = ((x - k * _HALF_PI[0]) - k * _HALF_PI[1]) - k * _HALF_PI[2]
    z = r * r
    sine = r + (r * z) * _polynomial(z, _SINE)
    cosine = 1.0 + z * _polynomial(z, _COSINE)
    quarter = k.astype(np.intp) % 4
    return (
        np.choose(quarter, [sine, cosine, -sine, -cosine]),
        np.choose(quarter, [cosine, -sine, -cosine, sine]),
    )
