"""Test `glass/` against an independent implementation: PyTorch's attention and Transformer layers, in float64."""

from itertools import product

import numpy as np
import pytest
import torch

from tolerances import FLOAT64
from vidrio.glass import walk
from vidrio.glass.machine import Machine, build
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters

D, H, F, S, T = 12, 3, 20, 5, 7
K = D // H  # PyTorch's heads always split the model's width


def config(norm: str = "post", activation: str = "relu") -> ModelConfig:
    return ModelConfig(
        source_vocabulary=29,
        target_vocabulary=29,
        d_model=D,
        n_heads=H,
        d_head=K,
        d_ff=F,
        n_encoder_layers=1,
        n_decoder_layers=1,
        attention_bias=True,
        norm=norm,
        activation=activation,
        norm_epsilon=1e-3,
    )


def rows(length: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(length, D))


def scramble(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Fill every parameter with random numbers, so that no bias is 0 and no gain is 1, and disable dropout."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.5)
    return module.eval()


def numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def attention_parameters(module: torch.nn.MultiheadAttention, name: str) -> dict[str, np.ndarray]:
    """Convert PyTorch's parameters, which stack Wᵀ of Q, K and V and keep all heads in each matrix."""
    found = {}
    for letter, W, b in zip("QKV", module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3), strict=True):
        found[f"{name}.W{letter}"] = numpy(W).T.reshape(D, H, K).transpose(1, 0, 2)
        found[f"{name}.b{letter}"] = numpy(b).reshape(H, K)
    found[f"{name}.WO"] = numpy(module.out_proj.weight).T
    found[f"{name}.bO"] = numpy(module.out_proj.bias)
    return found


def norm_parameters(module: torch.nn.LayerNorm, name: str) -> dict[str, np.ndarray]:
    return {f"{name}.norm.gain": numpy(module.weight), f"{name}.norm.bias": numpy(module.bias)}


def feed_forward_parameters(layer: torch.nn.Module, name: str) -> dict[str, np.ndarray]:
    return {
        f"{name}.W1": numpy(layer.linear1.weight).T,
        f"{name}.b1": numpy(layer.linear1.bias),
        f"{name}.W2": numpy(layer.linear2.weight).T,
        f"{name}.b2": numpy(layer.linear2.bias),
    }


def machine(config: ModelConfig, parameters: dict[str, np.ndarray]) -> Machine:
    return build(config, random_parameters(config, np.random.default_rng(0)) | parameters)


@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_attention(masked: bool) -> None:
    theirs = scramble(torch.nn.MultiheadAttention(D, H, batch_first=True, dtype=torch.float64))
    ours = machine(config(), attention_parameters(theirs, "dec.0.cross"))
    x, y = rows(T, 1), rows(T if masked else S, 2)
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1) if masked else None
    xt, yt = torch.from_numpy(x)[None], torch.from_numpy(y)[None]
    expected, weights = theirs(xt, yt, yt, attn_mask=hidden, average_attn_weights=False)
    seen: dict[str, np.ndarray] = {}

    def tap(name: str, value: np.ndarray) -> np.ndarray:
        seen[name] = value
        return value

    out = walk.multi_head(ours.tapped(tap), x, y, "dec.0.cross", masked=masked)
    np.testing.assert_allclose(out, numpy(expected)[0], rtol=0, atol=FLOAT64)
    for h in range(H):
        np.testing.assert_allclose(seen[f"dec.0.cross.weights.h{h}"], numpy(weights)[0, h], rtol=0, atol=FLOAT64)


@pytest.mark.parametrize(("norm", "activation"), list(product(["post", "pre"], ["relu", "gelu"])))
def test_layers(norm: str, activation: str) -> None:
    options = {"activation": activation, "layer_norm_eps": 1e-3, "batch_first": True, "norm_first": norm == "pre"}
    encoder = scramble(torch.nn.TransformerEncoderLayer(D, H, F, **options).double())
    decoder = scramble(torch.nn.TransformerDecoderLayer(D, H, F, **options).double())
    ours = machine(
        config(norm, activation),
        attention_parameters(encoder.self_attn, "enc.0.self")
        | norm_parameters(encoder.norm1, "enc.0.self")
        | feed_forward_parameters(encoder, "enc.0.ffn")
        | norm_parameters(encoder.norm2, "enc.0.ffn")
        | attention_parameters(decoder.self_attn, "dec.0.self")
        | norm_parameters(decoder.norm1, "dec.0.self")
        | attention_parameters(decoder.multihead_attn, "dec.0.cross")
        | norm_parameters(decoder.norm2, "dec.0.cross")
        | feed_forward_parameters(decoder, "dec.0.ffn")
        | norm_parameters(decoder.norm3, "dec.0.ffn"),
    )
    x, memory = rows(T, 4), rows(S, 5)
    xt, memory_t = torch.from_numpy(x)[None], torch.from_numpy(memory)[None]
    expected = encoder(xt.clone().requires_grad_())  # requiring a gradient disables PyTorch's fused path
    np.testing.assert_allclose(walk.encoder_layer(ours, x, "enc.0"), numpy(expected)[0], rtol=0, atol=FLOAT64)
    expected = decoder(xt, memory_t, tgt_mask=torch.ones(T, T, dtype=torch.bool).triu(1))
    np.testing.assert_allclose(walk.decoder_layer(ours, x, memory, "dec.0"), numpy(expected)[0], rtol=0, atol=FLOAT64)
