"""What each number is: every quantity of a model declared once, by address.

Whoever draws, explains or checks a number reads this table: its axes, its formula (plain and LaTeX), the paper's
place, and the addresses of what it is made from. A trace refuses a quantity that is not declared here, so the
declaration and the computation cannot part.

`operation` names the one small step that makes the quantity from its inputs; proof/operations.py has them all.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from vidrio.glass.numbers.formulas import (
    ACTIVATIONS,
    EIGHT_BITS,
    MASK,
    MASKS,
    PARAMETERS,
    POSITIONS,
    SLIPPED,
    SOFTMAX,
    SOFTMAXES,
    WHAT_IF,
    Formula,
)
from vidrio.glass.paper import attention, maths, positions, variants
from vidrio.glass.paper.eight_bits import SUMMED
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import Machine
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import output_is_tied, parameter_specs, source_table, target_table


@dataclass(frozen=True)
class Stage:
    """One quantity: a number, a vector or a matrix that has an address."""

    address: str  # enc.0.self.scores.h1
    axes: str  # SS: one letter an axis, as in config.py; empty for a single number
    operation: str  # how it is made from its inputs
    inputs: tuple[str, ...]  # their addresses, in the formula's order
    formula: str  # plain text
    latex: str
    place: str  # where the paper says so
    says: str  # what it is, in a few words
    # input, parameter, value, aggregate or choice; constant: made from parameters alone, before there is a text
    kind: str = "value"

    @property
    def of_the_model(self) -> bool:
        """Whether it is the same for every text."""
        return self.kind in ("parameter", "constant")

    @property
    def is_output(self) -> bool:
        """Whether the model gives it out: words or classes, and their probabilities."""
        return is_output(self.address)

    @property
    def per_step(self) -> bool:
        """Whether each of its rows is given out at a decoding step of its own, and nothing of it before."""
        return self.is_output and self.axes[:1] == "T"


def is_output(address: str) -> bool:
    return address.startswith("out.")


@dataclass(frozen=True)
class Choices:
    """What a machine may do otherwise than its config says. A function that is not known here is written as the
    paper's: then receipts show that the machine does something else."""

    softmax: Callable[..., Array] = maths.softmax
    mask: Callable[..., Array] = attention.causal
    normalise: Callable[..., Array] = maths.layer_norm
    add_residual: Callable[..., Any] = np.add
    divisor: float | None = None  # instead of √K
    slipped_positions: bool = False
    eight_bits: bool = False


def stages_of(machine: Machine) -> dict[str, Stage]:
    """What each number of this machine is."""
    divisor = machine.score_divisor
    return stages(
        machine.config,
        Choices(
            softmax=machine.softmax,
            mask=machine.mask,
            normalise=machine.normalise,
            add_residual=machine.add_residual,
            divisor=None if np.isclose(divisor, attention.divisor(machine.config.d_head), 1e-12, 0) else divisor,
            slipped_positions=_are_slipped(machine),
            eight_bits=machine.arithmetic.name == "eight bits",
        ),
    )


def _are_slipped(machine: Machine) -> bool:
    """The first rows tell which table it is: every kind differs from every other at position 1."""
    config, rows = machine.config, machine.source_positions_PD[:2]

    def are_made_by(make: Callable[[int, int], Array]) -> bool:
        return np.array_equal(rows, make(len(rows), config.d_model).astype(rows.dtype))

    known = positions.TABLES.get(config.positions)
    return known is not None and not are_made_by(known) and are_made_by(variants.slipped_sinusoidal)


def without_head(address: str) -> tuple[str, str]:
    """enc.0.self.WQ.h1 → enc.0.self.WQ and .h1; without a head the second is empty."""
    name, head = re.fullmatch(r"(.*?)(\.h\d+)?", address).groups()  # type: ignore[union-attr]
    return name, head or ""


