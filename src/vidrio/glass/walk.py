"""The paper's model, from ids to probabilities, in order. Each call to `g` produces a quantity with an address:

    scores = g(f"{name}.scores.h0", "rows_dot_rows", Q, K)    # address, operation (operations.py), inputs

If `g` is a `Machine` (machine.py), it computes values, and the functions below take and return arrays. If `g` is a
`Declaration` (declaration.py), it records quantities, and the functions take and return addresses. Both run the same
code, so the declarations always match the computation.

Models have one of three shapes: encoder–decoder (translation), encoder with a linear layer on top (classification), or
decoder only (generation). See §3.1 and Figure 1 of the paper. The letters of the axes are explained in config.py.
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

Quantity = Any  # an array, or its address
Glass = Any  # a Machine or a Declaration


# --- embeddings, encoder, decoder -------------------------------------------------------------------------------------


def embed(g: Glass, ids: Sequence[int], side: str, first: int = 0) -> Quantity:
    """Compute √D times the embedding of each id (§3.4), plus the row of its position (§3.5).

    `first` is the position of the first id.
    """
    c = g.config
    table, axes, made = (source_table(c), "S", "enc.in") if side == "src" else (target_table(c), "T", "dec.in")
    if first + len(ids) > c.max_positions:
        raise InputError(
            "the text is too long for the model",
            found=f"{first + len(ids)} tokens; the maximum is {c.max_positions}",
            do="shorten or split the text; it was not truncated",
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
    """Return n rows of the position table. §3.5."""
    c, axes = g.config, {"src": "SD", "tgt": "TD"}[side]
    learned = [g.parameter(f"{side}.pos")] if c.positions == "learned" else []
    kind = f"{c.positions.replace('-', '_')}_positions"
    return g(f"{side}.positions", kind, *learned, first, n, c.d_model, g.dtype, axes=axes)


def encode(g: Glass, source_ids: Sequence[int]) -> Quantity:
    """Run the encoder: source ids → memory. Figure 1, left."""
    x = embed(g, source_ids, "src")
    for n in range(g.config.n_encoder_layers):
        x = encoder_layer(g, x, f"enc.{n}")
    if g.config.norm == "pre":
        x = norm(g, x, "enc.norm")
    return g("memory", "copy", x)


def encoder_layer(g: Glass, x: Quantity, name: str) -> Quantity:
    """Apply self-attention, then feed-forward, each with a residual connection and layer norm. §3.1."""
    x = sub_layer(g, x, f"{name}.self", lambda x: multi_head(g, x, x, f"{name}.self"))
    return sub_layer(g, x, f"{name}.ffn", lambda x: feed_forward(g, x, f"{name}.ffn"))


def decode(g: Glass, target_ids: Sequence[int], memory: Quantity | None) -> Quantity:
    """Run the decoder: target ids, and the memory if there is an encoder → one row per id. Figure 1, right.

    If the machine has a cache with the results for earlier ids, `target_ids` contains only the new ids.
    """
    x = embed(g, target_ids, "tgt", g.seen)
    for n in range(g.config.n_decoder_layers):
        x = decoder_layer(g, x, memory, f"dec.{n}")
    if g.config.norm == "pre":
        x = norm(g, x, "dec.norm")
    return g("dec.out", "copy", x)


def decoder_layer(g: Glass, x: Quantity, memory: Quantity | None, name: str) -> Quantity:
    """Apply masked self-attention or a recurrent cell, cross-attention if there is a memory, and feed-forward. §3.1."""
    x = DECODER_CELLS[g.config.decoder_cell](g, x, name)
    if memory is not None:
        x = sub_layer(g, x, f"{name}.cross", lambda x: multi_head(g, x, memory, f"{name}.cross"))
    return sub_layer(g, x, f"{name}.ffn", lambda x: feed_forward(g, x, f"{name}.ffn"))


def masked_self_attention(g: Glass, x: Quantity, name: str) -> Quantity:
    """Apply self-attention in which each row attends only to itself and earlier rows. §3.2.3."""
    return sub_layer(g, x, f"{name}.self", lambda x: multi_head(g, x, x, f"{name}.self", masked=True))


def recurrent_cell(g: Glass, x: Quantity, name: str) -> Quantity:
    """Apply a recurrent cell, which updates its state with each row in turn."""
    return sub_layer(g, x, f"{name}.ssru", lambda x: ssru(g, x, f"{name}.ssru"))


DECODER_CELLS = {"attention": masked_self_attention, "ssru": recurrent_cell}

# --- sub-layers -------------------------------------------------------------------------------------------------------


def sub_layer(g: Glass, x: Quantity, name: str, make: Callable[[Quantity], Quantity]) -> Quantity:
    """Compute LayerNorm(x + Sublayer(x)), as in the paper (§3.1), or x + Sublayer(LayerNorm(x)), which makes deep
    models easier to train (docs/departures.md)."""
    if g.config.norm == "pre":
        return residual(g, x, make(norm(g, x, f"{name}.norm")), name)
    return norm(g, residual(g, x, make(x), name), f"{name}.norm")


def residual(g: Glass, x: Quantity, made: Quantity, name: str) -> Quantity:
    """Compute x + Sublayer(x). §3.1."""
    if "residual" in g.without:
        return g(f"{name}.sum", "left_out", made)
    return g(f"{name}.sum", "add", x, made)


def norm(g: Glass, x: Quantity, name: str) -> Quantity:
    """Compute γ (x − μ) / √(σ² + ε) + β for each row. The divisor of the variance is D, not D − 1."""
    if "layer-norm" in g.without:
        return g(f"{name}.out", "left_out", x)
    mean = g(f"{name}.mean", "mean", x)
    var = g(f"{name}.var", "variance", x, mean)
    normed = g(f"{name}.normed", "normalise", x, mean, var, g.config.norm_epsilon)
    return g(f"{name}.out", "gain_and_bias", normed, g.parameter(f"{name}.gain"), g.parameter(f"{name}.bias"))


def multi_head(g: Glass, x: Quantity, y: Quantity, name: str, *, masked: bool = False) -> Quantity:
    """Compute Concat(head_1, …, head_H) W^O, with queries from x, and keys and values from y. §3.2.2."""
    x_rows = rows(g, x, f"{name}.x")
    y_rows = x_rows if y is x else rows(g, y, f"{name}.y")
    heads = [head(g, x_rows, y_rows, name, h, masked=masked) for h in range(g.config.n_heads)]
    concat = g(f"{name}.concat", "concat", *heads)
    return project(g, rows(g, concat, f"{name}.concat"), f"{name}.out", f"{name}.WO", bias(g, f"{name}.bO"))


def head(g: Glass, x: "Rows", y: "Rows", name: str, h: int, *, masked: bool) -> Quantity:
    """Compute softmax(Q Kᵀ / √K) V (Eq. 1). Without the division by √K, large dot products would saturate the softmax
    (§3.2.1)."""

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
    """Compute max(0, x W₁ + b₁) W₂ + b₂ for each row separately. Eq. 2."""
    hidden = project(g, rows(g, x, f"{name}.x"), f"{name}.hidden", f"{name}.W1", f"{name}.b1")
    active = g(f"{name}.active", g.config.activation, hidden)
    return project(g, rows(g, active, f"{name}.active"), f"{name}.out", f"{name}.W2", f"{name}.b2")


def ssru(g: Glass, x: Quantity, name: str) -> Quantity:
    """Compute max(0, c_t), where c_t = f_t c_{t−1} + (1 − f_t) (x_t W) and f_t = σ(x_t W_f + b_f).

    This is Marian's simpler simple recurrent unit (SSRU), which replaces self-attention. See docs/departures.md.
    """
    x_rows = rows(g, x, f"{name}.x")
    gate = project(g, x_rows, f"{name}.gate", f"{name}.Wf", f"{name}.bf")
    forget = g(f"{name}.forget", "sigmoid", gate)
    candidate = project(g, x_rows, f"{name}.candidate", f"{name}.W")
    return g(f"{name}.out", "relu_of_cell", g.row_by_row(f"{name}.cell", "recurrence", forget, candidate))


# --- products with parameters -----------------------------------------------------------------------------------------


class Int8Rows(NamedTuple):
    """Rows rounded to int8, with one scale per row."""

    whole: Quantity
    scale: Quantity


Rows = Quantity | Int8Rows


def rows(g: Glass, x: Quantity, name: str) -> Rows:
    """Prepare rows for products with parameters: round them to int8, or leave them unchanged in floating point."""
    if not g.whole:
        return x
    scale = g(f"{name}.scale", "scale_of_rows", x)
    return Int8Rows(g(f"{name}.whole", "whole_by_rows", x, scale), scale)


def project(g: Glass, x: Rows, made: str, W: str, b: str = "", tied: str = "") -> Quantity:
    """Compute x W + b, or x Wᵀ + b if W is a tied embedding."""
    bias = [g.parameter(b)] if b else []
    if not g.whole:
        return g(made, f"project{tied}", x, g.parameter(W), *bias)
    product = g(part(made, "product"), f"whole_product{tied}", x.whole, g.parameter(part(W, "whole")))
    return g(made, "restore", product, x.scale, g.parameter(part(W, "scale")), *bias)


def bias(g: Glass, name: str) -> str:
    """Return the name of an attention bias, or "" if the model has none, as in the paper. See docs/departures.md."""
    return name if g.config.attention_bias else ""


# --- output -----------------------------------------------------------------------------------------------------------


def logits(g: Glass, x: Quantity) -> Quantity:
    """Compute the logits for the vocabulary: x Wᵒᵘᵗ + b, where Wᵒᵘᵗ may be the transposed embedding. §3.4."""
    c, x = g.config, rows(g, x, "out.x")
    b = "out.b" if c.output_bias or not c.has_decoder else ""
    if output_is_tied(c):
        return project(g, x, "out.logits", target_table(c), b, tied="_tied")
    return project(g, x, "out.logits", "out.W", b)


def predict(g: Glass, x: Quantity) -> Quantity:
    """Compute next-token probabilities for each row, or class probabilities. §3.4."""
    return g("out.prob", "softmax", logits(g, x))


def take(g: Glass, ids: Sequence[int], logits: Quantity, prob: Quantity) -> Quantity:
    """Record the token that the search chose at each step, and its log-probability."""
    choice = g.given("out.choice", "choice", ids, prob)
    if g.arithmetic is FLOAT:
        return g("out.score", "log_of_choice", prob, choice)
    return g("out.score", "log_softmax_of_choice", logits, choice)


def classify(g: Glass, source_ids: Sequence[int]) -> Quantity:
    """Classify with an encoder alone: mean of the memory's rows → linear layer → class probabilities."""
    return predict(g, g("out.pooled", "column_mean", encode(g, source_ids)))


def translate_forced(g: Glass, source_ids: Sequence[int], target_ids: Sequence[int]) -> Quantity:
    """Compute next-token probabilities for each row of a given target (teacher forcing).

    Because of the causal mask, row t is identical to the row of decoding step t, so a single pass computes all steps.
    """
    memory = encode(g, source_ids) if g.config.has_encoder else None
    return predict(g, decode(g, target_ids, memory))


# --- step by step, with a key–value cache -----------------------------------------------------------------------------


def last_row(machine: Machine, new_ids: Sequence[int], memory: Array | None, cache: KeyValueCache) -> Array:
    """Run the decoder on the ids that follow those in the cache. Returns the last row, with shape 1 × D."""
    x = decode(replace(machine, cache=cache), new_ids, memory)
    cache.length += len(new_ids)
    return x[-1:]


def stepper(machine: Machine, source_ids: Sequence[int] | None) -> Callable[[Sequence[tuple[int, ...]]], Array]:
    """Return a function `step(prefixes) → logits of the next token`, with a key–value cache for each active prefix."""
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
