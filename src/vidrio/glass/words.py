"""Describes every quantity in words, with its formula and the relevant section of the paper."""

from dataclasses import dataclass
from typing import NamedTuple

SSRU = "differs: §3.2.3 has self-attention"
NO_BIAS = "differs: the paper has no bias"
PARAMETERS = {
    "embed": ("§3.4", "a learned row for each token in the vocabulary"),
    "pos": ("§3.5", "a learned row for each position"),
    "WQ": ("§3.2.2", "projects rows to this head's queries"),
    "WK": ("§3.2.2", "projects rows to this head's keys"),
    "WV": ("§3.2.2", "projects rows to this head's values"),
    "WO": ("§3.2.2", "combines the heads' outputs into one row"),
    "bQ": (NO_BIAS, "bias of the queries"),
    "bK": (NO_BIAS, "bias of the keys"),
    "bV": (NO_BIAS, "bias of the values"),
    "bO": (NO_BIAS, "bias of the output projection"),
    "W1": ("Eq. 2", "first matrix of the feed-forward network"),
    "b1": ("Eq. 2", "first bias of the feed-forward network"),
    "W2": ("Eq. 2", "second matrix of the feed-forward network"),
    "b2": ("Eq. 2", "second bias of the feed-forward network"),
    "gain": ("§3.1, layer norm's γ", "scales each column after normalisation"),
    "bias": ("§3.1, layer norm's β", "shifts each column after normalisation"),
    "ssru.W": (SSRU, "computes each row's candidate state"),
    "Wf": (SSRU, "weights of the forget gate"),
    "bf": (SSRU, "bias of the forget gate"),
    "W": ("§3.4", "output matrix: one column per token"),
    "b": ("§3.4", "output bias: one number per token"),
}
MIXED = "the heads, projected to width D"
EMBEDDED = ("§3.5", "embedding + position: layer 0 input")
# Keyed by the last one or two parts of the address. If the section is empty, the operation's section applies.
QUANTITIES = {
    "src.ids": ("", "ids of the source tokens"),
    "tgt.ids": ("", "ids of the target tokens"),
    "src.embedding": ("§3.4", "each source token's learned row"),
    "tgt.embedding": ("§3.4", "each target token's learned row"),
    "src.scaled": ("", "embeddings, scaled for the layers"),
    "tgt.scaled": ("", "embeddings, scaled for the layers"),
    "positions": ("", "encoding of each token's position"),
    "enc.in": EMBEDDED,
    "dec.in": EMBEDDED,
    "Q": ("§3.2.2", "queries: what each row looks for"),
    "K": ("§3.2.2", "keys: what each row is matched by"),
    "V": ("§3.2.2", "values: what each row passes on"),
    "scores": ("", "how well queries match keys"),
    "scaled": ("", "scores, scaled down for softmax"),
    "masked": ("", "scores with later rows hidden"),
    "weights": ("Eq. 1", "attention weights, which sum to 1"),
    "head": ("", "weighted sum of the values"),
    "concat": ("", "outputs of all heads, concatenated"),
    "self.out": ("§3.2.2", MIXED),
    "cross.out": ("§3.2.2", MIXED),
    "gate": (SSRU, "the forget gate, before the sigmoid"),
    "forget": ("", "share of state to keep, from 0 to 1"),
    "candidate": (SSRU, "candidate state of each row"),
    "cell": ("", "the cell's state after each row"),
    "ssru.out": ("", "the positive part of the state"),
    "sum": ("§3.1, residual", "sub-layer input + sub-layer output"),
    "mean": ("", "each row's mean"),
    "var": ("", "each row's variance"),
    "normed": ("", "mean 0, variance 1"),
    "norm.out": ("", "scaled and shifted, as learned"),
    "hidden": ("Eq. 2", "each row, expanded to width F"),
    "active": ("", "after the activation function"),
    "ffn.out": ("Eq. 2", "each row, projected to width D"),
    "memory": ("§3.1", "the source, as seen by the decoder"),
    "dec.out": ("§3.1", "decoder output, one row per step"),
    "out.pooled": ("", "the entire sentence as one row"),
    "out.logits": ("§3.4", "a score for each possible token"),
    "out.prob": ("§3.4", "probability of each next token"),
    "out.choice": ("", "the token that was chosen"),
    "out.score": ("", "log-probability of the chosen token"),
}
OF_CLASSES = {
    "out.logits": ("§3.4", "a score for each class"),
    "out.prob": ("§3.4", "the probability of each class"),
}


