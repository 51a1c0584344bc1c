"""What each number is: every quantity of a model declared once, by address.

Whoever draws, explains or checks a number reads this table: its axes, its formula (plain and LaTeX), the paper's
place, and the addresses of what it is made from. A trace refuses a quantity that is not declared here, so the
declaration and the computation cannot part.

`operation` names the one small step that makes the quantity from its inputs; `receipts.py` recomputes it from that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from vidrio.model.config import ModelConfig
from vidrio.model.parameters import output_is_tied, parameter_specs, source_table, target_table


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
    """Every quantity of a model with this config: parameters first, then values in the order of the way."""
    way = _Way(config)
    way.parameters()
    if config.has_encoder:
        way.encoder()
    if config.has_decoder:
        way.decoder()
        way.words()
    else:
        way.classes()
    return way.table


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

_POSITIONS = {
    "sinusoidal": (
        "sin(p / 10000^(2i/D)) in column 2i, cos of the same in column 2i+1",
        r"PE_{p,2i}=\sin(p/10000^{2i/d}),\ PE_{p,2i+1}=\cos(p/10000^{2i/d})",
        "§3.5",
    ),
    "sinusoidal-halves": (
        "sin(p / 10000^(2i/D)) in column i, cos of the same in column D/2+i",
        r"PE_{p,i}=\sin(p/10000^{2i/d}),\ PE_{p,d/2+i}=\cos(p/10000^{2i/d})",
        "departs: §3.5 interleaves them",
    ),
    "learned": ("row p of the learned table", "P_p", "§3.5, the second kind"),
    "none": ("0", "0", "departs: §3.5 has positions"),
}

_ACTIVATIONS = {
    "relu": ("max(0, hidden)", r"\max(0,h)", "Eq. 2"),
    "gelu": ("hidden · Φ(hidden)", r"h\,\Phi(h)", "departs: Eq. 2 has max(0, x)"),
    "swish": ("hidden · σ(hidden)", r"h\,\sigma(h)", "departs: Eq. 2 has max(0, x)"),
}


@dataclass
class _Way:
    """Writes the table along the way of the data. Methods return the address of what they made."""

    config: ModelConfig
    table: dict[str, Stage] = field(default_factory=dict)

    def add(
        self,
        address: str,
        axes: str,
        operation: str,
        inputs: tuple[str, ...],
        formula: str,
        latex: str,
        place: str,
        says: str,
        kind: str = "value",
    ) -> str:
        assert address not in self.table, address
        self.table[address] = Stage(address, axes, kind, operation, inputs, formula, latex, place, says)
        return address

    def parameters(self) -> None:
        for name, (axes, _) in parameter_specs(self.config).items():
            letter = name.rsplit(".", 1)[-1]
            place, says = _PARAMETERS[letter]
            parts = (
                [(f"{name}.h{h}", axes[1:]) for h in range(self.config.n_heads)] if axes[0] == "H" else [(name, axes)]
            )
            for address, part_axes in parts:
                self.add(address, part_axes, "parameter", (), letter, letter, place, says, kind="parameter")

    # --- the two towers -----------------------------------------------------------------------------------------------

    def encoder(self) -> None:
        x = self.embedding("src", "S", source_table(self.config), "enc.in")
        for n in range(self.config.n_encoder_layers):
            x = self.sub_layer(x, f"enc.{n}.self", "S", lambda name, x: self.attention(name, x, x, "S", "S"))
            x = self.sub_layer(x, f"enc.{n}.ffn", "S", lambda name, x: self.feed_forward(name, x, "S"))
        if self.config.norm == "pre":
            x = self.norm("enc.norm", x, "S")
        self.add("memory", "SD", "copy", (x,), x, "memory", "§3.1", "the source, as the decoder reads it")

    def decoder(self) -> None:
        x = self.embedding("tgt", "T", target_table(self.config), "dec.in")
        for n in range(self.config.n_decoder_layers):
            x = self.sub_layer(
                x, f"dec.{n}.self", "T", lambda name, x: self.attention(name, x, x, "T", "T", causal=True)
            )
            if self.config.has_encoder:
                x = self.sub_layer(
                    x, f"dec.{n}.cross", "T", lambda name, x: self.attention(name, x, "memory", "T", "S")
                )
            x = self.sub_layer(x, f"dec.{n}.ffn", "T", lambda name, x: self.feed_forward(name, x, "T"))
        if self.config.norm == "pre":
            x = self.norm("dec.norm", x, "T")
        self.add("dec.out", "TD", "copy", (x,), x, "x", "§3.1", "the decoder's output, a row a step")

    # --- the parts ----------------------------------------------------------------------------------------------------

    def embedding(self, side: str, rows: str, table: str, out: str) -> str:
        word, axes = {"src": "source", "tgt": "target"}[side], f"{rows}D"
        self.add(f"{side}.ids", rows, "input", (), "ids", "ids", "§3.4", f"the {word} tokens' ids", kind="input")
        self.add(
            *(f"{side}.embedding", axes, "lookup", (table, f"{side}.ids"), f"row ids of {table}"),
            *("E_{ids}", "§3.4", f"each {word} token's learned row"),
        )
        scaled = self.config.scale_embeddings
        self.add(
            *(f"{side}.scaled", axes, "scale", (f"{side}.embedding",), f"{'√D' if scaled else '1'} · embedding"),
            *(r"\sqrt{d_{model}}\,E" if scaled else "E", "§3.4" if scaled else "departs: §3.4 has √d_model"),
            "embeddings at the layers' scale",
        )
        formula, latex, place = _POSITIONS[self.config.positions]
        inputs = (f"{side}.pos",) if self.config.positions == "learned" else ()
        operation = self.config.positions.replace("-", "_") + "_positions"
        self.add(f"{side}.positions", axes, operation, inputs, formula, latex, place, "where each token stands")
        return self.sum(out, axes, f"{side}.scaled", f"{side}.positions", "§3.5", "embedding + position: layers' input")

    def sub_layer(self, x: str, name: str, rows: str, make: Callable[[str, str], str]) -> str:
        """A sub-layer with its residual and its norm, in the order of the config."""
        pre = self.config.norm == "pre"
        made = make(name, self.norm(f"{name}.norm", x, rows) if pre else x)
        says = "what came in + what was made of it"
        total = self.sum(f"{name}.sum", f"{rows}D", x, made, "§3.1, residual", says)
        return total if pre else self.norm(f"{name}.norm", total, rows)

    def attention(self, name: str, x: str, y: str, asks: str, asked: str, *, causal: bool = False) -> str:
        """Rows x (axis `asks`) ask rows y (axis `asked`)."""
        heads = tuple(self.head(name, h, x, y, asks, asked, causal) for h in range(self.config.n_heads))
        concat = self.add(
            *(f"{name}.concat", f"{asks}E", "concat", heads, "the heads side by side"),
            *(r"\mathrm{Concat}(head_1,\dots,head_h)", "§3.2.2", "all heads' outputs in one row"),
        )
        bias = f"{name}.bO" if self.config.attention_bias else None
        says = "the heads, mixed back to width D"
        return self.project(f"{name}.out", f"{asks}D", concat, f"{name}.WO", bias, "§3.2.2", says)

    def head(self, name: str, h: int, x: str, y: str, asks: str, asked: str, causal: bool) -> str:
        def at(quantity: str) -> str:
            return f"{name}.{quantity}.h{h}"

        for letter, rows, source, says in (
            ("Q", asks, x, "queries: what each row asks for"),
            ("K", asked, y, "keys: what each row is found by"),
            ("V", asked, y, "values: what each row passes on"),
        ):
            bias = at(f"b{letter}") if self.config.attention_bias else None
            self.project(at(letter), f"{rows}K", source, at(f"W{letter}"), bias, "§3.2.2", says)
        scores = self.add(
            *(at("scores"), asks + asked, "rows_dot_rows", (at("Q"), at("K")), "Q Kᵀ", r"QK^\top"),
            *("Eq. 1", "how well each query meets each key"),
        )
        visible = self.add(
            *(at("scaled"), asks + asked, "divide", (scores,), "scores / √K", r"\frac{QK^\top}{\sqrt{d_k}}"),
            *("Eq. 1", "scores, small enough for softmax"),
        )
        if causal:
            visible = self.add(
                *(at("masked"), asks + asked, "mask", (visible,), "scaled where column ≤ row, else −∞"),
                *(r"\begin{cases}s_{ij}&j\le i\\-\infty&j>i\end{cases}", "§3.2.3", "no row may see a later one"),
            )
        weights = self.softmax(at("weights"), asks + asked, visible, "Eq. 1", "shares taken from each row; sum 1")
        return self.add(
            *(at("head"), f"{asks}K", "rows_dot_columns", (weights, at("V")), "weights V"),
            *(r"\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V", "Eq. 1"),
            "the values, mixed by the weights",
        )

    def feed_forward(self, name: str, x: str, rows: str) -> str:
        hidden = self.project(f"{name}.hidden", f"{rows}F", x, f"{name}.W1", f"{name}.b1", "Eq. 2", "each row, widened")
        formula, latex, place = _ACTIVATIONS[self.config.activation]
        says = "what the activation lets through"
        active = self.add(f"{name}.active", f"{rows}F", self.config.activation, (hidden,), formula, latex, place, says)
        return self.project(
            f"{name}.out", f"{rows}D", active, f"{name}.W2", f"{name}.b2", "Eq. 2", "each row, narrowed again"
        )

    def norm(self, name: str, x: str, rows: str) -> str:
        """Layer norm in its four steps."""
        place = "§3.1, layer norm"
        mean = self.add(
            *(f"{name}.mean", rows, "mean", (x,), "Σ x / D", r"\mu", place, "each row's mean"), kind="aggregate"
        )
        var = self.add(
            *(f"{name}.var", rows, "variance", (x, mean), "Σ (x − mean)² / D", r"\sigma^2", place),
            "each row's variance",
            kind="aggregate",
        )
        normed = self.add(
            *(f"{name}.normed", f"{rows}D", "normalise", (x, mean, var), "(x − mean) / √(var + ε)"),
            *(r"\frac{x-\mu}{\sqrt{\sigma^2+\varepsilon}}", place, "mean 0, variance 1"),
        )
        return self.add(
            *(f"{name}.out", f"{rows}D", "gain_and_bias", (normed, f"{name}.gain", f"{name}.bias")),
            *("normed · gain + bias", r"\gamma\hat{x}+\beta", place, "stretched and shifted, as learned"),
        )

    # --- the ends -----------------------------------------------------------------------------------------------------

    def words(self) -> None:
        c = self.config
        bias, tied = ("out.b" if c.output_bias else None), output_is_tied(c)
        matrix, says = target_table(c) if tied else "out.W", "a number for each word there is"
        self.project("out.logits", "TV", "dec.out", matrix, bias, "§3.4", says, tied=tied)
        self.softmax("out.prob", "TV", "out.logits", "§3.4", "each word's probability to be next")
        self.add(
            *("out.choice", "T", "choice", ("out.prob",), "the token that the search took", r"\hat{y}", "§6.1"),
            "the next token, as chosen",
            kind="choice",
        )
        self.add(
            *("out.score", "T", "log_of_choice", ("out.prob", "out.choice"), "log prob[choice]", r"\log p(\hat{y})"),
            *("§6.1", "log-probability of the chosen token"),
        )

    def classes(self) -> None:
        self.add(
            *("out.pooled", "D", "column_mean", ("memory",), "mean of memory's rows", r"\frac{1}{S}\sum_s memory_s"),
            *("departs: not in the paper", "the whole sentence as one row"),
            kind="aggregate",
        )
        self.project("out.logits", "C", "out.pooled", "out.W", "out.b", "§3.4", "one number for each class")
        self.softmax("out.prob", "C", "out.logits", "§3.4", "the probability of each class")

    # --- formulas that recur ------------------------------------------------------------------------------------------

    def project(
        self, address: str, axes: str, x: str, W: str, b: str | None, place: str, says: str, *, tied: bool = False
    ) -> str:
        name = (W.rsplit(".h", 1)[0] if ".h" in W else W).rsplit(".", 1)[-1]
        formula, latex = f"x {name}{'ᵀ' if tied else ''}", f"x{name}" + (r"^\top" if tied else "")
        inputs = (x, W) if b is None else (x, W, b)
        operation = "project_tied" if tied else "project"
        if b is not None:
            formula, latex = f"{formula} + b", f"{latex}+b"
        return self.add(address, axes, operation, inputs, formula, latex, place, says)

    def softmax(self, address: str, axes: str, x: str, place: str, says: str) -> str:
        formula, latex = "exp(x − max x) / Σ exp(x − max x)", r"\frac{e^{x_i-\max x}}{\sum_j e^{x_j-\max x}}"
        return self.add(address, axes, "softmax", (x,), formula, latex, place, says)

    def sum(self, address: str, axes: str, a: str, b: str, place: str, says: str) -> str:
        return self.add(address, axes, "add", (a, b), f"{a} + {b}", "a+b", place, says)
