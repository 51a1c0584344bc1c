"""Quantise matrices to int8: integers from −63 to 63, with one scale per sum.

    enc.0.ffn.W1         I8   D × F
    enc.0.ffn.W1.scale   F32  1 × F       value = integer · scale

Only seven bits are used. Because inputs are at most 127, the sum of two products fits in 16 bits, so no processor's
instructions overflow. Gains, biases and learned positions remain in float32.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from vidrio.model.config import ModelConfig
from vidrio.model.parameters import parameter_specs

if TYPE_CHECKING:
    import numpy as np

SCALE = ".scale"
LARGEST = 63
LARGE = 1_000_000  # bytes of parameters; models of at least this size use int8
# The axis that is summed over in a product with the matrix. Embeddings are multiplied only if they are tied (§3.4).
SUMMED = {"VD": 1, "HDK": 1, "ED": 0, "DF": 0, "FD": 0, "DD": 0, "DV": 0, "DC": 0}


class Int8(NamedTuple):
    """A quantised matrix, whole · scale. The fields have the same names as the parts of addresses."""

    whole: "np.ndarray"  # integers, in float32
    scale: "np.ndarray"  # one per row or column


def uses_int8(arrays: "Mapping[str, np.ndarray]", config: ModelConfig) -> bool:
    """Return whether the engine uses int8 for these parameters."""
    stored_so = any(value.dtype.name == "int8" for value in arrays.values())
    return int8_rule(config, stored_so, sum(value.nbytes for value in arrays.values()))


def int8_rule(config: ModelConfig, stored_so: bool, n_bytes: int) -> bool:
    """Return whether to use int8: for large models and for models stored in int8, unless the config disables it."""
    return config.int8 and (stored_so or n_bytes >= LARGE)


def to_int8(value: "np.ndarray", axis: int) -> Int8:
    """Quantise a matrix to int8. The largest absolute value along the summed axis becomes 63."""
    import numpy as np

    from vidrio.model.exact import rint

    with np.errstate(all="ignore"):  # infinite numbers are rejected when the machine is built
        largest = np.abs(value, dtype=np.float32).max(axis=axis, keepdims=True)
        scale = np.where(largest > 0, largest, np.float32(1)) / np.float32(LARGEST)
        return Int8(rint(value / scale), np.squeeze(scale, axis))


def int8_matrices(arrays: "Mapping[str, np.ndarray]", config: ModelConfig) -> dict[str, Int8]:
    """Return the quantised matrices that the engine uses in products. Stored integers within ±63 are used unchanged."""
    import numpy as np

    found, values = {}, dequantise(arrays)
    for name, axis in summed_axes(config).items():
        stored = arrays[name]
        if stored.dtype == np.int8 and np.abs(stored, dtype=np.int16).max() <= LARGEST:
            scale = np.squeeze(arrays[name + SCALE], axis).astype(np.float32)
            found[name] = Int8(stored.astype(np.float32), scale)
        else:
            found[name] = to_int8(np.asarray(values[name], np.float32), axis)
    return found


def summed_axes(config: ModelConfig) -> dict[str, int]:
    """Return the axis that a product with each matrix sums over, by the name of the matrix."""
    return {name: SUMMED[axes] for name, (axes, _) in parameter_specs(config).items() if axes in SUMMED}


def quantise(parameters: "Mapping[str, np.ndarray]", config: ModelConfig) -> "dict[str, np.ndarray]":
    """Convert parameters to their stored form: matrices in int8, with scales."""
    import numpy as np

    arrays = {name: np.asarray(value, dtype=np.float32) for name, value in parameters.items()}
    for name, axis in summed_axes(config).items():
        integers, scale = to_int8(arrays[name], axis)
        arrays |= {name: integers.astype(np.int8), name + SCALE: np.expand_dims(scale, axis)}
    return arrays


def dequantise(arrays: "Mapping[str, np.ndarray]") -> "dict[str, np.ndarray]":
    """Multiply integers by their scales. Other arrays are returned unchanged."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers are rejected when the machine is built
        return {
            name: value * arrays[name + SCALE] if value.dtype == np.int8 else value
            for name, value in arrays.items()
            if not name.endswith(SCALE)
        }
