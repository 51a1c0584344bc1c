"""What each number is: every quantity of a model declared once, by address.

Whoever draws, explains or checks a number reads this table: its axes, its formula (plain and LaTeX), the paper's place, and
the addresses of what it is made from. A trace refuses a quantity that is not declared here, so the table is complete.

`operation` names the one small step that makes the quantity from its inputs; `receipts.py` recomputes it from that name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from vidrio.config import ModelConfig
from vidrio.parameters import output_is_tied, parameter_specs, source_table, target_table


@dataclass(frozen=True)
class Stage:
    """One quantity: a number, a vector or a matrix that has an address."""

    address: str  # enc.0.self.scores.h1
    axes: str  # SS: one letter an axis, as in config.py; empty for a single number
    kind: str  # input, parameter, value, aggregate or choice
    operation: str  # how it is made from its inputs
    inputs: tuple[str, ...]  # their addresses, in the formula's order
    formula: str  # plain text
    latex: str
    place: str  # where the paper says so
    says: str  # what it is, in a few words


@lru_cache(maxsize=8)
def stages(config: ModelConfig) -> dict[str, Stage]:
    """Every quantity of a model with this config, parameters first, then in the order in which they are computed."""
    table: dict[str, Stage] = {}
    for stage in (*_parameters(config), *_way(config)):
        assert stage.address not in table, stage.address
        table[stage.address] = stage
    return table


def _parameters(config: ModelConfig) -> Iterator[Stage]:
    for name, (axes, _) in parameter_specs(config).items():
        letter = name.rsplit(".", 1)[-1]
        parts = [(f"{name}.h{h}", axes[1:]) for h in range(config.n_heads)] if axes[0] == "H" else [(name, axes)]
        for address, part_axes in parts:
            place, says = _PARAMETERS[letter]
            yield Stage(address, part_axes, "parameter", "parameter", (), letter, letter, place, says)


_PARAMETERS = {
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


def _way(config: ModelConfig) -> Iterator[Stage]:
    if config.has_encoder:
        yield from _embedding(config, "src", "S", source_table(config), "enc.in")
        x = "enc.in"
        for n in range(config.n_encoder_layers):
            x = yield from _sub_layer(config, x, f"enc.{n}.self", "S", _attention(config, "S", "S", causal=False))
            x = yield from _sub_layer(config, x, f"enc.{n}.ffn", "S", _feed_forward(config, "S"))
        if config.norm == "pre":
            x = yield from _norm("enc.norm", x, "S")
        yield Stage("memory", "SD", "value", "copy", (x,), x, "memory", "§3.1", "the encoder's output, which the decoder reads")
    if config.has_decoder:
        yield from _embedding(config, "tgt", "T", target_table(config), "dec.in")
        x = "dec.in"
        for n in range(config.n_decoder_layers):
            x = yield from _sub_layer(config, x, f"dec.{n}.self", "T", _attention(config, "T", "T", causal=True))
            if config.has_encoder:
                cross = _attention(config, "T", "S", causal=False, memory="memory")
                x = yield from _sub_layer(config, x, f"dec.{n}.cross", "T", cross)
            x = yield from _sub_layer(config, x, f"dec.{n}.ffn", "T", _feed_forward(config, "T"))
        if config.norm == "pre":
            x = yield from _norm("dec.norm", x, "T")
        yield Stage("dec.out", "TD", "value", "copy", (x,), x, "x", "§3.1", "the decoder's output, a row for each step")
        yield from _output(config)
    else:
        yield Stage(
            "out.pooled", "D", "aggregate", "column_mean", ("memory",), "mean of memory's rows",
            r"\frac{1}{S}\sum_s memory_s", "departs: not in the paper", "the whole sentence as one row",
        )  # fmt: skip
        yield _project("out.logits", "C", "out.pooled", "out.W", "out.b", "§3.4", "one number for each class")
        yield _softmax("out.prob", "C", "out.logits", "§3.4", "the probability of each class")


def _embedding(config: ModelConfig, side: str, rows: str, table: str, out: str) -> Iterator[Stage]:
    word = "source" if side == "src" else "target"
    yield Stage(f"{side}.ids", rows, "input", "input", (), "ids", "ids", "§3.4", f"the {word} tokens' ids")
    yield Stage(
        f"{side}.embedding", f"{rows}D", "value", "lookup", (table, f"{side}.ids"), f"row ids of {table}", "E_{ids}",
        "§3.4", f"the learned row of each {word} token",
    )  # fmt: skip
    factor, latex = ("√D", r"\sqrt{d_{model}}") if config.scale_embeddings else ("1", "1")
    yield Stage(
        f"{side}.scaled", f"{rows}D", "value", "scale", (f"{side}.embedding",), f"{factor} · embedding", rf"{latex}\,E",
        "§3.4" if config.scale_embeddings else "departs: §3.4 has √d_model", "embeddings made as large as the model wants them",
    )  # fmt: skip
    formula, latex, place = {
        "sinusoidal": ("sin(p / 10000^(2i/D)) in column 2i, cos of the same in column 2i+1",
                       r"PE_{p,2i}=\sin(p/10000^{2i/d}),\ PE_{p,2i+1}=\cos(p/10000^{2i/d})", "§3.5"),
        "sinusoidal-halves": ("sin(p / 10000^(2i/D)) in column i, cos of the same in column D/2+i",
                              r"PE_{p,i}=\sin(p/10000^{2i/d}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/d})",
                              "departs: §3.5 interleaves them"),
        "learned": (f"row p of {side}.pos", "P_p", "§3.5, second kind"),
        "none": ("0", "0", "departs: §3.5 has positions"),
    }[config.positions]  # fmt: skip
    inputs = (f"{side}.pos",) if config.positions == "learned" else ()
    yield Stage(
        f"{side}.positions", f"{rows}D", "value", config.positions.replace("-", "_") + "_positions", inputs, formula,
        latex, place, "where each token stands",
    )  # fmt: skip
    yield _add(out, f"{rows}D", f"{side}.scaled", f"{side}.positions", "§3.5", "embedding plus position: what the layers get")


def _sub_layer(config: ModelConfig, x: str, name: str, rows: str, make) -> Iterator[Stage]:  # type: ignore[no-untyped-def]
    """A sub-layer with its residual and its norm, in the order of the config; returns the address of its output."""
    if config.norm == "pre":
        inner = yield from _norm(f"{name}.norm", x, rows)
        yield from make(name, inner)
    else:
        yield from make(name, x)
    yield _add(f"{name}.sum", f"{rows}D", x, f"{name}.out", "§3.1, residual", "what came in, plus what the sub-layer made of it")
    if config.norm == "pre":
        return f"{name}.sum"
    return (yield from _norm(f"{name}.norm", f"{name}.sum", rows))


def _attention(config: ModelConfig, asks: str, asked: str, *, causal: bool, memory: str | None = None):  # type: ignore[no-untyped-def]
    def make(name: str, x: str) -> Iterator[Stage]:
        y = memory or x
        for h in range(config.n_heads):

            def at(quantity: str, h: int = h) -> str:
                return f"{name}.{quantity}.h{h}"

            for letter, rows, source, says in (
                ("Q", asks, x, "queries: what each row asks for"),
                ("K", asked, y, "keys: what each row is found by"),
                ("V", asked, y, "values: what each row passes on"),
            ):
                bias = at(f"b{letter}") if config.attention_bias else None
                yield _project(at(letter), f"{rows}K", source, at(f"W{letter}"), bias, "§3.2.2", says)
            yield Stage(
                at("scores"), asks + asked, "value", "rows_dot_rows", (at("Q"), at("K")), "Q Kᵀ", r"QK^\top", "Eq. 1",
                "how well each query meets each key",
            )  # fmt: skip
            yield Stage(
                at("scaled"), asks + asked, "value", "divide", (at("scores"),), "scores / √K",
                r"\frac{QK^\top}{\sqrt{d_k}}", "Eq. 1", "scores made small enough for the softmax",
            )  # fmt: skip
            visible = at("scaled")
            if causal:
                yield Stage(
                    at("masked"), asks + asked, "value", "mask", (at("scaled"),), "scaled where column ≤ row, else −∞",
                    r"\begin{cases}s_{ij}&j\le i\\-\infty&j>i\end{cases}", "§3.2.3", "no row may see a later one",
                )  # fmt: skip
                visible = at("masked")
            yield _softmax(at("weights"), asks + asked, visible, "Eq. 1", "how much each row takes from each other; rows sum to 1")
            yield Stage(
                at("head"), f"{asks}K", "value", "rows_dot_columns", (at("weights"), at("V")), "weights V",
                r"\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V", "Eq. 1", "the head's output: values, mixed by the weights",
            )  # fmt: skip
        heads = tuple(f"{name}.head.h{h}" for h in range(config.n_heads))
        yield Stage(
            f"{name}.concat", f"{asks}E", "value", "concat", heads, "the heads side by side",
            r"\mathrm{Concat}(head_1,\dots,head_h)", "§3.2.2", "all heads' outputs in one row",
        )  # fmt: skip
        bias = f"{name}.bO" if config.attention_bias else None
        yield _project(f"{name}.out", f"{asks}D", f"{name}.concat", f"{name}.WO", bias, "§3.2.2", "the heads, mixed back to width D")

    return make


def _feed_forward(config: ModelConfig, rows: str):  # type: ignore[no-untyped-def]
    def make(name: str, x: str) -> Iterator[Stage]:
        yield _project(f"{name}.hidden", f"{rows}F", x, f"{name}.W1", f"{name}.b1", "Eq. 2", "each row, widened")
        formula, latex, place = {
            "relu": ("max(0, hidden)", r"\max(0,h)", "Eq. 2"),
            "gelu": ("hidden · Φ(hidden)", r"h\,\Phi(h)", "departs: Eq. 2 has max(0, x)"),
            "swish": ("hidden · σ(hidden)", r"h\,\sigma(h)", "departs: Eq. 2 has max(0, x)"),
        }[config.activation]
        yield Stage(
            f"{name}.active", f"{rows}F", "value", config.activation, (f"{name}.hidden",), formula, latex, place,
            "what the activation lets through",
        )  # fmt: skip
        yield _project(f"{name}.out", f"{rows}D", f"{name}.active", f"{name}.W2", f"{name}.b2", "Eq. 2", "each row, narrowed again")

    return make


def _norm(name: str, x: str, rows: str) -> Iterator[Stage]:
    """Layer norm in its four steps; returns the address of its output."""
    yield Stage(f"{name}.mean", rows, "aggregate", "mean", (x,), "Σ x / D", r"\mu", "§3.1, layer norm", "each row's mean")
    yield Stage(
        f"{name}.var", rows, "aggregate", "variance", (x, f"{name}.mean"), "Σ (x − mean)² / D", r"\sigma^2",
        "§3.1, layer norm", "each row's variance",
    )  # fmt: skip
    yield Stage(
        f"{name}.normed", f"{rows}D", "value", "normalise", (x, f"{name}.mean", f"{name}.var"),
        "(x − mean) / √(var + ε)", r"\frac{x-\mu}{\sqrt{\sigma^2+\varepsilon}}", "§3.1, layer norm", "mean 0, variance 1",
    )  # fmt: skip
    yield Stage(
        f"{name}.out", f"{rows}D", "value", "gain_and_bias", (f"{name}.normed", f"{name}.gain", f"{name}.bias"),
        "normed · gain + bias", r"\gamma\hat{x}+\beta", "§3.1, layer norm", "stretched and shifted by learned numbers",
    )  # fmt: skip
    return f"{name}.out"


def _output(config: ModelConfig) -> Iterator[Stage]:
    bias = "out.b" if config.output_bias else None
    tied = output_is_tied(config)
    matrix = target_table(config) if tied else "out.W"
    yield _project("out.logits", "TV", "dec.out", matrix, bias, "§3.4", "one number for each word of the vocabulary", tied=tied)
    yield _softmax("out.prob", "TV", "out.logits", "§3.4", "the probability of each word to come next")
    yield Stage(
        "out.choice", "T", "choice", "choice", ("out.prob",), "the token that the search took", r"\hat{y}", "§6.1",
        "the next token, as chosen",
    )  # fmt: skip
    yield Stage(
        "out.score", "T", "value", "log_of_choice", ("out.prob", "out.choice"), "log prob[choice]", r"\log p(\hat{y})",
        "§6.1", "log-probability of the chosen token",
    )  # fmt: skip


def _project(address: str, axes: str, x: str, W: str, b: str | None, place: str, says: str, *, tied: bool = False) -> Stage:
    name = (W.rsplit(".h", 1)[0] if ".h" in W else W).rsplit(".", 1)[-1]
    formula = f"x {name}{'ᵀ' if tied else ''}" + (" + b" if b else "")
    latex = f"x{name}" + (r"^\top" if tied else "") + ("+b" if b else "")
    operation = "project_tied" if tied else "project"
    inputs = (x, W) if b is None else (x, W, b)
    return Stage(address, axes, "value", operation, inputs, formula, latex, place, says)


def _softmax(address: str, axes: str, x: str, place: str, says: str) -> Stage:
    formula = "exp(x − max x) / Σ exp(x − max x)"
    latex = r"\frac{e^{x_i-\max x}}{\sum_j e^{x_j-\max x}}"
    return Stage(address, axes, "value", "softmax", (x,), formula, latex, place, says)


def _add(address: str, axes: str, a: str, b: str, place: str, says: str) -> Stage:
    return Stage(address, axes, "value", "add", (a, b), f"{a} + {b}", "a + b", place, says)
