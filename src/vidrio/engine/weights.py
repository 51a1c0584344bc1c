"""Convert a model folder to the arguments of `model_load`: the sizes, the options, and the position of each parameter
in the file."""

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from vidrio.model.config import ACTIVATIONS, CELLS, NORMS, POSITIONS, SHAPES, TYINGS, ModelConfig
from vidrio.model.folder import TENSORS, check_files, read_stored
from vidrio.model.header import Stored
from vidrio.model.parameters import parameter_specs
from vidrio.model.quantised import SCALE, int8_rule


class Weights(NamedTuple):
    """The arguments of `model_load`."""

    sizes: bytes  # in the order of engine.h
    tensors: bytes  # one `Tensor` (engine.h) per parameter
    data: bytes  # contents of the parameters file

    @property
    def arguments(self) -> tuple[int | bytes, ...]:
        return self.sizes, self.tensors, len(self.tensors) // TENSOR.size, self.data, len(self.data)


TENSOR = struct.Struct("<3q")  # type (1: integers, 0: float32), offset of the numbers in `data`, offset of the scales
SIZES = struct.Struct("<12if10i")


def read_weights(folder: Path, config: ModelConfig) -> Weights:
    """Read the weights in a model folder, and check them against the checksums in the config."""
    check_files(folder, [TENSORS])
    stored = read_stored(folder, config)
    data = (folder / TENSORS).read_bytes()
    first = 8 + int.from_bytes(data[:8], "little")
    places = {name: first + tensor.data_offsets[0] for name, tensor in stored.items()}
    whole = {name for name, tensor in stored.items() if tensor.dtype == "I8"}
    sizes = _sizes(config, int8_rule(config, bool(whole), len(data) - first))
    if any(tensor.dtype not in ("F32", "I8") for tensor in stored.values()):
        data, places = _as_float32(data, places, stored)
    tensors = [
        TENSOR.pack(name in whole, places[name], places[name + SCALE] if name in whole else 0)
        for name in parameter_specs(config)
    ]
    return Weights(sizes, b"".join(tensors), data)


def _sizes(config: ModelConfig, int8: bool) -> bytes:
    c = config
    return SIZES.pack(
        *(SHAPES.index(c.shape), c.source_vocabulary, c.target_vocabulary, c.d_model, c.n_heads, c.d_head, c.d_ff),
        *(c.n_encoder_layers, c.n_decoder_layers, c.n_classes, c.max_positions),
        *(NORMS.index(c.norm), c.norm_epsilon, ACTIVATIONS.index(c.activation), POSITIONS.index(c.positions)),
        *(TYINGS.index(c.tying), c.scale_embeddings, c.attention_bias, c.output_bias),
        *(c.special.start, c.special.end, CELLS.index(c.decoder_cell), int8),
    )


def _as_float32(data: bytes, places: Mapping[str, int], stored: Mapping[str, Stored]) -> tuple[bytes, dict[str, int]]:
    """Convert the parameters to the engine's formats, float32 or integers. Returns the bytes and the new positions."""
    import numpy as np

    kinds = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I8": np.int8}
    written, found = bytearray(), {}
    for name, tensor in stored.items():
        values = np.frombuffer(data, kinds[tensor.dtype], math.prod(tensor.shape), places[name])
        found[name] = len(written)
        with np.errstate(over="ignore"):  # the engine rejects infinite numbers
            written += (values if tensor.dtype == "I8" else values.astype(np.float32)).tobytes()
    return bytes(written), found
