"""The words of stages.py: what parameters are called, and how the steps are written that can be chosen."""

from typing import NamedTuple

from vidrio.glass.paper import variants

WHAT_IF = "what if: not in the paper"
EIGHT_BITS = "departs: the paper has no whole numbers"


class Formula(NamedTuple):
    """How something is made, in the words of a stage."""

    operation: str
    plain: str
    latex: str
    place: str


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

POSITIONS = {
    "sinusoidal": Formula(
        "sinusoidal_positions",
        "sin(p / 10000^(2i/D)) in column 2i, cos of the same in column 2i+1",
        r"PE_{p,2i}=\sin(p/10000^{2i/d}),\ PE_{p,2i+1}=\cos(p/10000^{2i/d})",
        "§3.5",
    ),
    "sinusoidal-halves": Formula(
        "sinusoidal_halves_positions",
        "sin(p / 10000^(2i/D)) in column i, cos of the same in column D/2+i",
        r"PE_{p,i}=\sin(p/10000^{2i/d}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/d})",
        "departs: §3.5 interleaves them",
    ),
    "learned": Formula("learned_positions", "row p of the learned table", "P_p", "§3.5, the second kind"),
    "none": Formula("none_positions", "0", "0", "departs: §3.5 has positions"),
}
SLIPPED = Formula(
    "slipped_positions",
    "sin(p / 10000^(2j/D)) in an even column j, cos in an odd one",
    r"PE_{p,j}=\sin(p/10000^{2j/d}),\ j\text{ even};\ \cos(p/10000^{2j/d}),\ j\text{ odd}",
    WHAT_IF,
)
ACTIVATIONS = {
    "relu": Formula("relu", "max(0, hidden)", r"\max(0,h)", "Eq. 2"),
    "gelu": Formula("gelu", "hidden · Φ(hidden)", r"h\,\Phi(h)", "departs: Eq. 2 has max(0, x)"),
    "swish": Formula("swish", "hidden · σ(hidden)", r"h\,\sigma(h)", "departs: Eq. 2 has max(0, x)"),
}
SOFTMAX = Formula("softmax", "exp(x − max x) / Σ exp(x − max x)", r"\frac{e^{x_i-\max x}}{\sum_j e^{x_j-\max x}}", "")
SOFTMAXES = {
    variants.naive_softmax: Formula("naive_softmax", "exp(x) / Σ exp(x)", r"\frac{e^{x_i}}{\sum_j e^{x_j}}", "")
}
MASK = Formula(
    "mask",
    "scaled where column ≤ row, else −∞",
    r"\begin{cases}s_{ij}&j\le i\\-\infty&j>i\end{cases}",
    "§3.2.3",
)
MASKS = {
    variants.unmasked: Formula("copy", "scaled: nothing is hidden", "s_{ij}", WHAT_IF),
    variants.zero_scores: Formula(
        "zero_scores",
        "scaled where column ≤ row, else 0",
        r"\begin{cases}s_{ij}&j\le i\\0&j>i\end{cases}",
        WHAT_IF,
    ),
}
