"""The paper's model, from ids to probabilities, top to bottom. Every call of `g` names a quantity and makes it.

    scores = g(f"{name}.scores.h0", "rows_dot_rows", Q, K)    # address, operation (operations.py), inputs

With a `Machine` (machine.py), g computes, and these functions take and return arrays. With a `Declaration`
(declaration.py), it records all quantities, and they take and return addresses. So both always agree.

There are three shapes: encoder–decoder (translation), an encoder with a linear layer on top (classification), a decoder
alone (generation). Paper: §3.1 and Figure 1. The letters of the axes: see config.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from vidrio.errors import InputError
from vidrio.glass.engine import FLOAT
from vidrio.glass.machine import KeyValueCache, Machine
from vidrio.glass.maths import Array
from vidrio.glass.words import part
from vidrio.model.parameters import output_is_tied, source_table, target_table

Quantity = Any  # an array, or the address of one
Glass = Any  # a Machine or a Declaration


# --- embeddings, encoder, decoder -------------------------------------------------------------------------------------


def embed(g: Glass, ids: Sequence[int], side: str, first: int = 0) -> Quantity:
    """√D times a row of the embedding for each id (§3.4), plus the row of its position (§3.5), counted from `first`."""
    c = g.config
    table, axes, made = (source_table(c), "S", "enc.in") if side == "src" else (target_table(c), "T", "dec.in")
    if first + len(ids) > c.max_positions:
        raise InputError(
            "the text is longer than the model's positions",
            found=f"{first + len(ids)} tokens; the model holds {c.max_positions}",
            do="shorten or split the text; nothing was cut off silently",
        )
    ids = g.given(f"{side}.ids", "input", ids, axes=axes)
    or_zero = "_or_zero" if side == "tgt" and c.special.start < 0 else ""
    if g.whole:
        whole, scale = g.parameter(f"{table}.whole"), g.parameter(f"{table}.scale")
        embedding = g(f"{side}.embedding", f"lookup_whole{or_zero}", whole, ids, scale)
    else:
        embedding = g(f"{side}.embedding", f"lookup{or_zero}", g.parameter(table), ids)
    scaled = g(f"{side}.scaled", "scale" if c.scale_embeddings else "unscaled", embedding, c.d_model)  # · √d_model
    return g(made, "add", scaled, positions(g, side, g.count(ids), first))


def positions(g: Glass, side: str, n: int, first: int = 0) -> Quantity:
    """n rows of the position table. §3.5."""
    c, axes = g.config, {"src": "SD", "tgt": "TD"}[side]
    learned = [g.parameter(f"{side}.pos")] if c.positions == "learned" else []
    kind = f"{c.positions.replace('-', '_')}_positions"
    return g(f"{side}.positions", kind, *learned, first, n, c.d_model, g.dtype, axes=axes)


def encode(g: Glass, source_ids: Sequence[int]) -> Quantity:
    """The encoder: source ids → memory. Figure 1, left."""
    x = embed(g, source_ids, "src")
    for n in range(g.config.n_encoder_layers):
        x = encoder_layer(g, x, f"enc.{n}")
    if g.config.norm == "pre":
        x = norm(g, x, "enc.norm")
    return g("memory", "copy", x)


def encoder_layer(g: Glass, x: Quantity, name: str) -> Quantity:
    """Self-attention, then feed-forward, each with its residual connection and norm. §3.1."""
    x = sub_layer(g, x, f"{name}.self", lambda x: multi_head(g, x, x, f"{name}.self"))
    return sub_layer(g, x, f"{name}.ffn", lambda x: feed_forward(g, x, f"{name}.ffn"))


def decode(g: Glass, target_ids: Sequence[int], memory: Quantity | None) -> Quantity:
    """The decoder: target ids so far (and memory, unless there is no encoder) → one row for each. Figure 1, right.

    On a machine with a cache, `target_ids` are only the new ones; the cache has the results of earlier ones.
    """
    x = embed(g, target_ids, "tgt", g.seen)
    for n in range(g.config.n_decoder_layers):
        x = decoder_layer(g, x, memory, f"dec.{n}")
    if g.config.norm == "pre":
        x = norm(g, x, "dec.norm")
    return g("dec.out", "copy", x)


def decoder_layer(g: Glass, x: Quantity, memory: Quantity | None, name: str) -> Quantity:
    """Masked self-attention or a recurrent cell, cross-attention to the memory if there is one, feed-forward. §3.1."""
    x = DECODER_CELLS[g.config.decoder_cell](g, x, name)
    if memory is not None:
        x = sub_layer(g, x, f"{name}.cross", lambda x: multi_head(g, x, memory, f"{name}.cross"))
    return sub_layer(g, x, f"{name}.ffn", lambda x: feed_forward(g, x, f"{name}.ffn"))


def masked_self_attention(g: Glass, x: Quantity, name: str) -> Quantity:
    """Each row reads the rows up to itself. §3.2.3."""
    return sub_layer(g, x, f"{name}.self", lambda x: multi_head(g, x, x, f"{name}.self", masked=True))


def recurrent_cell(g: Glass, x: Quantity, name: str) -> Quantity:
    """Each row reads the state that earlier rows left, and updates it."""
    return sub_layer(g, x, f"{name}.ssru", lambda x: ssru(g, x, f"{name}.ssru"))


DECODER_CELLS = {"attention": masked_self_attention, "ssru": recurrent_cell}

# --- sub-layers -------------------------------------------------------------------------------------------------------


def sub_layer(g: Glass, x: Quantity, name: str, make: Callable[[Quantity], Quantity]) -> Quantity:
    """LayerNorm(x + Sublayer(x)), as in the paper (§3.1); or x + Sublayer(LayerNorm(x)), which trains more easily when
    deep (docs/departures.md)."""
    if g.config.norm == "pre":
        return residual(g, x, make(norm(g, x, f"{name}.norm")), name)
    return norm(g, residual(g, x, make(x), name), f"{name}.norm")


def residual(g: Glass, x: Quantity, made: Quantity, name: str) -> Quantity:
    """x + Sublayer(x). §3.1."""
    if "residual" in g.without:
        return g(f"{name}.sum", "left_out", made)
    return g(f"{name}.sum", "add", x, made)


def norm(g: Glass, x: Quantity, name: str) -> Quantity:
    """γ (x − μ) / √(σ² + ε) + β, with μ and σ² of each row; σ² divides by D, not by D − 1."""
    if "layer-norm" in g.without:
        return g(f"{name}.out", "left_out", x)
    mean = g(f"{name}.mean", "mean", x)
    var = g(f"{name}.var", "variance", x, mean)
    normed = g(f"{name}.normed", "normalise", x, mean, var, g.config.norm_epsilon)
    return g(f"{name}.out", "gain_and_bias", normed, g.parameter(f"{name}.gain"), g.parameter(f"{name}.bias"))


def multi_head(g: Glass, x: Quantity, y: Quantity, name: str, *, masked: bool = False) -> Quantity:
    """Rows x query rows y: Concat(head_1, …, head_H) W^O. §3.2.2. `masked`: no row sees a later one."""
    x_rows = rows(g, x, f"{name}.x")
    y_rows = x_rows if y is x else rows(g, y, f"{name}.y")
    heads = [head(g, x_rows, y_rows, name, h, masked=masked) for h in range(g.config.n_heads)]
    concat = g(f"{name}.concat", "concat", *heads)
    return project(g, rows(g, concat, f"{name}.concat"), f"{name}.out", f"{name}.WO", bias(g, f"{name}.bO"))


def head(g: Glass, x: "Rows", y: "Rows", name: str, h: int, *, masked: bool) -> Quantity:
    """softmax(Q Kᵀ / √K) V. Eq. 1. Large dot products would saturate the softmax, hence √K. §3.2.1."""

    def at(quantity: str) -> str:
        return f"{name}.{quantity}.h{h}"

    def projected(letter: str, rows: Rows) -> Quantity:
        return project(g, rows, at(letter), at(f"W{letter}"), bias(g, at(f"b{letter}")))

    def of_all_rows(letter: str) -> Quantity:
        return g.all_rows(at(letter), lambda: projected(letter, y), grow=masked)

    Q, K, V = projected("Q", x), of_all_rows("K"), of_all_rows("V")
    scores = g(at("scores"), "rows_dot_rows", Q, K)
    visible = g(at("scaled"), "divide", scores, g.config.d_head)
    if masked:
        visible = g(at("masked"), "mask", visible)
    weights = g(at("weights"), "softmax", visible)
    return g(at("head"), "rows_dot_columns", weights, V)


def feed_forward(g: Glass, x: Quantity, name: str) -> Quantity:
    """max(0, x W₁ + b₁) W₂ + b₂, for each row separately. Eq. 2."""
    hidden = project(g, rows(g, x, f"{name}.x"), f"{name}.hidden", f"{name}.W1", f"{name}.b1")
    active = g(f"{name}.active", g.config.activation, hidden)
    return project(g, rows(g, active, f"{name}.active"), f"{name}.out", f"{name}.W2", f"{name}.b2")


def ssru(g: Glass, x: Quantity, name: str) -> Quantity:
    """max(0, c_t), where c_t = f_t c_{t−1} + (1 − f_t) (x_t W) and f_t = σ(x_t W_f + b_f): Marian's simpler simple
    recurrent unit, which replaces self-attention. docs/departures.md."""
    x_rows = rows(g, x, f"{name}.x")
    gate = project(g, x_rows, f"{name}.gate", f"{name}.Wf", f"{name}.bf")
    forget = g(f"{name}.forget", "sigmoid", gate)
    candidate = project(g, x_rows, f"{name}.candidate", f"{name}.W")
    return g(f"{name}.out", "relu_of_cell", g.row_by_row(f"{name}.cell", "recurrence", forget, candidate))


# --- products with parameters -----------------------------------------------------------------------------------------


class Int8Rows(NamedTuple):
    """Rows rounded to int8, with their scales."""

    whole: Quantity
    scale: Quantity


Rows = Quantity | Int8Rows


def rows(g: Glass, x: Quantity, name: str) -> Rows:
    """Rows as they are multiplied by parameters: in floating point, or rounded to int8."""
    if not g.whole:
        return x
    scale = g(f"{name}.scale", "scale_of_rows", x)
    return Int8Rows(g(f"{name}.whole", "whole_by_rows", x, scale), scale)


def project(g: Glass, x: Rows, made: str, W: str, b: str = "", tied: str = "") -> Quantity:
    """x W + b; x Wᵀ if W is a tied embedding."""
    bias = [g.parameter(b)] if b else []
    if not g.whole:
        return g(made, f"project{tied}", x, g.parameter(W), *bias)
    product = g(part(made, "product"), f"whole_product{tied}", x.whole, g.parameter(part(W, "whole")))
    return g(made, "restore", product, x.scale, g.parameter(part(W, "scale")), *bias)


def bias(g: Glass, name: str) -> str:
    """An attention's bias; the paper has none. docs/departures.md."""
    return name if g.config.attention_bias else ""


