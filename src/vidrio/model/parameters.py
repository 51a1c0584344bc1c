"""The names, axes and shapes of all trained parameters, as a function of the config.

The names are also addresses and the keys in `model.safetensors`. `glass/`, `learn/` and `engine/` share them. Matrices
are oriented as in the paper (x W + b): `enc.0.self.WQ`[h] is the paper's W_h^Q.

Every sub-layer (`self` or `ssru`, `cross`, `ffn`) has its own layer norm.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from vidrio.errors import ModelError
from vidrio.model.config import ModelConfig
from vidrio.model.json_record import shown

if TYPE_CHECKING:
    import numpy as np


class ParameterSpec(NamedTuple):
    """The axes of a parameter and their lengths."""

    axes: str
    shape: tuple[int, ...]


def parameter_specs(config: ModelConfig) -> dict[str, ParameterSpec]:
    """Return all parameters of a model with this config, in the order of the forward pass."""
    c = config
    sizes = {"D": c.d_model, "H": c.n_heads, "K": c.d_head, "E": c.n_heads * c.d_head, "F": c.d_ff}
    sizes |= {"C": c.n_classes, "P": c.max_positions}
    specs: dict[str, ParameterSpec] = {}

    def add(name: str, axes: str, vocabulary: int = 0) -> None:
        specs[name] = ParameterSpec(axes, tuple(vocabulary if axis == "V" else sizes[axis] for axis in axes))

    def add_norm(name: str) -> None:
        add(f"{name}.gain", "D")
        add(f"{name}.bias", "D")

    def add_attention(name: str) -> None:
        for letter in "QKV":
            add(f"{name}.W{letter}", "HDK")
            if c.attention_bias:
                add(f"{name}.b{letter}", "HK")
        add(f"{name}.WO", "ED")
        if c.attention_bias:
            add(f"{name}.bO", "D")
        add_norm(f"{name}.norm")

    def add_ssru(name: str) -> None:
        add(f"{name}.W", "DD")
        add(f"{name}.Wf", "DD")
        add(f"{name}.bf", "D")
        add_norm(f"{name}.norm")

    def add_feed_forward(name: str) -> None:
        add(f"{name}.W1", "DF")
        add(f"{name}.b1", "F")
        add(f"{name}.W2", "FD")
        add(f"{name}.b2", "D")
        add_norm(f"{name}.norm")

    if c.has_encoder:
        add(source_table(c), "VD", c.source_vocabulary)
    if c.has_decoder:
        add(target_table(c), "VD", c.target_vocabulary)
    if c.positions == "learned":
        if c.has_encoder:
            add("src.pos", "PD")
        if c.has_decoder:
            add("tgt.pos", "PD")
    if c.has_encoder:
        for n in range(c.n_encoder_layers):
            add_attention(f"enc.{n}.self")
            add_feed_forward(f"enc.{n}.ffn")
        if c.norm == "pre":
            add_norm("enc.norm")
    if c.has_decoder:
        for n in range(c.n_decoder_layers):
            if c.decoder_cell == "ssru":
                add_ssru(f"dec.{n}.ssru")
            else:
                add_attention(f"dec.{n}.self")
            if c.has_encoder:
                add_attention(f"dec.{n}.cross")
            add_feed_forward(f"dec.{n}.ffn")
        if c.norm == "pre":
            add_norm("dec.norm")
    if c.shape == "encoder":
        add("out.W", "DC")
        add("out.b", "C")
    else:
        if c.tying == "none":
            add("out.W", "DV", c.target_vocabulary)
        if c.output_bias:
            add("out.b", "V", c.target_vocabulary)
    return specs


def source_table(config: ModelConfig) -> str:
    """Return the name of the source embedding."""
    return "embed" if config.one_table else "src.embed"


def target_table(config: ModelConfig) -> str:
    """Return the name of the target embedding."""
    return "embed" if config.one_table else "tgt.embed"


def output_is_tied(config: ModelConfig) -> bool:
    """Return whether the output matrix is the transposed target embedding (§3.4)."""
    return config.shape != "encoder" and config.tying != "none"


def count(config: ModelConfig) -> int:
    """Return the number of trained parameters of a model with this config."""
    return sum(math.prod(spec.shape) for spec in parameter_specs(config).values())


def check_parameters(parameters: "Mapping[str, np.ndarray]", config: ModelConfig, *, where: str = "the model") -> None:
    """Reject parameters that do not match the config, or that contain NaN or infinity."""
    import numpy as np

    shapes = {name: spec.shape for name, spec in parameter_specs(config).items()}
    refuse_misfits({name: array.shape for name, array in parameters.items()}, shapes, where)
    refuse([f"{name} contains NaN or infinity" for name in shapes if not np.all(np.isfinite(parameters[name]))], where)


def refuse_misfits(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Reject missing parameters, unknown names and unexpected shapes. The error lists all problems."""
    wrong = [f"{name} is missing" for name in expected if name not in found]
    wrong += [f"{shown(name)[1:-1]} is not a parameter of this model" for name in found if name not in expected]
    wrong += [
        f"{name} has shape {found[name]}, not {shape}"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    refuse(wrong, where)


def refuse(problems: list[str], where: str) -> None:
    if problems:
        found = "; ".join(problems[:12]) + (f"; and {len(problems) - 12} more" if len(problems) > 12 else "")
        raise ModelError(
            f"the parameters of {where} do not match its config", found=found, do="use an undamaged model folder"
        )


def random_parameters(config: ModelConfig, generator: "np.random.Generator") -> "dict[str, np.ndarray]":
    """Initialise parameters: Glorot-uniform matrices, gains of 1, biases of 0, and embeddings drawn from N(0, 1/D)."""
    import numpy as np

    parameters = {}
    for name, (axes, shape) in parameter_specs(config).items():
        last = name.rsplit(".", 1)[-1]
        value: np.ndarray
        if last == "gain":
            value = np.ones(shape)
        elif last.startswith("b"):
            value = np.zeros(shape)
        elif axes in ("VD", "PD"):
            value = generator.normal(0.0, config.d_model**-0.5, shape)
        else:
            heads = shape[0] if axes == "HDK" else 1  # the H matrices form one D → H·K projection, §3.2.2
            limit = (6.0 / (shape[-2] + shape[-1] * heads)) ** 0.5
            value = generator.uniform(-limit, limit, shape)
        parameters[name] = value
    return parameters