@lru_cache(maxsize=32)
def stages(config: ModelConfig, choices: Choices = Choices()) -> dict[str, Stage]:
    """Every quantity of a model with this config: parameters first, then values in the order of the way."""
    way = _Way(config, choices)
    way.parameters()
    if config.has_encoder:
        way.encoder()
    if config.has_decoder:
        way.decoder()
        way.words()
    else:
        way.classes()
    return way.table


@dataclass
class _Way:
    """Writes the table along the way of the data. Methods return the address of what they made."""

    config: ModelConfig
    choices: Choices
    table: dict[str, Stage] = field(default_factory=dict)

    def add(self, stage: Stage) -> str:
        assert stage.address not in self.table, stage.address
        self.table[stage.address] = stage
        return stage.address

    def made(self, address: str, axes: str, how: Formula, inputs: tuple[str, ...], says: str) -> str:
        return self.add(Stage(address, axes, how.operation, inputs, how.plain, how.latex, how.place, says))

    def parameters(self) -> None:
        for name, (axes, _) in parameter_specs(self.config).items():
            letter = name.rsplit(".", 1)[-1]
            place, says = PARAMETERS[letter]
            for head in [f".h{h}" for h in range(self.config.n_heads)] if axes[0] == "H" else [""]:
                address, own = name + head, axes.removeprefix("H")
                self.add(Stage(address, own, "parameter", (), letter, letter, place, says, kind="parameter"))
                if self.choices.eight_bits and axes in SUMMED:
                    self.whole_parameter(name, head, own, by_rows=axes == "VD")

    def whole_parameter(self, name: str, head: str, axes: str, *, by_rows: bool) -> None:
        """A matrix in eight bits: each row (of a table) or column has a factor."""
        what, by = ("row", "rows") if by_rows else ("column", "columns")
        factor = self.add(
            Stage(
                address=f"{name}.factor{head}",
                axes=axes[0] if by_rows else axes[1],
                operation=f"factor_of_{by}",
                inputs=(name + head,),
                formula=f"127 / max |W| of each {what}",
                latex=r"127/\max|W|",
                place=EIGHT_BITS,
                says=f"what makes each {what} whole numbers up to 127",
                kind="constant",
            )
        )
        self.add(
            Stage(
                address=f"{name}.whole{head}",
                axes=axes,
                operation="whole_table" if by_rows else "whole_by_columns",
                inputs=(name + head, factor),
                formula="round(W · factor)",
                latex=r"\mathrm{round}(W\,f_W)",
                place=EIGHT_BITS,
                says="the same in eight bits",
                kind="constant",
            )
        )

    # --- the two towers -----------------------------------------------------------------------------------------------

    def encoder(self) -> None:
        x = self.embedding("src", "S", source_table(self.config), "enc.in")
        for n in range(self.config.n_encoder_layers):
            x = self.sub_layer(x, f"enc.{n}.self", "S", lambda name, x: self.attention(name, x, x, "SS"))
            x = self.sub_layer(x, f"enc.{n}.ffn", "S", lambda name, x: self.feed_forward(name, x, "S"))
        if self.config.norm == "pre":
            x = self.norm("enc.norm", x, "S")
        self.add(Stage("memory", "SD", "copy", (x,), x, "memory", "§3.1", "the source, as the decoder reads it"))

    def decoder(self) -> None:
        x = self.embedding("tgt", "T", target_table(self.config), "dec.in")
        for n in range(self.config.n_decoder_layers):
            x = self.sub_layer(x, f"dec.{n}.self", "T", lambda name, x: self.attention(name, x, x, "TT"))
            if self.config.has_encoder:
                x = self.sub_layer(x, f"dec.{n}.cross", "T", lambda name, x: self.attention(name, x, "memory", "TS"))
            x = self.sub_layer(x, f"dec.{n}.ffn", "T", lambda name, x: self.feed_forward(name, x, "T"))
        if self.config.norm == "pre":
            x = self.norm("dec.norm", x, "T")
        self.add(Stage("dec.out", "TD", "copy", (x,), x, "x", "§3.1", "the decoder's output, a row a step"))

    # --- the parts ----------------------------------------------------------------------------------------------------

    def embedding(self, side: str, rows: str, table: str, out: str) -> str:
        word, axes = {"src": "source", "tgt": "target"}[side], f"{rows}D"
        self.add(Stage(f"{side}.ids", rows, "input", (), "ids", "ids", "§3.4", f"the {word} tokens' ids", kind="input"))
        self.add(
            Stage(
                address=f"{side}.embedding",
                axes=axes,
                operation="lookup_whole" if self.choices.eight_bits else "lookup",
                inputs=(f"{table}.whole", f"{side}.ids", f"{table}.factor")
                if self.choices.eight_bits
                else (table, f"{side}.ids"),
                formula=f"row ids of {table}" + (".whole / its factor" if self.choices.eight_bits else ""),
                latex="E_{ids}",
                place="§3.4",
                says=f"each {word} token's learned row",
            )
        )
        scaled = self.config.scale_embeddings
        self.add(
            Stage(
                address=f"{side}.scaled",
                axes=axes,
                operation="scale",
                inputs=(f"{side}.embedding",),
                formula=f"{'√D' if scaled else '1'} · embedding",
                latex=r"\sqrt{d_{model}}\,E" if scaled else "E",
                place="§3.4" if scaled else "departs: §3.4 has √d_model",
                says="embeddings at the layers' scale",
            )
        )
        inputs = (f"{side}.pos",) if self.config.positions == "learned" else ()
        how = SLIPPED if self.choices.slipped_positions else POSITIONS[self.config.positions]
        self.made(f"{side}.positions", axes, how, inputs, "where each token stands")
        return self.sum(out, axes, f"{side}.scaled", f"{side}.positions", "§3.5", "embedding + position: layers' input")

    def sub_layer(self, x: str, name: str, rows: str, make: Callable[[str, str], str]) -> str:
        """A sub-layer with its residual and its norm, in the order of the config."""
        pre = self.config.norm == "pre"
        made = make(name, self.norm(f"{name}.norm", x, rows) if pre else x)
        says = "what came in + what was made of it"
        if self.choices.add_residual is variants.no_residual:
            total = self.add(Stage(f"{name}.sum", f"{rows}D", "copy", (made,), made, "x", WHAT_IF, says))
        else:
            total = self.sum(f"{name}.sum", f"{rows}D", x, made, "§3.1, residual", says)
        return total if pre else self.norm(f"{name}.norm", total, rows)

    def attention(self, name: str, x: str, y: str, axes: str) -> str:
        """Rows x ask rows y; the axes are theirs."""
        x_rows = self.rows(f"{name}.x", x, axes[0] + "D")
        y_rows = x_rows if y == x else self.rows(f"{name}.y", y, axes[1] + "D")
        heads = tuple(self.head(name, h, x_rows, y_rows, axes) for h in range(self.config.n_heads))
        concat = self.add(
            Stage(
                address=f"{name}.concat",
                axes=f"{axes[0]}E",
                operation="concat",
                inputs=heads,
                formula="the heads side by side",
                latex=r"\mathrm{Concat}(head_1,\dots,head_h)",
                place="§3.2.2",
                says="all heads' outputs in one row",
            )
        )
        parameters = (f"{name}.WO", f"{name}.bO") if self.config.attention_bias else (f"{name}.WO",)
        concat = self.rows(f"{name}.concat", concat, f"{axes[0]}E")
        return self.project(
            f"{name}.out", f"{axes[0]}D", concat, parameters, "§3.2.2", "the heads, mixed back to width D"
        )

    def head(self, name: str, h: int, x: str, y: str, axes: str) -> str:
        def at(quantity: str) -> str:
            return f"{name}.{quantity}.h{h}"

        for letter, rows, source, says in (
            ("Q", axes[0], x, "queries: what each row asks for"),
            ("K", axes[1], y, "keys: what each row is found by"),
            ("V", axes[1], y, "values: what each row passes on"),
        ):
            parameters = (at(f"W{letter}"), at(f"b{letter}")) if self.config.attention_bias else (at(f"W{letter}"),)
            self.project(at(letter), f"{rows}K", source, parameters, "§3.2.2", says)
        how = Formula("rows_dot_rows", "Q Kᵀ", r"QK^\top", "Eq. 1")
        scores = self.made(at("scores"), axes, how, (at("Q"), at("K")), "how well each query meets each key")
        how = Formula("divide", "scores / √K", r"\frac{QK^\top}{\sqrt{d_k}}", "Eq. 1")
        if self.choices.divisor is not None:
            number = f"{self.choices.divisor:g}"
            how = Formula("divide_by", f"scores / {number}", rf"\frac{{QK^\top}}{{{number}}}", WHAT_IF)
        visible = self.made(at("scaled"), axes, how, (scores,), "scores, small enough for softmax")
        if axes == "TT":
            how = MASKS.get(self.choices.mask, MASK)
            visible = self.made(at("masked"), axes, how, (visible,), "no row may see a later one")
        weights = self.softmax(at("weights"), axes, visible, "Eq. 1", "shares taken from each row; sum 1")
        latex = r"\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V"
        how = Formula("rows_dot_columns", "weights V", latex, "Eq. 1")
        return self.made(at("head"), f"{axes[0]}K", how, (weights, at("V")), "the values, mixed by the weights")

    def feed_forward(self, name: str, x: str, rows: str) -> str:
        x = self.rows(f"{name}.x", x, f"{rows}D")
        hidden = self.project(
            f"{name}.hidden", f"{rows}F", x, (f"{name}.W1", f"{name}.b1"), "Eq. 2", "each row, widened"
        )
        how = ACTIVATIONS[self.config.activation]
        active = self.made(f"{name}.active", f"{rows}F", how, (hidden,), "what the activation lets through")
        active = self.rows(active, active, f"{rows}F")
        return self.project(
            f"{name}.out", f"{rows}D", active, (f"{name}.W2", f"{name}.b2"), "Eq. 2", "each row, narrowed again"
        )

    def norm(self, name: str, x: str, rows: str) -> str:
        """Layer norm in its four steps."""
        place, axes = "§3.1, layer norm", f"{rows}D"
        says = "stretched and shifted, as learned"
        if self.choices.normalise is variants.unnormalised:
            return self.add(Stage(f"{name}.out", axes, "copy", (x,), x, "x", WHAT_IF, says))
        mean = self.add(
            Stage(f"{name}.mean", rows, "mean", (x,), "Σ x / D", r"\mu", place, "each row's mean", kind="aggregate")
        )
        operation, formula = "variance", "Σ (x − mean)² / D"
        if self.choices.eight_bits:
            operation, formula = "variance_by_squares", "Σ x² / D − mean²"
        var = self.add(
            Stage(
                address=f"{name}.var",
                axes=rows,
                operation=operation,
                inputs=(x, mean),
                formula=formula,
                latex=r"\sigma^2",
                place=place,
                says="each row's variance",
                kind="aggregate",
            )
        )
        how = Formula("normalise", "(x − mean) / √(var + ε)", r"\frac{x-\mu}{\sqrt{\sigma^2+\varepsilon}}", place)
        normed = self.made(f"{name}.normed", axes, how, (x, mean, var), "mean 0, variance 1")
        how = Formula("gain_and_bias", "normed · gain + bias", r"\gamma\hat{x}+\beta", place)
        return self.made(f"{name}.out", axes, how, (normed, f"{name}.gain", f"{name}.bias"), says)

    # --- the ends -----------------------------------------------------------------------------------------------------

    def words(self) -> None:
        c = self.config
        matrix = target_table(c) if output_is_tied(c) else "out.W"
        x = self.rows("out.x", "dec.out", "TD")
        parameters = (matrix, "out.b") if c.output_bias else (matrix,)
        self.project("out.logits", "TV", x, parameters, "§3.4", "a number for each word there is")
        self.softmax("out.prob", "TV", "out.logits", "§3.4", "each word's probability to be next")
        self.add(
            Stage(
                address="out.choice",
                axes="T",
                operation="choice",
                inputs=("out.prob",),
                formula="the token that the search took",
                latex=r"\hat{y}",
                place="§6.1",
                says="the next token, as chosen",
                kind="choice",
            )
        )
        how = Formula("log_of_choice", "log prob[choice]", r"\log p(\hat{y})", "§6.1")
        self.made("out.score", "T", how, ("out.prob", "out.choice"), "log-probability of the chosen token")

    def classes(self) -> None:
        self.add(
            Stage(
                address="out.pooled",
                axes="D",
                operation="column_mean",
                inputs=("memory",),
                formula="mean of memory's rows",
                latex=r"\frac{1}{S}\sum_s memory_s",
                place="departs: not in the paper",
                says="the whole sentence as one row",
                kind="aggregate",
            )
        )
        x = self.rows("out.x", "out.pooled", "D")
        self.project("out.logits", "C", x, ("out.W", "out.b"), "§3.4", "one number for each class")
        self.softmax("out.prob", "C", "out.logits", "§3.4", "the probability of each class")

    # --- formulas that recur ------------------------------------------------------------------------------------------

    def rows(self, name: str, x: str, axes: str) -> str:
        """Rows made ready to be multiplied: themselves, or `name.whole` and `name.factor`."""
        if not self.choices.eight_bits:
            return x
        how = Formula("factor_of_rows", "127 / max |x| of each row", r"127/\max|x|", EIGHT_BITS)
        self.made(f"{name}.factor", axes[:-1], how, (x,), "what makes each row whole numbers up to 127")
        how = Formula("whole_by_rows", "round(x · factor)", r"\mathrm{round}(x\,f_x)", EIGHT_BITS)
        self.made(f"{name}.whole", axes, how, (x, f"{name}.factor"), "the rows in eight bits")
        return name

    def project(self, address: str, axes: str, x: str, parameters: tuple[str, ...], place: str, says: str) -> str:
        """x W, or x W + b; x Wᵀ where W is a table of embeddings."""
        W, head = without_head(parameters[0])
        letter, b = W.rpartition(".")[2], parameters[1:]
        tied = parameter_specs(self.config)[W].axes == "VD"
        operation, formula, latex = ("_tied", f"{letter}ᵀ", letter + r"^\top") if tied else ("", letter, letter)
        plus, latex_plus = (" + b", "+b") if b else ("", "")
        if not self.choices.eight_bits:
            how = Formula(f"project{operation}", f"x {formula}{plus}", f"x{latex}{latex_plus}", place)
            return self.made(address, axes, how, (x, *parameters), says)
        how = Formula(f"whole_product{operation}", f"x.whole {formula}.whole", "x_8W_8", EIGHT_BITS)
        name = f"{without_head(address)[0]}.product{head}"
        product = self.made(name, axes, how, (f"{x}.whole", f"{W}.whole{head}"), "the same in whole numbers: exact")
        formula = f"product / factor of x / factor of {letter}{plus}"
        how = Formula("restore", formula, r"\frac{x_8W_8}{f_xf_W}" + latex_plus, place)
        return self.made(address, axes, how, (product, f"{x}.factor", f"{W}.factor{head}", *b), says)

    def softmax(self, address: str, axes: str, x: str, place: str, says: str) -> str:
        how = SOFTMAXES.get(self.choices.softmax, SOFTMAX)
        return self.made(address, axes, how._replace(place=place), (x,), says)

    def sum(self, address: str, axes: str, a: str, b: str, place: str, says: str) -> str:
        return self.made(address, axes, Formula("add", f"{a} + {b}", "a+b", place), (a, b), says)
