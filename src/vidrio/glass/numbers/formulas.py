"""The words of stages.py: how each step is written, its place in the paper, and what comes of it."""

from typing import NamedTuple

from vidrio.glass.paper import variants

WHAT_IF = "what if: not in the paper"
WHOLE_NUMBERS = "departs: the paper has no whole numbers"
LAYER_NORM = "§3.1, layer norm"


class Formula(NamedTuple):
    """How something is made."""

    operation: str  # proof/operations.py
    plain: str
    latex: str
    place: str
    says: str = ""
    kind: str = "value"


def copy(x: str, says: str, place: str = "§3.1", latex: str = "x") -> Formula:
    return Formula("copy", x, latex, place, says)


def sum_of(a: str, b: str, place: str, says: str) -> Formula:
    return Formula("add", f"{a} + {b}", "a+b", place, says)


PARAMETERS = {
    "embed": ("§3.4", "a learned row for each token of the vocabulary"),
    "pos": ("§3.5", "a learned row for each position"),
    "WQ": ("§3.2.2", "what this head asks with"),
    "WK": ("§3.2.2", "what this head is found by"),
    "WV": ("§3.2.2", "what this head passes on"),
    "WO": ("§3.2.2", "mixes the heads' outputs back into one row"),
    "bQ": ("departs: the paper writes no bias", "bias of the queries"),
    "bK": ("departs: the paper writes no bias", "bias of the keys"),
    "bV": ("departs: the paper writes no bias", "bias of the values"),
    "bO": ("departs: the paper writes no bias", "bias of the heads' mix"),
    "W1": ("Eq. 2", "first matrix of the feed-forward network"),
    "b1": ("Eq. 2", "first bias of the feed-forward network"),
    "W2": ("Eq. 2", "second matrix of the feed-forward network"),
    "b2": ("Eq. 2", "second bias of the feed-forward network"),
    "gain": ("§3.1, layer norm's γ", "stretches each column after normalising"),
    "bias": ("§3.1, layer norm's β", "shifts each column after normalising"),
    "W": ("§3.4", "output matrix: one column for each word"),
    "b": ("§3.4", "output bias: one number for each word"),
}

# --- from words to rows -----------------------------------------------------------------------------------------------

SAYS_POSITIONS = "where each token stands"
POSITIONS = {
    "sinusoidal": Formula(
        "sinusoidal_positions",
        "sin(p / 10000^(2i/D)) in column 2i, cos of the same in column 2i+1",
        r"PE_{p,2i}=\sin(p/10000^{2i/d}),\ PE_{p,2i+1}=\cos(p/10000^{2i/d})",
        "§3.5",
        SAYS_POSITIONS,
    ),
    "sinusoidal-halves": Formula(
        "sinusoidal_halves_positions",
        "sin(p / 10000^(2i/D)) in column i, cos of the same in column D/2+i",
        r"PE_{p,i}=\sin(p/10000^{2i/d}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/d})",
        "departs: §3.5 interleaves them",
        SAYS_POSITIONS,
    ),
    "sinusoidal-marian": Formula(
        "sinusoidal_marian_positions",
        "sin(p / 10000^(2i/(D − 2))) in column i, cos of the same in column D/2+i",
        r"PE_{p,i}=\sin(p/10000^{2i/(d-2)}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/(d-2)})",
        "departs: §3.5 has D, and interleaves them",
        SAYS_POSITIONS,
    ),
    "learned": Formula(
        "learned_positions", "row p of the learned table", "P_p", "§3.5, the second kind", SAYS_POSITIONS
    ),
    "none": Formula("none_positions", "0", "0", "departs: §3.5 has positions", SAYS_POSITIONS),
}
SLIPPED = Formula(
    "slipped_positions",
    "sin(p / 10000^(2j/D)) in an even column j, cos in an odd one",
    r"PE_{p,j}=\sin(p/10000^{2j/d}),\ j\text{ even};\ \cos(p/10000^{2j/d}),\ j\text{ odd}",
    WHAT_IF,
    SAYS_POSITIONS,
)
SCALED = Formula("scale", "√D · embedding", r"\sqrt{d_{model}}\,E", "§3.4", "embeddings at the layers' scale")
UNSCALED = SCALED._replace(plain="1 · embedding", latex="E", place="departs: §3.4 has √d_model")

# --- attention --------------------------------------------------------------------------------------------------------

PROJECTED = (
    ("Q", "queries: what each row asks for"),
    ("K", "keys: what each row is found by"),
    ("V", "values: what each row passes on"),
)
SCORES = Formula("rows_dot_rows", "Q Kᵀ", r"QK^\top", "Eq. 1", "how well each query meets each key")
DIVIDED = Formula("divide", "scores / √K", r"\frac{QK^\top}{\sqrt{d_k}}", "Eq. 1", "scores, small enough for softmax")


def divided_by(number: str) -> Formula:
    plain, latex = f"scores / {number}", rf"\frac{{QK^\top}}{{{number}}}"
    return DIVIDED._replace(operation="divide_by", plain=plain, latex=latex, place=WHAT_IF)


