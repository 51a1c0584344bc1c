"""int8 matrices: integers from −63 to 63, with one scale per sum.

    enc.0.ffn.W1         I8   D × F
    enc.0.ffn.W1.scale   F32  1 × F       the number is integer × scale

Seven bits are used, because inputs are at most 127: a sum of two products of 63 · 127 fits 16 bits, so no processor's
instruction overflows. Gains, biases and learned positions stay float32.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from vidrio.model.config import ModelConfig
from vidrio.model.parameters import parameter_specs

if TYPE_CHECKING:
    import numpy as np

SCALE = ".scale"
LARGEST = 63
LARGE = 1_000_000  # bytes of parameters; models this large use int8
# The axis that is summed over where a matrix is used; each sum has one scale. A row of an embedding is looked up, and
# multiplied with the decoder's output if the two are tied (§3.4).
SUMMED = {"VD": 1, "HDK": 1, "ED": 0, "DF": 0, "FD": 0, "DD": 0, "DV": 0, "DC": 0}


class WholeNumbers(NamedTuple):
    """Integers and their scales: a number is whole · scale."""

    whole: "np.ndarray"
    scale: "np.ndarray"  # one per row (or column) that shares it


def multiplies_in_whole_numbers(arrays: "Mapping[str, np.ndarray]", config: ModelConfig) -> bool:
    """Whether the engine multiplies a model's matrices in int8: its file stores integers, or it is large."""
    integers = any(value.dtype.name == "int8" for value in arrays.values())
    return goes_by_integers(config, integers, sum(value.nbytes for value in arrays.values()))


def goes_by_integers(config: ModelConfig, integers: bool, n_bytes: int) -> bool:
    """The rule, for a file with or without integers and with `n_bytes` of parameters. A tiny model keeps its floats, so
    that lessons can show them."""
    return config.int8 and (integers or n_bytes >= LARGE)


def whole_numbers(value: "np.ndarray", axis: int) -> WholeNumbers:
    """Quantise a matrix: the largest number of each sum becomes 63."""
    import numpy as np

    from vidrio.model.exact import rint

    with np.errstate(all="ignore"):  # infinite numbers are refused when the machine is built
        largest = np.abs(value, dtype=np.float32).max(axis=axis, keepdims=True)
        scale = np.where(largest > 0, largest, np.float32(1)) / np.float32(LARGEST)
        return WholeNumbers(rint(value / scale), np.squeeze(scale, axis))


def in_whole_numbers(arrays: "Mapping[str, np.ndarray]", config: ModelConfig) -> dict[str, WholeNumbers]:
    """The matrices as the engine multiplies them. Stored integers within ±63 are used as they are; other numbers are
    quantised again."""
    import numpy as np

    found, values = {}, dequantise(arrays)
    for name, axis in summed_axes(config).items():
        stored = arrays[name]
        if stored.dtype == np.int8 and np.abs(stored, dtype=np.int16).max() <= LARGEST:
            scale = np.squeeze(arrays[name + SCALE], axis).astype(np.float32)
            found[name] = WholeNumbers(stored.astype(np.float32), scale)
        else:
            found[name] = whole_numbers(np.asarray(values[name], np.float32), axis)
    return found


def summed_axes(config: ModelConfig) -> dict[str, int]:
    """The matrices of a model, each with the axis that is summed over."""
    return {name: SUMMED[axes] for name, (axes, _) in parameter_specs(config).items() if axes in SUMMED}


def quantise(parameters: "Mapping[str, np.ndarray]", config: ModelConfig) -> "dict[str, np.ndarray]":
    """The parameters as they are stored: matrices as integers with their scales."""
    import numpy as np

    arrays = {name: np.asarray(value, dtype=np.float32) for name, value in parameters.items()}
    for name, axis in summed_axes(config).items():
        whole, scale = whole_numbers(arrays[name], axis)
        arrays |= {name: whole.astype(np.int8), name + SCALE: np.expand_dims(scale, axis)}
    return arrays


def dequantise(arrays: "Mapping[str, np.ndarray]") -> "dict[str, np.ndarray]":
    """Integers times their scales; other arrays stay as they are."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers are refused when the machine is built
        return {
            name: value * arrays[name + SCALE] if value.dtype == np.int8 else value
            for name, value in arrays.items()
            if not name.endswith(SCALE)
        }
