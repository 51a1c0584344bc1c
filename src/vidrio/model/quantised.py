"""Parameters in eight bits: for each row that meets an input, integers from −127 to 127 and what 1 is worth.

    enc.0.ffn.W1         I8   D × F
    enc.0.ffn.W1.scale   F32  1 × F       the number is integer × scale

It is the rule by which CTranslate2 quantises, over the same rows: what `fast/` multiplies with are the very numbers
that `glass/` reads here. Gains and biases stay as they are; so do learned positions.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vidrio.errors import ModelError
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import parameter_specs

if TYPE_CHECKING:
    import numpy as np

SCALE = ".scale"
LARGEST = 127
# The axis that is summed over where a matrix is used: each sum has one scale. A row of a table is looked up, and also
# meets the decoder's output where they are tied (§3.4).
SUMMED = {"VD": 1, "HDK": 1, "ED": 0, "DF": 0, "FD": 0, "DV": 0, "DC": 0}


def quantise(parameters: "Mapping[str, np.ndarray]", config: ModelConfig) -> "dict[str, np.ndarray]":
    """The same parameters, matrices as integers with their scales."""
    import numpy as np

    arrays: dict[str, np.ndarray] = {}
    for name, spec in parameter_specs(config).items():
        value = np.asarray(parameters[name], dtype=np.float32)
        if spec.axes not in SUMMED:
            arrays[name] = value
            continue
        largest = np.abs(value).max(axis=SUMMED[spec.axes], keepdims=True)
        scale = (np.where(largest > 0, largest, 1) / LARGEST).astype(np.float32)
        arrays[name] = np.rint(value / scale).astype(np.int8)
        arrays[name + SCALE] = scale
    return arrays


def dequantise(arrays: "Mapping[str, np.ndarray]") -> "dict[str, np.ndarray]":
    """Integers times their scales; what is no integer stays."""
    import numpy as np

    whole = {name for name, value in arrays.items() if value.dtype == np.int8}
    missing = [name for name in whole if name + SCALE not in arrays]
    if missing:
        raise ModelError(
            "integers without their scale", found=", ".join(sorted(missing)), do="use an undamaged model folder"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # infinite numbers are refused where the machine is built
        return {
            name: value * arrays[name + SCALE] if name in whole else value
            for name, value in arrays.items()
            if name.removesuffix(SCALE) not in whole or name in whole
        }
