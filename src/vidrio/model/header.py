"""Read the header of a safetensors file: names, types and shapes.

    8 bytes   length of the header
    header    JSON: {"embed": {"dtype": "F32", "shape": [8000, 256], "data_offsets": [0, 8192000]}, …}
    body      the data

The header is checked against the config before the safetensors library loads the file into memory.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

from vidrio.model.config import ModelConfig
from vidrio.model.json_record import shown
from vidrio.model.json_text import json_data
from vidrio.model.parameters import parameter_specs, refuse_misfits
from vidrio.model.quantised import SCALE, SUMMED

LONGEST_HEADER = 8 * 1024 * 1024  # bytes; enough for 200,000 matrices
BYTES = {"F64": 8, "F32": 4, "F16": 2, "I8": 1}  # bytes per number, for each supported type


class Stored(NamedTuple):
    """An array in the file."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]  # start and end within the body


def read_header(path: Path) -> dict[str, Stored]:
    """Return the arrays in a file, by name. Raises ValueError if there are gaps or bytes that belong to no array."""
    with path.open("rb") as file:
        size, length = path.stat().st_size, int.from_bytes(file.read(8), "little")
        if length > min(size - 8, LONGEST_HEADER):
            raise ValueError(f"a header of {length:,} bytes in a file of {size:,}")
        data = json_data(file.read(length))
    try:
        data.pop("__metadata__", None)
        stored, end = {}, 0
        for name, entry in sorted(data.items(), key=lambda entry: entry[1]["data_offsets"]):
            stored[name] = _stored(name, entry, end)
            end = stored[name].data_offsets[1]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"its header is invalid: {error!r}") from None
    if end != size - 8 - length:
        raise ValueError(f"{size - 8 - length:,} bytes of data, but its header declares {end:,}")
    return stored


def _stored(name: str, entry: dict[str, Any], start: int) -> Stored:
    """Parse an entry of the header. Its data must begin at `start`."""
    dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if dtype not in BYTES:
        raise ValueError(f"{shown(name)} is stored as {shown(dtype)}, not as one of {', '.join(BYTES)}")
    sound = len(shape) <= 3 and all(type(n) is int and n >= 0 for n in shape)
    end = start + math.prod(shape) * BYTES[dtype] if sound else -1
    if place != [start, end]:
        raise ValueError(f"{shown(name)} has the shape {shown(shape)} and the offsets {shown(place)}")
    return Stored(dtype, tuple(shape), (start, end))


def check_header(stored: dict[str, Stored], config: ModelConfig, where: str) -> None:
    """Check the arrays. Raises ModelError if they do not match the config, and ValueError if an integer array is not a
    matrix."""
    specs = parameter_specs(config)
    expected = {name: spec.shape for name, spec in specs.items()}
    for name in (name for name, array in stored.items() if array.dtype == "I8"):
        axes, shape = specs.get(name, ("", ()))
        if axes not in SUMMED:
            raise ValueError(f"{shown(name)} is stored as int8, which only matrices may be")
        expected[name + SCALE] = tuple(1 if axis == SUMMED[axes] else n for axis, n in enumerate(shape))
    refuse_misfits({name: array.shape for name, array in stored.items()}, expected, where)
