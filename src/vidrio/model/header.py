"""What a safetensors file says of itself before its numbers: their names, types and shapes. A few kilobytes to read.

    8 bytes   how long the header is
    header    JSON: {"embed": {"dtype": "F32", "shape": [8000, 256], "data_offsets": [0, 8192000]}, …}
    body      the numbers

The library checks a file as a whole, and then it is in memory. Here a folder is held to its config first.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vidrio.model.config import ModelConfig
from vidrio.model.json_record import record, shown
from vidrio.model.parameters import check_shapes, parameter_specs
from vidrio.model.quantised import SCALE, SUMMED

LONGEST_HEADER = 8 * 1024 * 1024  # bytes; 200,000 parameters, each a matrix
BYTES = {"F64": 8, "F32": 4, "F16": 2, "I8": 1}  # of one number of each type that is read


@dataclass(frozen=True)
class Stored:
    """One array of the file."""

    dtype: str
    shape: list[int]
    data_offsets: list[int]


def check_header(path: Path, config: ModelConfig) -> None:
    """Refuse a file that does not hold what a model of this config needs: ValueError if the header is damaged,
    ModelError if it is of another model."""
    stored = read_header(path)
    check_shapes(shapes_of(stored, config), config, where=str(path.parent))


def read_header(path: Path, types: Mapping[str, int] = BYTES) -> dict[str, Stored]:
    """The arrays of a file, by name, each with as many bytes as its shape needs, and all of them as many as there are;
    ValueError if it is not so."""
    with path.open("rb") as file:
        size, length = path.stat().st_size, int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(size - 8, LONGEST_HEADER):
            raise ValueError(f"a header of {length:,} bytes in a file of {size:,}")
        data = json.loads(file.read(length))
    if not isinstance(data, dict):
        raise ValueError(f"its header is a JSON {type(data).__name__}, not an object")
    stored = {name: _stored(name, tensor, types) for name, tensor in data.items() if name != "__metadata__"}
    needed = sum(tensor.data_offsets[1] - tensor.data_offsets[0] for tensor in stored.values())
    if needed != size - 8 - length:
        raise ValueError(f"{size - 8 - length:,} bytes of numbers where its header has {needed:,}")
    return stored


def _stored(name: str, data: object, types: Mapping[str, int]) -> Stored:
    try:
        tensor = record(Stored, data)
    except TypeError as error:
        raise ValueError(f"{shown(name)} in its header: {error}") from None
    if tensor.dtype not in types:
        raise ValueError(f"{shown(name)} is stored as {shown(tensor.dtype)}, not as one of {', '.join(types)}")
    begin, end = tensor.data_offsets if len(tensor.data_offsets) == 2 else (0, -1)
    sound = len(tensor.shape) <= 3 and min([begin, *tensor.shape]) >= 0
    if not sound or end - begin != math.prod(tensor.shape) * types[tensor.dtype]:
        raise ValueError(
            f"{shown(name)} has the shape {shown(tensor.shape)} and the place {shown(tensor.data_offsets)}"
        )
    return tensor


def shapes_of(stored: Mapping[str, Stored], config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters; those in eight bits have a scale each, of the one shape that fits."""
    whole = {name for name, tensor in stored.items() if tensor.dtype == "I8"}
    scales = {name + SCALE for name in whole}
    if len(stored) >= config.n_encoder_layers + config.n_decoder_layers:  # else the config is of another model
        specs = parameter_specs(config)
        for name in sorted(whole & set(specs)):
            axes, shape = specs[name]
            scale = stored.get(name + SCALE)
            if axes not in SUMMED:
                raise ValueError(f"{name} is stored in eight bits, which {axes} never is")
            expected = [1 if axis == SUMMED[axes] else n for axis, n in enumerate(shape)]
            if scale is None or scale.shape != expected or scale.dtype == "I8":
                found = "no scale" if scale is None else f"a scale of shape {shown(scale.shape)} in {scale.dtype}"
                raise ValueError(f"{name} has {found}, not one of shape {expected}")
    return {name: tuple(tensor.shape) for name, tensor in stored.items() if name not in scales}