# --- from rows to words -----------------------------------------------------------------------------------------------


def logits(g: Glass, x: Quantity) -> Quantity:
    """The logits of the vocabulary: x Wᵒᵘᵗ + b, where Wᵒᵘᵗ may be the transposed embedding. §3.4."""
    c, x = g.config, rows(g, x, "out.x")
    b = "out.b" if c.output_bias or not c.has_decoder else ""
    if output_is_tied(c):
        return project(g, x, "out.logits", target_table(c), b, tied="_tied")
    return project(g, x, "out.logits", "out.W", b)


def predict(g: Glass, x: Quantity) -> Quantity:
    """Probabilities of the next token, after each row (of the classes, for one row). §3.4."""
    return g("out.prob", "softmax", logits(g, x))


def take(g: Glass, ids: Sequence[int], logits: Quantity, prob: Quantity) -> Quantity:
    """The tokens that the search chose after each row, and their log-probabilities."""
    choice = g.given("out.choice", "choice", ids, prob)
    if g.arithmetic is FLOAT:
        return g("out.score", "log_of_choice", prob, choice)
    return g("out.score", "log_softmax_of_choice", logits, choice)


def classify(g: Glass, source_ids: Sequence[int]) -> Quantity:
    """Encoder only: the mean row of the memory, and a linear layer → probabilities of the classes."""
    return predict(g, g("out.pooled", "column_mean", encode(g, source_ids)))