MASK = Formula(
    "mask",
    "scaled where column ≤ row, else −∞",
    r"\begin{cases}s_{ij}&j\le i\\-\infty&j>i\end{cases}",
    "§3.2.3",
    "no row may see a later one",
)
MASKS = {
    variants.unmasked: MASK._replace(
        operation="copy", plain="scaled: nothing is hidden", latex="s_{ij}", place=WHAT_IF
    ),
    variants.zero_scores: MASK._replace(
        operation="zero_scores",
        plain="scaled where column ≤ row, else 0",
        latex=r"\begin{cases}s_{ij}&j\le i\\0&j>i\end{cases}",
        place=WHAT_IF,
    ),
}
SOFTMAX = Formula("softmax", "exp(x − max x) / Σ exp(x − max x)", r"\frac{e^{x_i-\max x}}{\sum_j e^{x_j-\max x}}", "")
NAIVE_SOFTMAX = Formula("naive_softmax", "exp(x) / Σ exp(x)", r"\frac{e^{x_i}}{\sum_j e^{x_j}}", "")
HEAD = Formula(
    "rows_dot_columns",
    "weights V",
    r"\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V",
    "Eq. 1",
    "the values, mixed by the weights",
)
CONCAT = Formula(
    "concat",
    "the heads side by side",
    r"\mathrm{Concat}(head_1,\dots,head_h)",
    "§3.2.2",
    "all heads' outputs in one row",
)

# --- feed-forward and layer norm --------------------------------------------------------------------------------------

SAYS_ACTIVE = "what the activation lets through"
ACTIVATIONS = {
    "relu": Formula("relu", "max(0, hidden)", r"\max(0,h)", "Eq. 2", SAYS_ACTIVE),
    "gelu": Formula("gelu", "hidden · Φ(hidden)", r"h\,\Phi(h)", "departs: Eq. 2 has max(0, x)", SAYS_ACTIVE),
    "swish": Formula("swish", "hidden · σ(hidden)", r"h\,\sigma(h)", "departs: Eq. 2 has max(0, x)", SAYS_ACTIVE),
}
MEAN = Formula("mean", "Σ x / D", r"\mu", LAYER_NORM, "each row's mean", "aggregate")
VARIANCE = Formula("variance", "Σ (x − mean)² / D", r"\sigma^2", LAYER_NORM, "each row's variance", "aggregate")
NORMED = Formula(
    "normalise",
    "(x − mean) / √(var + ε)",
    r"\frac{x-\mu}{\sqrt{\sigma^2+\varepsilon}}",
    LAYER_NORM,
    "mean 0, variance 1",
)
SAYS_NORM = "stretched and shifted, as learned"
GAIN_AND_BIAS = Formula("gain_and_bias", "normed · gain + bias", r"\gamma\hat{x}+\beta", LAYER_NORM, SAYS_NORM)

# --- from rows to words -----------------------------------------------------------------------------------------------

CHOICE = Formula("choice", "the token that the search took", r"\hat{y}", "§6.1", "the next token, as chosen", "choice")
SCORE = Formula("log_of_choice", "log prob[choice]", r"\log p(\hat{y})", "§6.1", "log-probability of the chosen token")
SCORE_OF_LOGITS = SCORE._replace(
    operation="log_softmax_of_choice",
    plain="logits[choice] − max logits − log Σ exp(logits − max logits)",
    latex=r"z_{\hat{y}}-\max z-\log\sum_j e^{z_j-\max z}",
)
POOLED = Formula(
    "column_mean",
    "mean of memory's rows",
    r"\frac{1}{S}\sum_s memory_s",
    "departs: not in the paper",
    "the whole sentence as one row",
    "aggregate",
)

# --- whole numbers ----------------------------------------------------------------------------------------------------

ROW_SCALE = Formula(
    "scale_of_rows",
    "max |x| / 127 of each row",
    r"\max|x|/127",
    WHOLE_NUMBERS,
    "what 1 is worth in each row of whole numbers up to 127",
)
WHOLE_ROWS = Formula(
    "whole_by_rows",
    "round(x · (1 / scale))",
    r"\mathrm{round}(x\cdot(1/s_x))",
    WHOLE_NUMBERS,
    "the rows in whole numbers",
)


def weight_scale(what: str) -> Formula:
    """Of each row of a table, of each column of a matrix."""
    plain, says = f"max |W| / 63 of each {what}", f"what 1 is worth in each {what} of whole numbers up to 63"
    return Formula(f"scale_of_weight_{what}s", plain, r"\max|W|/63", WHOLE_NUMBERS, says, "constant")


def whole_weight(what: str) -> Formula:
    operation = {"row": "whole_table", "column": "whole_by_columns"}[what]
    latex = r"\mathrm{round}(W/s_W)"
    return Formula(operation, "round(W / scale)", latex, WHOLE_NUMBERS, "the same in whole numbers", "constant")
