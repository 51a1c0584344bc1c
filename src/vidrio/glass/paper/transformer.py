"""The whole way, top to bottom: ids → embeddings + positions → encoder → decoder → logits → probabilities.

A `Machine` is a model made ready to run: its parameters and the functions that its config chose, picked once here and
never again inside the maths. The same few functions run three shapes: encoder–decoder (translation), an encoder with a
linear layer on top (classification), a decoder alone (free generation).

Paper: §3.1 and Figure 1. Axes: see `config.py`. Read next: attention.py, then numbers/stages.py.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from vidrio.errors import InputError
from vidrio.glass.paper import attention, positions
from vidrio.glass.paper.arithmetic import FLOAT, Arithmetic, Projection
from vidrio.glass.paper.attention import Attention, Kept, Mask, multi_head, see_all
from vidrio.glass.paper.engine import IN_ORDER, WHOLE_NUMBERS
from vidrio.glass.paper.maths import Array, Tap, no_tap
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import check_parameters, output_is_tied, source_table, target_table
from vidrio.model.quantised import WholeNumbers, dequantise, in_whole_numbers, multiplies_in_whole_numbers

SubLayer = Callable[[Array], Array]


@dataclass(frozen=True)
class Machine:
    """A model ready to run. What-if replaces one of these fields; the functions below do not notice."""

    config: ModelConfig
    parameters: Mapping[str, Array]
    source_positions_PD: Array
    target_positions_PD: Array
    arithmetic: Arithmetic
    softmax: Callable[[Array], Array]
    activate: Callable[[Array], Array]
    normalise: Callable[..., Array]
    mask: Mask
    place_norm: Callable[..., Array]
    add_residual: Callable[[Array, Array], Array]
    embedding_scale: float
    score_divisor: float
    whole_parameters: Mapping[str, WholeNumbers] = field(default_factory=dict)  # where it multiplies with those


def build(
    config: ModelConfig, stored: Mapping[str, Array], dtype: type = np.float64, arithmetic: Arithmetic = FLOAT
) -> Machine:
    """Make a model ready: check the parameters, and turn each choice of the config into a function or a table.

    Parameters may be as a file stores them: integers with their scales.
    """
    parameters = dequantise(stored)
    check_parameters(parameters, config)
    p: dict[str, Array] = {name: np.ascontiguousarray(value, dtype=dtype) for name, value in parameters.items()}
    if config.positions == "learned":
        nothing: Array = np.zeros((0, config.d_model), dtype=dtype)
        source_PD, target_PD = p.get("src.pos", nothing), p.get("tgt.pos", nothing)
    else:
        source_PD = target_PD = positions.TABLES[config.positions](config.max_positions, config.d_model).astype(dtype)
    return Machine(
        config=config,
        parameters=p,
        source_positions_PD=source_PD,
        target_positions_PD=target_PD,
        arithmetic=arithmetic,
        softmax=arithmetic.softmax,
        activate=arithmetic.activations[config.activation],
        normalise=arithmetic.normalise,
        mask=attention.causal,
        place_norm={"post": norm_after, "pre": norm_before}[config.norm],
        add_residual=np.add,
        embedding_scale=math.sqrt(config.d_model) if config.scale_embeddings else 1.0,  # §3.4
        score_divisor=attention.divisor(config.d_head),
        whole_parameters=in_whole_numbers(stored, config) if arithmetic is WHOLE_NUMBERS else {},
    )


def build_as_engine(config: ModelConfig, stored: Mapping[str, Array]) -> Machine:
    """The machine whose numbers are the engine's, to the last bit. `stored`: the file's arrays (read_arrays)."""
    return build(config, stored, np.float32, WHOLE_NUMBERS if multiplies_in_whole_numbers(stored) else IN_ORDER)


# --- sub-layers -------------------------------------------------------------------------------------------------------


def norm_after(machine: Machine, x_LD: Array, sub_layer: SubLayer, name: str, tap: Tap) -> Array:
    """LayerNorm(x + Sublayer(x)), as in the paper. §3.1."""
    sum_LD = tap(f"{name}.sum", machine.add_residual(x_LD, sub_layer(x_LD)))
    return norm(machine, sum_LD, f"{name}.norm", tap)


def norm_before(machine: Machine, x_LD: Array, sub_layer: SubLayer, name: str, tap: Tap) -> Array:
    """x + Sublayer(LayerNorm(x)): trains more easily when deep. Listed in docs/departures.md."""
    return tap(f"{name}.sum", machine.add_residual(x_LD, sub_layer(norm(machine, x_LD, f"{name}.norm", tap))))


def norm(machine: Machine, x_LD: Array, name: str, tap: Tap) -> Array:
    p = machine.parameters
    return machine.normalise(x_LD, p[f"{name}.gain"], p[f"{name}.bias"], machine.config.norm_epsilon, name, tap)


def feed_forward(machine: Machine, x_LD: Array, name: str, tap: Tap) -> Array:
    """max(0, x W₁ + b₁) W₂ + b₂, each row by itself. Eq. 2."""
    rows, project = machine.arithmetic.rows, machine.arithmetic.project
    widen = Projection(f"{name}.hidden", f"{name}.W1", f"{name}.b1")
    narrow = Projection(f"{name}.out", f"{name}.W2", f"{name}.b2")
    hidden_LF = tap(f"{name}.hidden", project(machine, rows(x_LD, f"{name}.x", tap), widen, tap))
    active_LF = tap(f"{name}.active", machine.activate(hidden_LF))
    return tap(f"{name}.out", project(machine, rows(active_LF, f"{name}.active", tap), narrow, tap))


# --- the way ----------------------------------------------------------------------------------------------------------


def embed(machine: Machine, side: str, ids: Sequence[int], first: int, tap: Tap) -> Array:
    """A row of the table for each id, times √D (§3.4), plus the row of its position (§3.5), counted from `first`."""
    table, positions_PD = {
        "src": (source_table(machine.config), machine.source_positions_PD),
        "tgt": (target_table(machine.config), machine.target_positions_PD),
    }[side]
    ids_L = tap(f"{side}.ids", np.asarray(ids, dtype=np.int64))
    if first + len(ids_L) > len(positions_PD):
        raise InputError(
            "the text is longer than the model's positions",
            found=f"{first + len(ids_L)} tokens; the model holds {len(positions_PD)}",
            do="shorten or split the text; nothing was cut off silently",
        )
    embedding_LD = tap(f"{side}.embedding", machine.arithmetic.look_up(machine, table, ids_L))
    scaled_LD = tap(f"{side}.scaled", embedding_LD * machine.embedding_scale)
    positions_LD = tap(f"{side}.positions", positions_PD[first : first + len(ids_L)])
    return scaled_LD + positions_LD


def encode(machine: Machine, source_ids: Sequence[int], tap: Tap = no_tap) -> Array:
    """The encoder: source ids → memory. Figure 1, left."""
    x_SD = tap("enc.in", embed(machine, "src", source_ids, 0, tap))
    for n in range(machine.config.n_encoder_layers):
        x_SD = encoder_layer(machine, x_SD, f"enc.{n}", tap)
    if machine.config.norm == "pre":
        x_SD = norm(machine, x_SD, "enc.norm", tap)
    return tap("memory", x_SD)


def encoder_layer(machine: Machine, x_SD: Array, name: str, tap: Tap = no_tap) -> Array:
    """Self-attention, then feed-forward, each with its residual and its norm. §3.1."""
    kind = Attention(f"{name}.self")
    x_SD = machine.place_norm(machine, x_SD, lambda x: multi_head(machine, kind, x, x, tap), f"{name}.self", tap)
    return machine.place_norm(machine, x_SD, lambda x: feed_forward(machine, x, f"{name}.ffn", tap), f"{name}.ffn", tap)


def decode(
    machine: Machine,
    target_ids: Sequence[int],
    memory_SD: Array | None,
    tap: Tap = no_tap,
    kept: Kept | None = None,
) -> Array:
    """The decoder: target ids so far (and memory, unless there is no encoder) → one row for each. Figure 1, right.

    With `kept`, `target_ids` are only the new ones; the earlier ones' keys and values are kept.
    """
    kept = kept or Kept()
    x_TD = tap("dec.in", embed(machine, "tgt", target_ids, kept.length, tap))
    for n in range(machine.config.n_decoder_layers):
        x_TD = decoder_layer(machine, x_TD, memory_SD, f"dec.{n}", tap, kept)
    if machine.config.norm == "pre":
        x_TD = norm(machine, x_TD, "dec.norm", tap)
    return tap("dec.out", x_TD)


def decoder_layer(
    machine: Machine,
    x_TD: Array,
    memory_SD: Array | None,
    name: str,
    tap: Tap = no_tap,
    kept: Kept | None = None,
) -> Array:
    """Masked self-attention, cross-attention to the memory (if there is one), feed-forward. §3.1."""
    kept = kept or Kept()
    to_itself = Attention(f"{name}.self", machine.mask, kept.grow)
    x_TD = machine.place_norm(machine, x_TD, lambda x: multi_head(machine, to_itself, x, x, tap), f"{name}.self", tap)
    if memory_SD is not None:
        across = Attention(f"{name}.cross", see_all, kept.once)
        attend = partial(multi_head, machine, across, y_MD=memory_SD, tap=tap)
        x_TD = machine.place_norm(machine, x_TD, attend, f"{name}.cross", tap)
    return machine.place_norm(machine, x_TD, lambda x: feed_forward(machine, x, f"{name}.ffn", tap), f"{name}.ffn", tap)


def logits(machine: Machine, x_TD: Array, tap: Tap = no_tap) -> Array:
    """One number for each word of the vocabulary: x Wᵒᵘᵗ + b, where Wᵒᵘᵗ may be the embedding, transposed. §3.4."""
    tied = output_is_tied(machine.config)
    to = Projection("out.logits", target_table(machine.config) if tied else "out.W", "out.b", transposed=tied)
    x = machine.arithmetic.rows(x_TD, "out.x", tap)
    return tap("out.logits", machine.arithmetic.project(machine, x, to, tap))


def predict(machine: Machine, x_TD: Array, tap: Tap = no_tap) -> Array:
    """Probabilities of the next word, after each row (of the classes, of one row). §3.4."""
    return tap("out.prob", machine.softmax(logits(machine, x_TD, tap)))


def classify(machine: Machine, source_ids: Sequence[int], tap: Tap = no_tap) -> Array:
    """Encoder only: the mean row of the memory, and a linear layer on top → probabilities of the classes."""
    return predict(machine, tap("out.pooled", machine.arithmetic.column_mean(encode(machine, source_ids, tap))), tap)


def translate_forced(
    machine: Machine, source_ids: Sequence[int], target_ids: Sequence[int], tap: Tap = no_tap
) -> Array:
    """Teacher forcing: all target rows at once → probabilities of the next word after each.

    Thanks to the causal mask, row t is what the decoder computes at decoding step t, so one pass shows every step.
    """
    memory_SD = encode(machine, source_ids, tap) if machine.config.has_encoder else None
    return predict(machine, decode(machine, target_ids, memory_SD, tap), tap)