def translate_forced(g: Glass, source_ids: Sequence[int], target_ids: Sequence[int]) -> Quantity:
    """Teacher forcing: all target rows at once → probabilities of the next token after each.

    Because of the causal mask, row t is what the decoder computes at decoding step t, so one pass shows every step.
    """
    memory = encode(g, source_ids) if g.config.has_encoder else None
    return predict(g, decode(g, target_ids, memory))


# --- step by step, with a key–value cache -----------------------------------------------------------------------------


def last_row(machine: Machine, new_ids: Sequence[int], memory: Array | None, cache: KeyValueCache) -> Array:
    """The decoder's row after the last of `new_ids`, 1·D; they follow the tokens in the cache."""
    x = decode(replace(machine, cache=cache), new_ids, memory)
    cache.length += len(new_ids)
    return x[-1:]


def stepper(machine: Machine, source_ids: Sequence[int] | None) -> Callable[[Sequence[tuple[int, ...]]], Array]:
    """`step(prefixes) → logits of the next token`, with a key–value cache for every live prefix."""
    memory = encode(machine, source_ids) if machine.config.has_encoder and source_ids is not None else None
    caches: dict[tuple[int, ...], KeyValueCache] = {}

    def step(prefixes: Sequence[tuple[int, ...]]) -> Array:
        nonlocal caches
        rows, live = [], {}
        for prefix in prefixes:
            live[prefix] = cache = caches.get(prefix[:-1], KeyValueCache()).branch()
            rows.append(last_row(machine, prefix[cache.length :], memory, cache))
        caches = live
        return logits(machine, np.concatenate(rows))

    return step
