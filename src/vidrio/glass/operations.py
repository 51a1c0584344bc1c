"""One table of operations: for every small step that makes a quantity from others, all there is to say about it.

The NumPy that runs (and is shown), the formula in words and in LaTeX, where the paper has it, which numbers meet which,
and how one number is made: `cells.py`, written apart, which is what the NumPy is checked by.

A formula's <0> is the first input's address, <W> the letter of a weight, <b> its bias where there is one. A what-if
puts another row in the place of one; so does the engine's arithmetic (engine.py).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from vidrio.glass import cells, maths
from vidrio.glass.expressions import Expression, Number, apply
from vidrio.glass.maths import Array, allowed
from vidrio.glass.positions import sinusoidal, sinusoidal_halves, sinusoidal_marian
from vidrio.glass.words import SSRU

WHAT_IF = "what if: not in the paper"
ZERO_START = "departs: the paper has a start token"
MAX_0 = "departs: Eq. 2 has max(0, x)"
LAYER_NORM = "§3.1, layer norm"


class Formula(NamedTuple):
    """How a step is written."""

    plain: str
    latex: str
    place: str = ""  # where the paper has it; else that depends on the quantity: words.py


class Cell(NamedTuple):
    """How one number is made, and from which: cells.py."""

    indices: str = ""  # which numbers of the inputs meet which: cells.letters
    make: Callable[..., Expression] = cells.itself
    causal: bool = False  # what is right of the diagonal is made from nothing
    chooses: bool = False  # a number that its second input chooses has a part of its own

    @property
    def picks(self) -> bool:
        """Whether its second input says which numbers of the first one enter: ids, choices."""
        return "p" in self.indices or self.chooses


ITSELF = Cell()  # not computed


@dataclass(frozen=True, eq=False)  # each row is itself: two that compute alike are not the same
class Operation:
    """One small step."""

    name: str
    run: Callable[..., Array] | None  # of the inputs, and of the numbers that the walk gives besides
    formula: Formula
    cell: Cell = ITSELF
    kind: str = "value"
    says: str = ""


# --- from words to rows -----------------------------------------------------------------------------------------------

WORDS = (
    Operation(
        "lookup",
        lambda table, ids: table[ids],
        Formula("row ids of <0>", "E_{ids}"),
        Cell("pj,i->ij", lambda m, x, token: x),
    ),
    Operation(
        "lookup_whole",
        lambda whole, ids, scale: whole[ids] * scale[ids, None],
        Formula("row ids of <0> · its scale", "E_{ids}"),
        Cell("pj,i,p->ij", lambda m, whole, token, scale: whole * scale),
    ),
    Operation(
        "lookup_or_zero",
        lambda table, ids: np.where(ids[:, None] < 0, table.dtype.type(0), table[ids]),
        Formula("row ids of <0>; 0 where there is no token", "E_{ids}", ZERO_START),
        Cell("pj,i->ij", cells.row_or_zero),
    ),
    Operation(
        "lookup_whole_or_zero",
        lambda whole, ids, scale: np.where(ids[:, None] < 0, np.float32(0), whole[ids] * scale[ids, None]),
        Formula("row ids of <0> · its scale; 0 where there is no token", "E_{ids}", ZERO_START),
        Cell("pj,i,p->ij", lambda m, whole, token, scale: cells.row_or_zero(m, whole * scale, token)),
    ),
    Operation(
        "scale",
        lambda x, d_model: x * math.sqrt(d_model),
        Formula("√D · embedding", r"\sqrt{d_{model}}\,E", "§3.4"),
        Cell("ij->ij", cells.scale),
    ),
    Operation(
        "unscaled",
        lambda x, d_model: x,
        Formula("1 · embedding", "E", "departs: §3.4 has √d_model"),
        Cell("ij->ij", cells.copy),
    ),
    Operation(
        "sinusoidal_positions",
        lambda first, n, d_model, dtype: sinusoidal(first + n, d_model)[first:].astype(dtype),
        Formula(
            "sin(p / 10000^(2i/D)) in column 2i, cos of the same in column 2i+1",
            r"PE_{p,2i}=\sin(p/10000^{2i/d}),\ PE_{p,2i+1}=\cos(p/10000^{2i/d})",
            "§3.5",
        ),
        Cell(make=lambda m: cells.interleaved(m, m.place[1] // 2)),
    ),
    Operation(
        "sinusoidal_halves_positions",
        lambda first, n, d_model, dtype: sinusoidal_halves(first + n, d_model)[first:].astype(dtype),
        Formula(
            "sin(p / 10000^(2i/D)) in column i, cos of the same in column D/2+i",
            r"PE_{p,i}=\sin(p/10000^{2i/d}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/d})",
            "departs: §3.5 interleaves them",
        ),
        Cell(make=lambda m: cells.in_halves(m, cells.width(m))),
    ),
    Operation(
        "sinusoidal_marian_positions",
        lambda first, n, d_model, dtype: sinusoidal_marian(first + n, d_model)[first:].astype(dtype),
        Formula(
            "sin(p / 10000^(2i/(D − 2))) in column i, cos of the same in column D/2+i",
            r"PE_{p,i}=\sin(p/10000^{2i/(d-2)}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/(d-2)})",
            "departs: §3.5 has D, and interleaves them",
        ),
        Cell(make=lambda m: cells.in_halves(m, cells.width(m) - Number(2.0))),
    ),
    Operation(
        "learned_positions",
        lambda table, first, n, d_model, dtype: table[first : first + n],
        Formula("row p of the learned table", "P_p", "§3.5, the second kind"),
        Cell("ij->ij", cells.copy),
    ),
    Operation(
        "none_positions",
        lambda first, n, d_model, dtype: np.zeros((n, d_model), dtype),
        Formula("0", "0", "departs: §3.5 has positions"),
        Cell(make=lambda m: Number(0.0)),
    ),
    Operation("add", lambda a, b: a + b, Formula("<0> + <1>", "a+b"), Cell("ij,ij->ij", lambda m, a, b: a + b)),
    Operation("copy", lambda x: x, Formula("<0>", "x"), Cell("ij->ij", cells.copy)),
)

# --- attention --------------------------------------------------------------------------------------------------------

ATTENTION = (
    Operation(
        "project",
        lambda x, W, b=None: x @ W if b is None else x @ W + b,
        Formula("x <W><b>", "x<W><b>"),
        Cell("ik,kj,j->ij", cells.project),
    ),
    Operation(
        "rows_dot_rows", lambda Q, K: Q @ K.T, Formula("Q Kᵀ", r"QK^\top", "Eq. 1"), Cell("ik,jk->ij", cells.dot)
    ),
    Operation(
        "divide",
        lambda scores, d_head: scores / math.sqrt(d_head),
        Formula("scores / √d_k", r"\frac{QK^\top}{\sqrt{d_k}}", "Eq. 1"),
        Cell("ij->ij", cells.divide),
    ),
    Operation(
        "mask",
        lambda scaled: np.where(allowed(*scaled.shape), scaled, -np.inf),
        Formula("scaled where column ≤ row, else −∞", r"\begin{cases}s_{ij}&j\le i\\-\infty&j>i\end{cases}", "§3.2.3"),
        Cell("ij->ij", partial(cells.hidden, by=Number(-math.inf, symbol="−∞")), causal=True),
    ),
    Operation(
        "softmax",
        maths.softmax,
        Formula("exp(x − max x) / Σ exp(x − max x)", r"\frac{e^{x_i-\max x}}{\sum_j e^{x_j-\max x}}"),
        Cell("ik->ij", partial(cells.share, shifted=True)),
    ),
    Operation(
        "rows_dot_columns",
        lambda weights, V: weights @ V,
        Formula("weights V", r"\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V", "Eq. 1"),
        Cell("ik,kj->ij", cells.dot),
    ),
    Operation(
        "concat",
        lambda *heads: np.concatenate(heads, axis=-1),
        Formula("the heads side by side", r"\mathrm{Concat}(head_1,\dots,head_h)", "§3.2.2"),
        Cell(make=cells.concat),
    ),
)

# --- Marian's recurrent cell (SSRU), in the place of a decoder's self-attention --------------------------------------

RECURRENT = (
    Operation(
        "sigmoid", maths.sigmoid, Formula("1 / (1 + exp(−<0>))", r"\sigma(x)", SSRU), Cell("ij->ij", cells.sigmoid)
    ),
    Operation(
        "recurrence",
        lambda forget, candidate, before: forget * before + (1 - forget) * candidate,
        Formula(
            "forget · cell of the row before + (1 − forget) · candidate",
            r"f_t\odot c_{t-1}+(1-f_t)\odot\tilde{c}_t",
            SSRU,
        ),
        Cell("ij,ij,hj->ij", cells.recurrence),
    ),
)

# --- feed-forward and layer norm --------------------------------------------------------------------------------------

EACH_ROW = (
    Operation(
        "relu",
        lambda x: np.maximum(x, 0),
        Formula("max(0, hidden)", r"\max(0,h)", "Eq. 2"),
        Cell("ij->ij", lambda m, x: apply("max0", x)),
    ),
    Operation("gelu", maths.gelu, Formula("hidden · Φ(hidden)", r"h\,\Phi(h)", MAX_0), Cell("ij->ij", cells.gelu)),
    Operation("swish", maths.swish, Formula("hidden · σ(hidden)", r"h\,\sigma(h)", MAX_0), Cell("ij->ij", cells.swish)),
    Operation(
        "mean",
        lambda x: x.mean(axis=-1),
        Formula("Σ x / D", r"\mu", LAYER_NORM),
        Cell("ij->i", cells.mean),
        kind="aggregate",
    ),
    Operation(
        "variance",
        lambda x, mean: ((x - mean[:, None]) ** 2).mean(axis=-1),
        Formula("Σ (x − mean)² / D", r"\sigma^2", LAYER_NORM),
        Cell("ij,i->i", cells.variance),
        kind="aggregate",
    ),
    Operation(
        "normalise",
        lambda x, mean, var, epsilon: (x - mean[:, None]) / np.sqrt(var[:, None] + epsilon),
        Formula("(x − mean) / √(var + ε)", r"\frac{x-\mu}{\sqrt{\sigma^2+\varepsilon}}", LAYER_NORM),
        Cell("ij,i,i->ij", cells.normalise),
    ),
    Operation(
        "gain_and_bias",
        lambda normed, gain, bias: normed * gain + bias,
        Formula("normed · gain + bias", r"\gamma\hat{x}+\beta", LAYER_NORM),
        Cell("ij,j,j->ij", lambda m, x, gain, bias: x * gain + bias),
    ),
)

# --- from rows to words -----------------------------------------------------------------------------------------------

CHOICES = (
    Operation(
        "project_tied",
        lambda x, E, b=None: x @ E.T if b is None else x @ E.T + b,
        Formula("x <W>ᵀ<b>", r"x<W>^\top<b>"),
        Cell("ik,jk,j->ij", cells.project),
    ),
    Operation(
        "column_mean",
        lambda x: x.mean(axis=0),
        Formula("mean of memory's rows", r"\frac{1}{S}\sum_s memory_s", "departs: not in the paper"),
        Cell("ij->j", cells.mean),
        kind="aggregate",
    ),
    Operation(
        "choice",
        None,
        Formula("the token that the search took", r"\hat{y}", "§6.1"),
        kind="choice",
    ),
    Operation(
        "log_of_choice",
        lambda prob, choice: np.log(prob[np.arange(len(choice)), choice]),
        Formula("log prob[choice]", r"\log p(\hat{y})", "§6.1"),
        Cell("ip,i->i", lambda m, prob, token: apply("log", prob)),
    ),
    Operation("parameter", None, Formula("", ""), kind="parameter"),
    Operation("input", None, Formula("ids", "ids", "§3.4"), kind="input"),
)

OPERATIONS = {row.name: row for row in (*WORDS, *ATTENTION, *RECURRENT, *EACH_ROW, *CHOICES)}
OPERATIONS["relu_of_cell"] = replace(
    OPERATIONS["relu"], name="relu_of_cell", formula=Formula("max(0, cell)", r"\max(0,c_t)", SSRU)
)
# A layer norm or a residual connection that a what-if leaves out.
OPERATIONS["left_out"] = replace(OPERATIONS["copy"], formula=Formula("<0>", "x", WHAT_IF))
