"""Convert parameters between our names and layouts and those of Hugging Face and Marian.

We compute x W + b, with one matrix per head. Both other formats concatenate the heads. Hugging Face stores Wᵀ, and
Marian does the same for integer matrices. Embeddings are never transposed.
"""

import math

import numpy as np

from vidrio.model.parameters import ParameterSpec

SIDES = {"enc": "encoder", "dec": "decoder"}
# Our name: the names in Hugging Face and Marian.
TABLES = {
    "embed": ("model.shared.weight", "Wemb"),
    "src.embed": ("model.encoder.embed_tokens.weight", "encoder_Wemb"),
    "tgt.embed": ("model.decoder.embed_tokens.weight", "decoder_Wemb"),
    "src.pos": ("model.encoder.embed_positions.weight", ""),
    "tgt.pos": ("model.decoder.embed_positions.weight", ""),
    "out.W": ("lm_head.weight", "decoder_ff_logit_out_W"),
    "out.b": ("final_logits_bias", "decoder_ff_logit_out_b"),
}
# Our name of a sub-layer: Hugging Face's prefixes for the sub-layer and its norm, then Marian's prefixes.
PARTS = {
    "self": ("self_attn.", "self_attn_layer_norm.", "self_", "self_Wo_ln_"),
    "cross": ("encoder_attn.", "encoder_attn_layer_norm.", "context_", "context_Wo_ln_"),
    "ffn": ("", "final_layer_norm.", "ffn_", "ffn_ffn_ln_"),
    "ssru": ("", "", "rnn_", "rnn_ffn_ln_"),
}
HF_PROJECTIONS = {"Q": "q_proj", "K": "k_proj", "V": "v_proj", "O": "out_proj", "1": "fc1", "2": "fc2"}


def hf_name(name: str) -> str:
    """Return Hugging Face's name for a parameter: enc.0.self.WQ → model.encoder.layers.0.self_attn.q_proj.weight."""
    if name in TABLES:
        return TABLES[name][0]
    side, *middle, last = name.split(".")
    weight = "bias" if last.startswith("b") else "weight"
    if middle == ["norm"]:  # the final norm of a pre-norm model
        return f"model.{SIDES[side]}.layer_norm.{weight}"
    layer, sub_layer, *norm = middle
    part = PARTS[sub_layer][1] if norm else f"{PARTS[sub_layer][0]}{HF_PROJECTIONS[last[1]]}."
    return f"model.{SIDES[side]}.layers.{layer}.{part}{weight}"


def marian_name(name: str) -> str:
    """Return Marian's name for a parameter: enc.0.self.WQ → encoder_l1_self_Wq."""
    if name in TABLES:
        return TABLES[name][1]
    side, layer, sub_layer, *norm, last = name.split(".")
    last = {"gain": "scale", "bias": "bias"}[last] if norm else last[0] + last[1:].lower()
    return f"{SIDES[side]}_l{int(layer) + 1}_{PARTS[sub_layer][3 if norm else 2]}{last}"


def is_table(axes: str) -> bool:
    """Return whether a parameter with these axes is a lookup table, such as an embedding."""
    return axes in ("VD", "PD")


def their_shape(spec: ParameterSpec, *, transposed: bool = False) -> tuple[int, ...]:
    """Return the shape of a parameter whose heads are concatenated."""
    shape = spec.shape
    if spec.axes == "HDK":
        shape = (shape[1], shape[0] * shape[2])
    if spec.axes == "HK":
        shape = (math.prod(shape),)
    return shape[::-1] if transposed else shape


def to_theirs(value: np.ndarray, spec: ParameterSpec, *, transposed: bool = False) -> np.ndarray:
    """Concatenate the heads of a parameter, and transpose the result if requested."""
    flat = (value.transpose(1, 0, 2) if spec.axes == "HDK" else value).reshape(their_shape(spec))
    return np.ascontiguousarray(flat.T if transposed else flat)


def from_theirs(value: np.ndarray, spec: ParameterSpec, *, transposed: bool = False) -> np.ndarray:
    """Convert a parameter back to our layout; the inverse of `to_theirs`."""
    value = value.reshape(their_shape(spec, transposed=transposed))
    value = value.T if transposed else value
    if spec.axes == "HDK":
        heads, width, head = spec.shape
        value = value.reshape(width, heads, head).transpose(1, 0, 2)
    return np.ascontiguousarray(value.reshape(spec.shape))
