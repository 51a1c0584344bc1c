"""Hugging Face's and Marian's names for our parameters, and which of them Hugging Face transposes.

Ours are written x W + b, with one matrix per head. Both others concatenate the heads; Hugging Face stores Wᵀ.
"""

import math

import numpy as np

from vidrio.model.parameters import ParameterSpec

SIDES = {"enc": "encoder", "dec": "decoder"}
HF_TABLES = {
    "embed": "model.shared.weight",
    "src.embed": "model.encoder.embed_tokens.weight",
    "tgt.embed": "model.decoder.embed_tokens.weight",
    "src.pos": "model.encoder.embed_positions.weight",
    "tgt.pos": "model.decoder.embed_positions.weight",
    "out.W": "lm_head.weight",
    "out.b": "final_logits_bias",
}
HF_PARTS = {"self": "self_attn.", "cross": "encoder_attn.", "ffn": ""}
HF_NORMS = {"self": "self_attn_layer_norm", "cross": "encoder_attn_layer_norm", "ffn": "final_layer_norm"}
HF_LAST = {
    **{f"W{letter}": f"{letter.lower()}_proj.weight" for letter in "QKV"},
    **{f"b{letter}": f"{letter.lower()}_proj.bias" for letter in "QKV"},
    **{"WO": "out_proj.weight", "bO": "out_proj.bias", "gain": "weight", "bias": "bias"},
    **{"W1": "fc1.weight", "b1": "fc1.bias", "W2": "fc2.weight", "b2": "fc2.bias"},
}


def hf_name(name: str) -> str:
    """enc.0.self.WQ → model.encoder.layers.0.self_attn.q_proj.weight."""
    if name in HF_TABLES:
        return HF_TABLES[name]
    side, *middle, last = name.split(".")
    stem = f"model.{SIDES[side]}"
    if middle == ["norm"]:  # after the last layer of a pre-norm model
        return f"{stem}.layer_norm.{HF_LAST[last]}"
    layer, sub_layer, *norm = middle
    part = f"{HF_NORMS[sub_layer]}." if norm else HF_PARTS[sub_layer]
    return f"{stem}.layers.{layer}.{part}{HF_LAST[last]}"


def side_by_side(value: np.ndarray, spec: ParameterSpec) -> np.ndarray:
    """Concatenate the heads: H·D·K → D·(H K), H·K → (H K)."""
    return (value.transpose(1, 0, 2) if spec.axes == "HDK" else value).reshape(flat_shape(spec))


def by_heads(value: np.ndarray, spec: ParameterSpec) -> np.ndarray:
    """The way back."""
    if spec.axes == "HDK":
        heads, width, head = spec.shape
        value = value.reshape(width, heads, head).transpose(1, 0, 2)
    return np.ascontiguousarray(value.reshape(spec.shape))


def flat_shape(spec: ParameterSpec) -> tuple[int, ...]:
    """The shape with concatenated heads."""
    if spec.axes == "HDK":
        heads, width, head = spec.shape
        return (width, heads * head)
    return (math.prod(spec.shape),) if spec.axes == "HK" else spec.shape


def is_turned(axes: str) -> bool:
    """Whether Hugging Face stores it transposed: every matrix except the embeddings, whose rows are looked up."""
    return len(axes) > 1 and axes not in ("VD", "PD", "HK")


MARIAN_TABLES = {
    **{"embed": "Wemb", "src.embed": "encoder_Wemb", "tgt.embed": "decoder_Wemb"},
    **{"out.W": "decoder_ff_logit_out_W", "out.b": "decoder_ff_logit_out_b"},
}
MARIAN_PARTS = {"self": "self", "cross": "context", "ffn": "ffn", "ssru": "rnn"}
MARIAN_NORMS = {"self": "Wo_ln", "cross": "Wo_ln", "ffn": "ffn_ln", "ssru": "ffn_ln"}
MARIAN_VECTORS = {"gain": "scale", "bias": "bias"}


def marian_name(name: str) -> str:
    """enc.0.self.WQ → encoder_l1_self_Wq."""
    if name in MARIAN_TABLES:
        return MARIAN_TABLES[name]
    side, layer, part, *norm, last = name.split(".")
    stem = f"{SIDES[side]}_l{int(layer) + 1}_{MARIAN_PARTS[part]}"
    return f"{stem}_{MARIAN_NORMS[part]}_{MARIAN_VECTORS[last]}" if norm else f"{stem}_{last[0]}{last[1:].lower()}"
