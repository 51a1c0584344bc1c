"""The NumPy code of each operation. The code shown to users is the code that runs.

`words.py` contains the formula of each operation, and `cells.py` an independent recomputation, under the same name.
What-ifs and the engine's arithmetic (engine.py) can replace operations.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vidrio.glass import maths
from vidrio.glass.cells import CELLS, Cell
from vidrio.glass.maths import Array, allowed
from vidrio.glass.positions import sinusoidal, sinusoidal_halves, sinusoidal_marian
from vidrio.glass.words import FORMULAS, Formula


@dataclass(frozen=True, eq=False)  # operations are compared by identity
class Operation:
    """An operation that computes quantities."""

    name: str
    run: Callable[..., Array]  # takes the inputs and any other arguments that walk.py passes
    formula: Formula
    cell: Cell


def named(name: str, run: Callable[..., Array]) -> Operation:
    return Operation(name, run, FORMULAS[name], CELLS[name])


RUNS: dict[str, Callable[..., Array]] = {
    **dict.fromkeys(("parameter", "input", "choice"), lambda x: x),  # not computed
    "copy": lambda x: x,
    "left_out": lambda x: x,  # a layer norm or a residual connection left out by a what-if
    "add": lambda a, b: a + b,
    # embeddings and positions
    "lookup": lambda table, ids: table[ids],
    "lookup_or_zero": lambda table, ids: np.where(ids[:, None] < 0, table.dtype.type(0), table[ids]),
    "scale": lambda x, d_model: x * math.sqrt(d_model),
    "unscaled": lambda x, d_model: x,
    "sinusoidal_positions": lambda first, n, d_model, dtype: sinusoidal(first + n, d_model)[first:].astype(dtype),
    "sinusoidal_halves_positions": (
        lambda first, n, d_model, dtype: sinusoidal_halves(first + n, d_model)[first:].astype(dtype)
    ),
    "sinusoidal_marian_positions": (
        lambda first, n, d_model, dtype: sinusoidal_marian(first + n, d_model)[first:].astype(dtype)
    ),
    "learned_positions": lambda table, first, n, d_model, dtype: table[first : first + n],
    "none_positions": lambda first, n, d_model, dtype: np.zeros((n, d_model), dtype),
    # attention
    "project": lambda x, W, b=None: x @ W if b is None else x @ W + b,
    "rows_dot_rows": lambda Q, K: Q @ K.T,
    "divide": lambda scores, d_head: scores / math.sqrt(d_head),
    "mask": lambda scaled: np.where(allowed(*scaled.shape), scaled, -np.inf),
    "softmax": maths.softmax,
    "rows_dot_columns": lambda weights, V: weights @ V,
    "concat": lambda *heads: np.concatenate(heads, axis=-1),
    # Marian's recurrent cell (SSRU), which replaces the decoder's self-attention
    "sigmoid": maths.sigmoid,
    "recurrence": lambda forget, candidate, before: forget * before + (1 - forget) * candidate,
    "relu_of_cell": lambda x: np.maximum(x, 0),
    # feed-forward and layer norm
    "relu": lambda x: np.maximum(x, 0),
    "gelu": maths.gelu,
    "swish": lambda x: x * maths.sigmoid(x),
    "mean": lambda x: x.mean(axis=-1),
    "variance": lambda x, mean: ((x - mean[:, None]) ** 2).mean(axis=-1),
    "normalise": lambda x, mean, var, epsilon: (x - mean[:, None]) / np.sqrt(var[:, None] + epsilon),
    "gain_and_bias": lambda normed, gain, bias: normed * gain + bias,
    # output
    "project_tied": lambda x, E, b=None: x @ E.T if b is None else x @ E.T + b,
    "column_mean": lambda x: x.mean(axis=0),
    "log_of_choice": lambda prob, choice: np.log(prob[np.arange(len(choice)), choice]),
}
OPERATIONS = {name: named(name, run) for name, run in RUNS.items()}
