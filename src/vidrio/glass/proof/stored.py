"""Where each parameter lies in `model.safetensors`, read by hand: a length, a header in JSON, then the numbers.

The format: 8 bytes with the header's length, the header `{"name": {"dtype": "F32", "shape": [4, 3], "data_offsets":
[0, 48]}, …}`, then all numbers, little-endian, row by row. Reading it here, without the library that the model was
loaded with, is what makes "the parameters are those of the file" a check. Numbers in eight bits are integers, each
worth as much as `name.scale` says for its row.
"""

import hashlib
import json
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.errors import ModelError
from vidrio.glass.paper.maths import Array

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1"}


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
    def sha256(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def array(self) -> Array:
        values = np.frombuffer(self.raw, _TYPES[self.dtype]).reshape(self.shape)
        if self.dtype == "BF16":  # the upper half of a float32
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values if self.scale is None else values * self.scale.array

    def bytes_of(self, place: tuple[int, ...]) -> tuple[int, bytes]:
        """Where in the file one number begins, and its bytes."""
        size = np.dtype(_TYPES[self.dtype]).itemsize
        offset = int(np.ravel_multi_index(place, self.shape)) * size if place else 0
        return self.first_byte + offset, self.raw[offset : offset + size]

    def scale_bytes_of(self, place: tuple[int, ...]) -> tuple[int, bytes] | None:
        """The same for what 1 is worth there; None if the numbers stand for themselves."""
        if self.scale is None:
            return None
        return self.scale.bytes_of(tuple(min(i, n - 1) for i, n in zip(place, self.scale.shape, strict=True)))


def stored(path: Path) -> Iterator[Stored]:
    """Every tensor of a safetensors file, in the order of the bytes."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            length = int.from_bytes(data[:8], "little")
            header = json.loads(data[8 : 8 + length])
            header.pop("__metadata__", None)
            tensors = {
                name: _tensor(name, entry, data, 8 + length)
                for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"])
            }
            whole = [name for name, tensor in tensors.items() if tensor.dtype == "I8"]
            scales = {name: tensors.pop(f"{name}.scale") for name in whole}
            yield from (replace(tensor, scale=scales.get(name)) for name, tensor in tensors.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} cannot be read", found=str(error), do="copy the model again") from None


def _tensor(name: str, entry: Mapping[str, Any], data: mmap.mmap, start: int) -> Stored:
    begin, end = (start + offset for offset in entry["data_offsets"])
    shape = tuple(entry["shape"])
    if end > len(data) or end - begin != prod(shape) * np.dtype(_TYPES[entry["dtype"]]).itemsize:
        raise ValueError(f"{name} does not lie where its header says")
    return Stored(name, entry["dtype"], shape, begin, data[begin:end])


@dataclass(frozen=True)
class FileChecked:
    """Whether a machine computes with the numbers of its file."""

    tensors: int
    numbers: int
    wrong: tuple[str, ...]  # tensors whose numbers are not those of the file
    sha256: Mapping[str, str]  # of each tensor's bytes


def check_file(path: Path, parameters: Mapping[str, Array]) -> FileChecked:
    """Compare every bit; a model that computes in another precision than its file's rounds each number once."""
    sums, wrong, numbers = {}, [], 0
    for tensor in stored(path):
        sums[tensor.name], numbers = tensor.sha256, numbers + prod(tensor.shape)
        ours = parameters.get(tensor.name)
        with np.errstate(over="ignore"):
            theirs = None if ours is None else tensor.array.astype(ours.dtype)
        if ours is None or theirs is None or ours.shape != theirs.shape or ours.tobytes() != theirs.tobytes():
            wrong.append(tensor.name)
    wrong += [name for name in parameters if name not in sums]
    return FileChecked(len(sums), numbers, tuple(wrong), sums)