class Formula(NamedTuple):
    """The formula of an operation. <0> stands for the first input, <W> for the weight's letter, <b> for the bias."""

    plain: str
    latex: str
    place: str = ""  # section of the paper; overrides the quantity's section
    says: str = ""  # description; overrides the quantity's description


ZERO_START = "differs: the paper has a start token"
MAX_0 = "differs: Eq. 2 has max(0, x)"
LAYER_NORM = "§3.1, layer norm"
WHOLE = "differs: the paper does not quantise"
WHAT_IF = "what-if: not in the paper"
FORMULAS = {
    "parameter": Formula("", ""),
    "input": Formula("ids", "ids", "§3.4"),
    "choice": Formula("the token chosen by the search", r"\hat{y}", "§6.1"),
    "copy": Formula("<0>", "x"),
    "left_out": Formula("<0>", "x", WHAT_IF),
    "add": Formula("<0> + <1>", "a+b"),
    # embeddings and positions
    "lookup": Formula("<0>[ids]", "E_{ids}"),
    "lookup_or_zero": Formula("<0>[ids], or 0 where there is no token", "E_{ids}", ZERO_START),
    "scale": Formula("√D · embedding", r"\sqrt{d_{model}}\,E", "§3.4"),
    "unscaled": Formula("1 · embedding", "E", "differs: §3.4 has √d_model"),
    "sinusoidal_positions": Formula(
        "sin(p / 10000^(2i/D)) in column 2i, cos of the same in column 2i+1",
        r"PE_{p,2i}=\sin(p/10000^{2i/d}),\ PE_{p,2i+1}=\cos(p/10000^{2i/d})",
        "§3.5",
    ),
    "sinusoidal_halves_positions": Formula(
        "sin(p / 10000^(2i/D)) in column i, cos of the same in column D/2+i",
        r"PE_{p,i}=\sin(p/10000^{2i/d}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/d})",
        "differs: §3.5 interleaves them",
    ),
    "sinusoidal_marian_positions": Formula(
        "sin(p / 10000^(2i/(D − 2))) in column i, cos of the same in column D/2+i",
        r"PE_{p,i}=\sin(p/10000^{2i/(d-2)}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/(d-2)})",
        "differs: §3.5 has D, and interleaves them",
    ),
    "learned_positions": Formula("row p of the learned table", "P_p", "§3.5, the learned variant"),
    "none_positions": Formula("0", "0", "differs: §3.5 has positions"),
    # attention
    "project": Formula("x <W><b>", "x<W><b>"),
    "rows_dot_rows": Formula("Q Kᵀ", r"QK^\top", "Eq. 1"),
    "divide": Formula("scores / √d_k", r"\frac{QK^\top}{\sqrt{d_k}}", "Eq. 1"),
    "mask": Formula(
        "scaled where column ≤ row, else −∞", r"\begin{cases}s_{ij}&j\le i\\-\infty&j>i\end{cases}", "§3.2.3"
    ),
    "softmax": Formula("exp(x − max x) / Σ exp(x − max x)", r"\frac{e^{x_i-\max x}}{\sum_j e^{x_j-\max x}}"),
    "rows_dot_columns": Formula("weights V", r"\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V", "Eq. 1"),
    "concat": Formula("the heads, concatenated", r"\mathrm{Concat}(head_1,\dots,head_h)", "§3.2.2"),
    # the recurrent cell
    "sigmoid": Formula("1 / (1 + exp(−<0>))", r"\sigma(x)", SSRU),
    "recurrence": Formula(
        "forget · previous cell + (1 − forget) · candidate", r"f_t\odot c_{t-1}+(1-f_t)\odot\tilde{c}_t", SSRU
    ),
    "relu_of_cell": Formula("max(0, cell)", r"\max(0,c_t)", SSRU),
    # feed-forward and layer norm
    "relu": Formula("max(0, hidden)", r"\max(0,h)", "Eq. 2"),
    "gelu": Formula("hidden · Φ(hidden)", r"h\,\Phi(h)", MAX_0),
    "swish": Formula("hidden · σ(hidden)", r"h\,\sigma(h)", MAX_0),
    "mean": Formula("Σ x / D", r"\mu", LAYER_NORM),
    "variance": Formula("Σ (x − mean)² / D", r"\sigma^2", LAYER_NORM),
    "normalise": Formula("(x − mean) / √(var + ε)", r"\frac{x-\mu}{\sqrt{\sigma^2+\varepsilon}}", LAYER_NORM),
    "gain_and_bias": Formula("normed · gain + bias", r"\gamma\hat{x}+\beta", LAYER_NORM),
    # output
    "project_tied": Formula("x <W>ᵀ<b>", r"x<W>^\top<b>"),
    "column_mean": Formula("mean of memory's rows", r"\frac{1}{S}\sum_s memory_s", "differs: not in the paper"),
    "log_of_choice": Formula("log prob[choice]", r"\log p(\hat{y})", "§6.1"),
    "log_softmax_of_choice": Formula(
        "logits[choice] − max logits − log Σ exp(logits − max logits)",
        r"z_{\hat{y}}-\max z-\log\sum_j e^{z_j-\max z}",
        "§6.1",
    ),
    # int8 products
    "lookup_whole": Formula("<0>[ids] · scale", "E_{ids}"),
    "lookup_whole_or_zero": Formula("<0>[ids] · scale, or 0 where there is no token", "E_{ids}", ZERO_START),
    "scale_of_rows": Formula("max |x| / 127 of each row", r"\max|x|/127", WHOLE, "the int8 scale of each row"),
    "scale_of_weight_rows": Formula("max |W| / 63 of each row", r"\max|W|/63", WHOLE, "the int8 scale of each row"),
    "scale_of_weight_columns": Formula(
        "max |W| / 63 of each column", r"\max|W|/63", WHOLE, "the int8 scale of each column"
    ),
    "whole_by_rows": Formula("round(x · (1 / scale))", r"\mathrm{round}(x\cdot(1/s_x))", WHOLE, "the rows in int8"),
    "whole_by_columns": Formula("round(W / scale)", r"\mathrm{round}(W/s_W)", WHOLE, "the weights in int8"),
    "whole_table": Formula("round(W / scale)", r"\mathrm{round}(W/s_W)", WHOLE, "the weights in int8"),
    "whole_product": Formula("x.whole <W>.whole", r"\bar{x}\bar{W}", WHOLE, "the product of int8 numbers, exact"),
    "whole_product_tied": Formula("x.whole <W>.wholeᵀ", r"\bar{x}\bar{W}", WHOLE, "the product of int8 numbers, exact"),
    "restore": Formula("product · (scale of x · scale of <W>)<b>", r"\bar{x}\bar{W}\,(s_xs_W)<b>"),
}
# The kind of each operation's result, if it is not a value. Constants depend only on parameters.
KINDS = {
    **dict.fromkeys(("mean", "variance", "column_mean"), "aggregate"),
    **dict.fromkeys(("scale_of_weight_rows", "scale_of_weight_columns", "whole_by_columns", "whole_table"), "constant"),
    **{kind: kind for kind in ("parameter", "input", "choice")},
}


