"""The model in PyTorch, for padded batches of B sentences. `config.py` lists the axes.

This implementation shares no code with `glass/walk.py`. Tests compare the implementations part by part.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from vidrio.errors import InputError
from vidrio.learn.parameters import Parameters
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import output_is_tied, source_table, target_table

# The results of earlier decoding steps, by sub-layer: keys and values, or the state of a recurrent cell.
KeyValueCache = dict[str, tuple[Tensor, ...]]

SHORT = 128  # maximum number of keys for which _Attend is faster than PyTorch's attention on a CPU

# --- dropout, §5.4 ----------------------------------------------------------------------------------------------------


class Dropout:
    """Dropout with a random stream determined by `key` (seed, step, …). With rate 0, as in validation, it does nothing.

    On a CPU, one random byte is drawn per value, because drawing floats would account for a fifth of the step time.
    The rate is therefore rounded to a multiple of 1/256.
    """

    def __init__(self, rate: float = 0.0, key: Sequence[int] = ()) -> None:
        self.threshold = min(255, round(rate * 256))
        self.generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(list(key))))

    def drop(self, x: Tensor) -> Tensor:
        """Apply dropout to x."""
        mask = self.mask(x.shape, x.dtype, x.device)
        return x if mask is None else x * mask

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + y with dropout applied to y, as in a residual connection."""
        mask = self.mask(y.shape, y.dtype, y.device)
        return x + y if mask is None else torch.addcmul(x, y, mask)

    def mask(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor | None:
        """Return a mask with 0 or 1 / (1 − rate) for each value, or None if nothing is dropped."""
        if not self.threshold:
            return None
        keep = 1 - self.threshold / 256
        if device.type != "cpu":
            generator = torch.Generator(device)
            generator.manual_seed(int(self.generator.integers(0, 2**63)))
            return torch.empty(shape, dtype=dtype, device=device).bernoulli_(keep, generator=generator).div_(keep)
        # Compare the bytes in NumPy, because the comparison takes eight times as long in PyTorch.
        size = math.prod(shape)
        draw = self.generator.integers(0, 2**64, size=-(-size // 8), dtype=np.uint64).view(np.uint8)[:size]
        kept = (draw >= self.threshold).view(np.uint8)
        return torch.from_numpy(kept).to(dtype).div_(keep).view(tuple(shape))


NO_DROPOUT = Dropout()


@dataclass(frozen=True)
class Network:
    """The parameters for one step, and the functions that the config selects."""

    config: ModelConfig
    master: Parameters  # the flat vector of all parameters
    parameters: Mapping[str, Tensor]  # cast to the precision of the computation
    tables: Mapping[str, Tensor]  # lookup tables in full precision
    positions_PD: Tensor  # the sinusoidal position table; not used if positions are learned
    activate: Callable[[Tensor], Tensor]
    place_norm: Callable[..., Tensor]
    look_up: Callable[[Tensor, Tensor], Tensor]
    first: Mapping[str, tuple[str, Callable[..., Tensor]]]  # first sub-layer of encoder (enc) and decoder layers
    dropout: Dropout = NO_DROPOUT  # applied to the embeddings and to the output of each sub-layer, §5.4


def build(parameters: Parameters, dtype: torch.dtype | None = None, dropout: Dropout = NO_DROPOUT) -> Network:
    """Build the network for one step. It computes in `dtype`, which defaults to the data type of the parameters."""
    config, flat = parameters.config, parameters.flat
    cast, tables = parameters.leaves(dtype or flat.dtype)
    return Network(
        config=config,
        master=parameters,
        parameters=cast,
        tables=tables,
        positions_PD=positions(config, flat.dtype, flat.device),
        activate={"relu": torch.relu_, "gelu": F.gelu, "swish": F.silu}[config.activation],
        place_norm={"post": norm_after, "pre": norm_before}[config.norm],
        look_up=F.embedding if min(config.special.pad, config.special.start) >= 0 else rows_or_zeros,
        first={"enc": FIRST["attention"], "dec": FIRST[config.decoder_cell]},
        dropout=dropout,
    )


def gradient(net: Network) -> Tensor:
    """Return the gradient after a backward pass, as a flat vector."""
    return net.master.gradient((net.parameters, net.tables))


@lru_cache(maxsize=8)
def positions(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the sinusoidal position table (§3.5), or zeros if positions are learned or absent."""
    table_PD = torch.zeros(config.max_positions, config.d_model, dtype=torch.float64)
    if config.positions.startswith("sinusoidal"):
        pair = torch.arange(config.d_model // 2, dtype=torch.float64)
        columns = config.d_model - 2 if config.positions == "sinusoidal-marian" else config.d_model
        wavelength = 10000.0 ** (2 * pair / columns)
        angle = torch.arange(config.max_positions, dtype=torch.float64)[:, None] / wavelength
        waves = torch.stack([angle.sin(), angle.cos()], dim=-1 if config.positions == "sinusoidal" else 1)
        table_PD = waves.reshape(config.max_positions, config.d_model)
    return table_PD.to(device=device, dtype=dtype)


# --- sub-layers -------------------------------------------------------------------------------------------------------


def norm(net: Network, x: Tensor, name: str) -> Tensor:
    p = net.parameters
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.gain"], p[f"{name}.bias"], net.config.norm_epsilon)


def norm_after(net: Network, x: Tensor, sub_layer: Callable[[Tensor], Tensor], name: str) -> Tensor:
    """Compute LayerNorm(x + Sublayer(x)). §3.1."""
    return norm(net, net.dropout.add(x, sub_layer(x)), f"{name}.norm")


def norm_before(net: Network, x: Tensor, sub_layer: Callable[[Tensor], Tensor], name: str) -> Tensor:
    """Compute x + Sublayer(LayerNorm(x))."""
    return net.dropout.add(x, sub_layer(norm(net, x, f"{name}.norm")))


def linear(rows: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
    """Compute x W + b. `rows` must be 2-D, because other shapes give a view, which autograd copies when it is
    modified."""
    return rows @ W if b is None else torch.addmm(b, rows, W)


def feed_forward(net: Network, x: Tensor, name: str) -> Tensor:
    """Compute max(0, x W₁ + b₁) W₂ + b₂. Eq. 2."""
    p = net.parameters
    hidden = net.activate(linear(x.flatten(0, -2), p[f"{name}.W1"], p[f"{name}.b1"]))
    return linear(hidden, p[f"{name}.W2"], p[f"{name}.b2"]).view_as(x)


def heads(net: Network, x: Tensor, name: str, letters: str) -> tuple[Tensor, ...]:
    """Project B·L·D to B·H·L·K for each of the given letters (Q, K, V) in a single product. §3.2.2."""
    p, (B, L, _) = net.parameters, x.shape
    W = torch.cat([p[f"{name}.W{letter}"] for letter in letters], dim=1)
    b = torch.cat([p[f"{name}.b{letter}"] for letter in letters]) if net.config.attention_bias else None
    y = linear(x.flatten(0, -2), W, b).view(B, L, len(letters), net.config.n_heads, net.config.d_head)
    return y.permute(2, 0, 3, 1, 4).contiguous().unbind(0)


def attend(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
    """Compute softmax(Q Kᵀ / √K) V, Eq. 1, for all sentences and heads. `allowed` broadcasts to B·H·L·M."""
    if q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    wide = torch.promote_types(q.dtype, torch.float32)  # small bfloat16 products are slow in PyTorch
    run = _Attend.apply if k.shape[2] <= SHORT else F.scaled_dot_product_attention
    out: Tensor = run(q.to(wide), k.to(wide), v.to(wide), allowed)
    return out.to(q.dtype)


class _Attend(torch.autograd.Function):
    """Eq. 1 with an explicit derivative. For long inputs, this needs more memory than PyTorch's attention."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
        B, H, L, K = q.shape
        q, k, v = (x.reshape(B * H, -1, K) for x in (q, k, v))
        scores = torch.bmm(q, k.mT).mul_(1 / math.sqrt(K))  # §3.2.1
        if allowed is not None:
            scores.view(B, H, L, -1).masked_fill_(~allowed, -math.inf)
        weights = scores.softmax(-1)
        out = torch.bmm(weights, v)
        ctx.save_for_backward(q, k, v, weights, out)
        return out.view(B, H, L, K)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, out = ctx.saved_tensors
        B, H, _, K = grads[0].shape
        grad = grads[0].reshape(B * H, -1, K)
        # The derivative of softmax is s (g − Σ s g). The sum over M equals grad · out, a sum over K.
        sums = torch.linalg.vecdot(grad, out).unsqueeze(-1)
        grad_scores = torch.bmm(grad, v.mT).sub_(sums).mul_(weights).mul_(1 / math.sqrt(K))
        to_inputs = torch.bmm(grad_scores, k), torch.bmm(grad_scores.mT, q), torch.bmm(weights.mT, grad)
        return (*(x.view(B, H, -1, K) for x in to_inputs), None)


def multi_head(net: Network, q: Tensor, k: Tensor, v: Tensor, name: str, allowed: Tensor | None) -> Tensor:
    """Compute Concat(head_1, …, head_H) W^O. §3.2.2."""
    B, H, L, K = q.shape
    gathered = attend(q, k, v, allowed).transpose(1, 2).reshape(B * L, H * K)
    return linear(gathered, net.parameters[f"{name}.WO"], net.parameters.get(f"{name}.bO")).view(B, L, -1)


def self_attention(net: Network, y: Tensor, name: str, allowed: Tensor | None, cache: KeyValueCache | None) -> Tensor:
    """Apply self-attention. §3.2."""
    q, k, v = heads(net, y, name, "QKV")
    if cache is not None:
        if name in cache:
            k, v = (torch.cat(parts, dim=2) for parts in zip(cache[name], (k, v), strict=True))
        cache[name] = k, v
    return multi_head(net, q, k, v, name, allowed)


def cross_attention(
    net: Network, y: Tensor, name: str, memory_BSD: Tensor, allowed: Tensor | None, cache: KeyValueCache | None
) -> Tensor:
    """Apply attention from the decoder to the encoder's output, the memory. §3.2.3."""
    (q,) = heads(net, y, name, "Q")
    k, v = (cache or {}).get(name) or heads(net, memory_BSD, name, "KV")
    if cache is not None:
        cache[name] = k, v
    return multi_head(net, q, k, v, name, allowed)


def ssru(net: Network, y: Tensor, name: str, allowed: Tensor | None, cache: KeyValueCache | None) -> Tensor:
    """Apply Marian's recurrent cell: max(0, c_t), c_t = f_t c_{t−1} + (1 − f_t) (y_t W), f_t = σ(y_t W_f + b_f).

    The computation uses at least float32, because bfloat16 would round values of f near 1 to 1.
    """
    p, rows = net.parameters, y.flatten(0, -2)
    wide = torch.promote_types(y.dtype, torch.float32)
    forget = linear(rows, p[f"{name}.Wf"], p[f"{name}.bf"]).to(wide).sigmoid().view_as(y)
    written = (1 - forget) * linear(rows, p[f"{name}.W"], None).to(wide).view_as(y)
    (state,) = (cache or {}).get(name) or (torch.zeros_like(written[:, 0]),)
    states = []
    for forget_BD, written_BD in zip(forget.unbind(1), written.unbind(1), strict=True):
        state = torch.addcmul(written_BD, forget_BD, state)
        states.append(state)
    if cache is not None:
        cache[name] = (state,)
    return torch.stack(states, dim=1).relu().to(y.dtype)


FIRST = {"attention": ("self", self_attention), "ssru": ("ssru", ssru)}


# --- forward pass -----------------------------------------------------------------------------------------------------


def rows_or_zeros(ids_BL: Tensor, table: Tensor) -> Tensor:
    """Look up a row for each id. An id of −1, which stands for a token that the model lacks, gives a row of zeros."""
    return F.embedding(ids_BL.clamp(min=0), table) * (ids_BL >= 0).unsqueeze(-1)


def embed(net: Network, ids_BL: Tensor, table: str, side: str, first: int = 0) -> Tensor:
    """Embed ids: √D times the embedding of each id (§3.4), plus the row of its position (§3.5)."""
    rows = net.look_up(ids_BL, net.tables[table])
    table_PD = net.tables.get(f"{side}.pos", net.positions_PD)
    if (last := first + ids_BL.shape[1]) > len(table_PD):
        raise InputError("the text is too long for the model", found=f"{last} tokens, not {len(table_PD)}")
    place_LD = table_PD[first:last]
    scale = math.sqrt(net.config.d_model) if net.config.scale_embeddings else 1.0
    dtype = net.parameters[table].dtype
    return net.dropout.drop(torch.add(place_LD, rows, alpha=scale).to(dtype))


def within_lengths(ids_BL: Tensor, lengths_B: Tensor) -> Tensor | None:
    """Return a mask for all heads and queries that is False at padding positions, or None if there is no padding."""
    if int(lengths_B.min()) == ids_BL.shape[1]:
        return None
    places_L = torch.arange(ids_BL.shape[1], device=ids_BL.device)
    return (places_L < lengths_B[:, None])[:, None, None, :]


def causal(n_queries: int, n_keys: int, device: torch.device) -> Tensor | None:
    """Return a mask that hides later keys from each query (§3.2.3). The queries are at the last positions."""
    if n_queries == 1:
        return None
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def encode(net: Network, source_BS: Tensor, lengths_B: Tensor) -> Tensor:
    """Run the encoder: source ids → memory. Figure 1, left."""
    x = embed(net, source_BS, source_table(net.config), "src")
    allowed = within_lengths(source_BS, lengths_B)
    for n in range(net.config.n_encoder_layers):
        x = layer(net, x, f"enc.{n}", allowed)
    return norm(net, x, "enc.norm") if net.config.norm == "pre" else x


def decode(
    net: Network,
    target_BT: Tensor,
    memory_BSD: Tensor | None = None,
    source_allowed: Tensor | None = None,
    cache: KeyValueCache | None = None,
    first: int = 0,
) -> Tensor:
    """Run the decoder: target ids so far → one row per id. Figure 1, right.

    With a `cache`, `target_BT` contains only the new ids, which start at position `first`. Padding needs no mask
    of its own, because it comes last, where the causal mask hides it.
    """
    x = embed(net, target_BT, target_table(net.config), "tgt", first)
    allowed = causal(target_BT.shape[1], first + target_BT.shape[1], target_BT.device)
    for n in range(net.config.n_decoder_layers):
        memory = None if memory_BSD is None else (memory_BSD, source_allowed)
        x = layer(net, x, f"dec.{n}", allowed, memory, cache)
    return norm(net, x, "dec.norm") if net.config.norm == "pre" else x


def layer(
    net: Network,
    x: Tensor,
    name: str,
    allowed: Tensor | None,
    memory: tuple[Tensor, Tensor | None] | None = None,  # the encoder's output and its mask
    cache: KeyValueCache | None = None,
) -> Tensor:
    """Apply self-attention or a recurrent cell, cross-attention if there is a memory, then feed-forward. §3.1."""
    part, make = net.first[name[:3]]
    first, cross, ffn = f"{name}.{part}", f"{name}.cross", f"{name}.ffn"
    x = net.place_norm(net, x, lambda y: make(net, y, first, allowed, cache), first)
    if memory is not None:
        x = net.place_norm(net, x, lambda y: cross_attention(net, y, cross, *memory, cache), cross)
    return net.place_norm(net, x, lambda y: feed_forward(net, y, ffn), ffn)


def output(net: Network) -> tuple[Tensor, Tensor | None]:
    """Return the output matrix (V·D), which may be the target embedding (§3.4), and the output bias."""
    tied = output_is_tied(net.config)
    W_VD = net.parameters[target_table(net.config)] if tied else net.parameters["out.W"].t()
    return W_VD, net.parameters.get("out.b")


def logits(net: Network, x: Tensor) -> Tensor:
    """Return the logits for the vocabulary, or for the classes. §3.4."""
    return F.linear(x, *output(net))


def pool(x_BSD: Tensor, lengths_B: Tensor) -> Tensor:
    """Mean-pool each sentence's rows, excluding padding, for a classifier."""
    places_S = torch.arange(x_BSD.shape[1], device=x_BSD.device)
    real_BS1 = (places_S < lengths_B[:, None]).unsqueeze(-1)
    return (x_BSD * real_BS1).sum(1) / lengths_B[:, None].to(x_BSD.dtype)
