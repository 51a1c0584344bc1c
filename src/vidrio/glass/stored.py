"""Where each parameter lies in `model.safetensors`, read by hand: a length, a header in JSON, then the numbers.

After the header (model/header.py) come all numbers, little-endian, row by row. Numbers in eight bits are integers, each
worth as much as `name.scale` says for its row.
"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from vidrio.errors import ModelError
from vidrio.glass.maths import Array
from vidrio.model.header import read_header

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1"}
_BYTES = {name: np.dtype(kind).itemsize for name, kind in _TYPES.items()}


@dataclass(frozen=True)
class Stored:
    """One tensor of the file."""

    name: str
    dtype: str  # F64, F32, F16, BF16 or I8
    shape: tuple[int, ...]
    first_byte: int  # in the file
    raw: bytes
    scale: "Stored | None" = None  # of integers: what 1 is worth; the summed axis has length 1

    @property
    def array(self) -> Array:
        values = np.frombuffer(self.raw, _TYPES[self.dtype]).reshape(self.shape)
        if self.dtype == "BF16":  # the upper half of a float32
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values if self.scale is None else values * self.scale.array

    def at(self, place: tuple[int, ...]) -> tuple[int, bytes]:
        """Where in the file one number begins, and its bytes. An axis of length 1 has one number for all places."""
        size, where = _BYTES[self.dtype], tuple(min(i, n - 1) for i, n in zip(place, self.shape, strict=True))
        offset = int(np.ravel_multi_index(where, self.shape)) * size if place else 0
        return self.first_byte + offset, self.raw[offset : offset + size]


def stored(path: Path) -> Iterator[Stored]:
    """Every tensor of a safetensors file, in the order of the bytes."""
    try:
        header = read_header(path, _BYTES)
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            first = 8 + int.from_bytes(data[:8], "little")
            tensors = {}
            for name, entry in sorted(header.items(), key=lambda item: item[1].data_offsets):
                begin, end = (first + offset for offset in entry.data_offsets)
                tensors[name] = Stored(name, entry.dtype, tuple(entry.shape), begin, data[begin:end])
            whole = [name for name, tensor in tensors.items() if tensor.dtype == "I8"]
            scales = {name: tensors.pop(f"{name}.scale") for name in whole}
            yield from (replace(tensor, scale=scales.get(name)) for name, tensor in tensors.items())
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read", found=str(error), do="copy the model again") from None
