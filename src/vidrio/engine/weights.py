"""A model folder → what `model_load` takes: sizes and choices, and where each parameter lies among the file's bytes.

The file is mapped into memory and read where it lies. Only where it holds what the engine does not read (float16,
float64) is it written out as float32 first, which takes NumPy.
"""

import ctypes
import math
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vidrio.model.config import ACTIVATIONS, NORMS, POSITIONS, SHAPES, TYINGS, ModelConfig
from vidrio.model.folder import TENSORS, check_files, read_stored
from vidrio.model.header import Stored
from vidrio.model.parameters import parameter_specs
from vidrio.model.quantised import SCALE, goes_by_integers

TYPES = {"F32": 0, "I8": 1}  # Tensor.type; other types are written out as float32


class Weights(NamedTuple):
    """What `model_load` takes."""

    sizes: Any  # int32_t
    tensors: Any  # int64_t, three for each parameter: its type, its place in `data`, and its scale's
    data: "memoryview[int]"


def in_whole_numbers(stored: Mapping[str, Stored]) -> bool:
    """Whether matrices multiply in whole numbers."""
    n_bytes = sum(tensor.data_offsets[1] - tensor.data_offsets[0] for tensor in stored.values())
    return goes_by_integers(any(tensor.dtype == "I8" for tensor in stored.values()), n_bytes)


def read_weights(folder: Path, config: ModelConfig) -> Weights:
    """The weights of a model folder, which are the ones that its config was written with."""
    check_files(folder, [TENSORS])
    stored = read_stored(folder, config)
    with (folder / TENSORS).open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    first = 8 + int.from_bytes(data[:8], "little")
    sizes = sizes_of(config, whole_numbers=in_whole_numbers(stored))
    places = {name: first + tensor.data_offsets[0] for name, tensor in stored.items()}
    if any(tensor.dtype not in TYPES for tensor in stored.values()):
        data, places = _as_float32(data, places, stored)
    tensors: list[int] = []
    for name in parameter_specs(config):
        is_whole = stored[name].dtype == "I8"
        tensors += (TYPES["I8" if is_whole else "F32"], places[name], places[name + SCALE] if is_whole else 0)
    return Weights((ctypes.c_int32 * len(sizes))(*sizes), (ctypes.c_int64 * len(tensors))(*tensors), data)


def sizes_of(config: ModelConfig, *, whole_numbers: bool) -> list[int]:
    """The sizes and choices in the order of engine.h."""
    c = config
    [epsilon] = struct.unpack("<i", struct.pack("<f", c.norm_epsilon))
    choices = [NORMS.index(c.norm), epsilon, ACTIVATIONS.index(c.activation), POSITIONS.index(c.positions)]
    return [
        *(SHAPES.index(c.shape), c.source_vocabulary, c.target_vocabulary, c.d_model, c.n_heads, c.d_head, c.d_ff),
        *(c.n_encoder_layers, c.n_decoder_layers, c.n_classes, c.max_positions, *choices),
        *(TYINGS.index(c.tying), c.scale_embeddings, c.attention_bias, c.output_bias),
        *(c.special.start, c.special.end, whole_numbers),
    ]


def _as_float32(
    data: "memoryview[int]", places: Mapping[str, int], stored: Mapping[str, Stored]
) -> tuple["memoryview[int]", dict[str, int]]:
    """The same numbers, those that are not integers as float32, and where they lie now."""
    import numpy as np

    kinds = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I8": np.int8}
    written, found = bytearray(), {}
    for name, tensor in stored.items():
        values = np.frombuffer(data, kinds[tensor.dtype], math.prod(tensor.shape), places[name])
        found[name] = len(written)
        with np.errstate(over="ignore"):  # the engine refuses what is infinite
            written += (values if tensor.dtype == "I8" else values.astype(np.float32)).tobytes()
    return memoryview(written), found
