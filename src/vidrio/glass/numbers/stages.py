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

from vidrio.glass.numbers import formulas
from vidrio.glass.numbers.formulas import Formula
from vidrio.glass.paper import attention, maths, positions, variants
from vidrio.glass.paper.arithmetic import FLOAT, Arithmetic
from vidrio.glass.paper.engine import WHOLE_NUMBERS
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import Machine
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import output_is_tied, parameter_specs, source_table, target_table
from vidrio.model.quantised import SUMMED


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
    arithmetic: Arithmetic = FLOAT


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
            arithmetic=machine.arithmetic,
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

    @property
    def whole(self) -> bool:
        """Whether parameters multiply in whole numbers."""
        return self.choices.arithmetic is WHOLE_NUMBERS

    def add(self, address: str, axes: str, how: Formula, inputs: tuple[str, ...]) -> str:
        assert address not in self.table, address
        self.table[address] = Stage(address, axes, how.operation, inputs, *how[1:])
        return address

    def parameters(self) -> None:
        for name, (axes, _) in parameter_specs(self.config).items():
            letter = name.rpartition(".")[2]
            how = Formula("parameter", letter, letter, *formulas.PARAMETERS[letter], "parameter")
            for head in [f".h{h}" for h in range(self.config.n_heads)] if axes[0] == "H" else [""]:
                own = axes.removeprefix("H")
                self.add(name + head, own, how, ())
                if self.whole and axes in SUMMED:
                    what, axis = ("row", own[0]) if axes == "VD" else ("column", own[1])
                    scale = self.add(f"{name}.scale{head}", axis, formulas.weight_scale(what), (name + head,))
                    self.add(f"{name}.whole{head}", own, formulas.whole_weight(what), (name + head, scale))

    # --- the two towers -----------------------------------------------------------------------------------------------

    def encoder(self) -> None:
        x = self.embedding("src", "S", source_table(self.config), "enc.in")
        for n in range(self.config.n_encoder_layers):
            x = self.sub_layer(x, f"enc.{n}.self", "S", lambda name, x: self.attention(name, x, x, "SS"))
            x = self.sub_layer(x, f"enc.{n}.ffn", "S", lambda name, x: self.feed_forward(name, x, "S"))
        if self.config.norm == "pre":
            x = self.norm("enc.norm", x, "S")
        self.add("memory", "SD", formulas.copy(x, "the source, as the decoder reads it", latex="memory"), (x,))

    def decoder(self) -> None:
        x = self.embedding("tgt", "T", target_table(self.config), "dec.in")
        for n in range(self.config.n_decoder_layers):
            x = self.sub_layer(x, f"dec.{n}.self", "T", lambda name, x: self.attention(name, x, x, "TT"))
            if self.config.has_encoder:
                x = self.sub_layer(x, f"dec.{n}.cross", "T", lambda name, x: self.attention(name, x, "memory", "TS"))
            x = self.sub_layer(x, f"dec.{n}.ffn", "T", lambda name, x: self.feed_forward(name, x, "T"))
        if self.config.norm == "pre":
            x = self.norm("dec.norm", x, "T")
        self.add("dec.out", "TD", formulas.copy(x, "the decoder's output, a row a step"), (x,))

    # --- the parts ----------------------------------------------------------------------------------------------------

    def embedding(self, side: str, rows: str, table: str, out: str) -> str:
        word, axes = {"src": "source", "tgt": "target"}[side], f"{rows}D"
        how = Formula("input", "ids", "ids", "§3.4", f"the {word} tokens' ids", "input")
        ids = self.add(f"{side}.ids", rows, how, ())
        how = Formula("lookup", f"row ids of {table}", "E_{ids}", "§3.4", f"each {word} token's learned row")
        inputs: tuple[str, ...] = (table, ids)
        if self.whole:
            how = how._replace(operation="lookup_whole", plain=f"row ids of {table}.whole · its scale")
            inputs = (f"{table}.whole", ids, f"{table}.scale")
        embedding = self.add(f"{side}.embedding", axes, how, inputs)
        how = formulas.SCALED if self.config.scale_embeddings else formulas.UNSCALED
        scaled = self.add(f"{side}.scaled", axes, how, (embedding,))
        how = formulas.SLIPPED if self.choices.slipped_positions else formulas.POSITIONS[self.config.positions]
        learned = (f"{side}.pos",) if self.config.positions == "learned" else ()
        where = self.add(f"{side}.positions", axes, how, learned)
        how = formulas.sum_of(scaled, where, "§3.5", "embedding + position: layers' input")
        return self.add(out, axes, how, (scaled, where))

    def sub_layer(self, x: str, name: str, rows: str, make: Callable[[str, str], str]) -> str:
        """A sub-layer with its residual and its norm, in the order of the config."""
        pre = self.config.norm == "pre"
        made = make(name, self.norm(f"{name}.norm", x, rows) if pre else x)
        says = "what came in + what was made of it"
        if self.choices.add_residual is variants.no_residual:
            total = self.add(f"{name}.sum", f"{rows}D", formulas.copy(made, says, formulas.WHAT_IF), (made,))
        else:
            total = self.add(f"{name}.sum", f"{rows}D", formulas.sum_of(x, made, "§3.1, residual", says), (x, made))
        return total if pre else self.norm(f"{name}.norm", total, rows)

    def attention(self, name: str, x: str, y: str, axes: str) -> str:
        """Rows x ask rows y; the axes are theirs."""
        x_rows = self.rows(f"{name}.x", x, axes[0] + "D")
        y_rows = x_rows if y == x else self.rows(f"{name}.y", y, axes[1] + "D")
        heads = tuple(self.head(name, h, x_rows, y_rows, axes) for h in range(self.config.n_heads))
        concat = self.add(f"{name}.concat", f"{axes[0]}E", formulas.CONCAT, heads)
        concat = self.rows(concat, concat, f"{axes[0]}E")
        says = "the heads, mixed back to width D"
        return self.project(f"{name}.out", f"{axes[0]}D", concat, self.with_bias(name, "O"), "§3.2.2", says)

    def with_bias(self, name: str, letter: str) -> tuple[str, ...]:
        """A matrix of an attention, and its bias where the model has them."""
        return tuple(f"{name}.{kind}{letter}" for kind in ("Wb" if self.config.attention_bias else "W"))

    def head(self, name: str, h: int, x: str, y: str, axes: str) -> str:
        def at(quantity: str) -> str:
            return f"{name}.{quantity}.h{h}"

        for (letter, says), axis, rows in zip(formulas.PROJECTED, (axes[0], axes[1], axes[1]), (x, y, y), strict=True):
            self.project(at(letter), f"{axis}K", rows, self.with_bias(name, f"{letter}.h{h}"), "§3.2.2", says)
        scores = self.add(at("scores"), axes, formulas.SCORES, (at("Q"), at("K")))
        divisor = self.choices.divisor
        divided = formulas.DIVIDED if divisor is None else formulas.divided_by(f"{divisor:g}")
        visible = self.add(at("scaled"), axes, divided, (scores,))
        if axes == "TT":
            visible = self.add(at("masked"), axes, formulas.MASKS.get(self.choices.mask, formulas.MASK), (visible,))
        weights = self.softmax(at("weights"), axes, visible, "Eq. 1", "shares taken from each row; sum 1")
        return self.add(at("head"), f"{axes[0]}K", formulas.HEAD, (weights, at("V")))

    def feed_forward(self, name: str, x: str, rows: str) -> str:
        x, wide, narrow = self.rows(f"{name}.x", x, f"{rows}D"), f"{rows}F", f"{rows}D"
        hidden = self.project(f"{name}.hidden", wide, x, (f"{name}.W1", f"{name}.b1"), "Eq. 2", "each row, widened")
        active = self.add(f"{name}.active", wide, formulas.ACTIVATIONS[self.config.activation], (hidden,))
        active, says = self.rows(active, active, wide), "each row, narrowed again"
        return self.project(f"{name}.out", narrow, active, (f"{name}.W2", f"{name}.b2"), "Eq. 2", says)

    def norm(self, name: str, x: str, rows: str) -> str:
        """Layer norm in its four steps."""
        axes = f"{rows}D"
        if self.choices.normalise is variants.unnormalised:
            return self.add(f"{name}.out", axes, formulas.copy(x, formulas.SAYS_NORM, formulas.WHAT_IF), (x,))
        mean = self.add(f"{name}.mean", rows, formulas.MEAN, (x,))
        var = self.add(f"{name}.var", rows, formulas.VARIANCE, (x, mean))
        normed = self.add(f"{name}.normed", axes, formulas.NORMED, (x, mean, var))
        return self.add(f"{name}.out", axes, formulas.GAIN_AND_BIAS, (normed, f"{name}.gain", f"{name}.bias"))

    # --- the ends -----------------------------------------------------------------------------------------------------

    def words(self) -> None:
        matrix = target_table(self.config) if output_is_tied(self.config) else "out.W"
        parameters = (matrix, "out.b") if self.config.output_bias else (matrix,)
        x = self.rows("out.x", "dec.out", "TD")
        logits = self.project("out.logits", "TV", x, parameters, "§3.4", "a number for each word there is")
        prob = self.softmax("out.prob", "TV", logits, "§3.4", "each word's probability to be next")
        choice = self.add("out.choice", "T", formulas.CHOICE, (prob,))
        if self.choices.arithmetic is FLOAT:
            self.add("out.score", "T", formulas.SCORE, (prob, choice))
        else:
            self.add("out.score", "T", formulas.SCORE_OF_LOGITS, (logits, choice))

    def classes(self) -> None:
        x = self.rows("out.x", self.add("out.pooled", "D", formulas.POOLED, ("memory",)), "D")
        logits = self.project("out.logits", "C", x, ("out.W", "out.b"), "§3.4", "one number for each class")
        self.softmax("out.prob", "C", logits, "§3.4", "the probability of each class")

    # --- formulas that recur ------------------------------------------------------------------------------------------

    def rows(self, name: str, x: str, axes: str) -> str:
        """Rows made ready to be multiplied: themselves, or `name.whole` and `name.scale`."""
        if not self.whole:
            return x
        scale = self.add(f"{name}.scale", axes[:-1], formulas.ROW_SCALE, (x,))
        self.add(f"{name}.whole", axes, formulas.WHOLE_ROWS, (x, scale))
        return name

    def project(self, address: str, axes: str, x: str, parameters: tuple[str, ...], place: str, says: str) -> str:
        """x W, or x W + b; x Wᵀ where W is a table of embeddings."""
        W, head = without_head(parameters[0])
        letter, b = W.rpartition(".")[2], parameters[1:]
        tied = W in (source_table(self.config), target_table(self.config))
        operation, formula, latex = ("_tied", f"{letter}ᵀ", letter + r"^\top") if tied else ("", letter, letter)
        plus, latex_plus = (" + b", "+b") if b else ("", "")
        if not self.whole:
            how = Formula(f"project{operation}", f"x {formula}{plus}", f"x{latex}{latex_plus}", place, says)
            return self.add(address, axes, how, (x, *parameters))
        plain, exact = f"x.whole {letter}.whole{'ᵀ' * tied}", "the same in whole numbers: exact"
        how = Formula(f"whole_product{operation}", plain, r"\bar{x}\bar{W}", formulas.WHOLE_NUMBERS, exact)
        name = f"{without_head(address)[0]}.product{head}"
        product = self.add(name, axes, how, (f"{x}.whole", f"{W}.whole{head}"))
        formula = f"product · (scale of x · scale of {letter}){plus}"
        how = Formula("restore", formula, r"\bar{x}\bar{W}\,(s_xs_W)" + latex_plus, place, says)
        return self.add(address, axes, how, (product, f"{x}.scale", f"{W}.scale{head}", *b))

    def softmax(self, address: str, axes: str, x: str, place: str, says: str) -> str:
        how = formulas.NAIVE_SOFTMAX if self.choices.softmax is variants.naive_softmax else formulas.SOFTMAX
        return self.add(address, axes, how._replace(place=place, says=says), (x,))
