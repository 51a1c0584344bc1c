"""Where a token stands, as a table of rows: row p is added to the embedding of the token at position p. §3.5."""

import numpy as np


def scales(d_model: int) -> np.ndarray:
    """10000^(2i/D), what a position is divided by: each pair of sine and cosine has its own. §3.5."""
    scale_I: np.ndarray = 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    return scale_I


def marian_scales(d_model: int) -> np.ndarray:
    """As Marian has them: D − 2 for D, so that the longest wave is 2π · 10000."""
    scale_I: np.ndarray = 10000.0 ** (np.arange(0, d_model, 2) / (d_model - 2))
    return scale_I


def sinusoidal(n_positions: int, d_model: int) -> np.ndarray:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D)): each pair shares one frequency. §3.5."""
    position_P1 = np.arange(n_positions)[:, None]
    angle = position_P1 / scales(d_model)
    table_PD = np.empty((n_positions, d_model))
    table_PD[:, 0::2] = np.sin(angle)
    table_PD[:, 1::2] = np.cos(angle)
    return table_PD


def sinusoidal_halves(n_positions: int, d_model: int) -> np.ndarray:
    """The same numbers as `transformers` has them for MarianMT: all the sines first, then all the cosines."""
    table_PD = sinusoidal(n_positions, d_model)
    return np.concatenate([table_PD[:, 0::2], table_PD[:, 1::2]], axis=1)


def sinusoidal_marian(n_positions: int, d_model: int) -> np.ndarray:
    """As Marian itself has them: sines first, then cosines."""
    angle = np.arange(n_positions)[:, None] / marian_scales(d_model)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)


def none(n_positions: int, d_model: int) -> np.ndarray:
    """No positions: the encoder then cannot tell the order of the words."""
    return np.zeros((n_positions, d_model))


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