@dataclass(frozen=True)
class Stage:
    """The declaration of a quantity: a number, vector or matrix with an address."""

    address: str  # enc.0.self.scores.h1
    axes: str  # one letter per axis, e.g. SS (see config.py); empty for a single number
    operation: str  # name of the operation (see operations.py)
    inputs: tuple[str, ...]  # addresses, in the order of the formula
    formula: str  # in plain text
    latex: str
    place: str  # section of the paper
    says: str  # short description
    kind: str = "value"  # or one of KINDS
    code: str = ""  # the line of NumPy code that computes the quantity

    @property
    def of_the_model(self) -> bool:
        """Whether the quantity belongs to the model, and is therefore the same for every text."""
        return self.kind in ("parameter", "constant")


def words(address: str, axes: str) -> tuple[str, str]:
    """Return the section of the paper and the description of a quantity."""
    if axes == "C" and address in OF_CLASSES:
        return OF_CLASSES[address]
    parts = without_head(address)[0].split(".")
    return QUANTITIES.get(".".join(parts[-2:])) or QUANTITIES.get(parts[-1], ("", ""))


def without_head(address: str) -> tuple[str, str]:
    """Split off the head of an address: enc.0.self.WQ.h1 → enc.0.self.WQ and .h1 (empty if there is no head)."""
    name, dot, head = address.rpartition(".h")
    return (name, dot + head) if head.isdigit() else (address, "")


def part(address: str, of_it: str) -> str:
    """Return the address of a part of a quantity: enc.0.self.WQ.h1 → enc.0.self.WQ.scale.h1."""
    name, head = without_head(address)
    return f"{name}.{of_it}{head}"
