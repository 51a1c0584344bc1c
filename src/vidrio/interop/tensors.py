"""Files of named arrays that others write: safetensors, PyTorch's pytorch_model.bin, NumPy's npz.

Each is opened first: its arrays have a name, a type and a shape, held to the size of the file. Numbers are read when
they are asked for. No pickle is run: torch_file.py reads what it says, and npz files with objects are refused.
"""

import math
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.lib import format as npy

from vidrio.errors import ModelError
from vidrio.interop.torch_file import BFLOAT16, Tensor, open_torch, read_entry, read_place
from vidrio.model.header import BYTES, read_header
from vidrio.model.header import Stored as Place

DAMAGE = (
    *(ValueError, KeyError, IndexError, TypeError, SyntaxError, TokenError, EOFError, struct.error),
    *(zipfile.BadZipFile, OSError, RuntimeError),  # of a zip: a checksum, an encrypted entry, an unknown compression
)
SAFETENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": BFLOAT16}  # how one number stands in a file
NPZ = ("<f8", "<f4", "<f2", "|i1", "|u1")
LARGEST_NPY_HEADER = 10_000
MOST_ARRAYS = 100_000


@dataclass(frozen=True)
class Stored:
    """One array in a file: its shape, and how to read its numbers."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


def open_tensors(path: Path) -> Mapping[str, Stored]:
    """The arrays of a file by name; ModelError if it is damaged, now or when numbers are read."""
    kinds = {".safetensors": open_safetensors, ".bin": open_torch_arrays, ".npz": open_npz}
    if path.suffix not in kinds:
        raise ModelError(f"{path} is no file of parameters", do=f"give one of {', '.join(kinds)}")
    with told_of_damage(path):
        arrays = kinds[path.suffix](path)
    return {name: Stored(of.shape, told_of_damage(path)(of.read)) for name, of in arrays.items()}


@contextmanager
def told_of_damage(path: Path) -> Iterator[None]:
    """What the readers raise, as a message."""
    try:
        yield
    except DAMAGE as error:
        what = f"{path} is damaged, or no {path.suffix} file"
        raise ModelError(what, found=f"{error!s:.300}", do="copy it again") from None


def numbers(data: bytes, kind: str) -> np.ndarray:
    """Bytes as float32."""
    found = np.frombuffer(data, kind)
    return (found.astype(np.uint32) << 16).view(np.float32) if kind == BFLOAT16 else found.astype(np.float32)


def open_safetensors(path: Path) -> dict[str, Stored]:
    begin = 8 + int.from_bytes(read_place(path, 0, 8), "little")
    types = {**BYTES, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}  # the others of no use to us

    def read(at: Place) -> np.ndarray:
        first, last = at.data_offsets
        return numbers(read_place(path, begin + first, last - first), SAFETENSORS[at.dtype]).reshape(at.shape)

    header = read_header(path, types)
    return {name: Stored(tuple(at.shape), partial(read, at)) for name, at in header.items() if at.dtype in SAFETENSORS}


def open_torch_arrays(path: Path) -> dict[str, Stored]:
    def read(tensor: Tensor) -> np.ndarray:
        flat = numbers(tensor.storage.read(), tensor.storage.kind)[tensor.offset :]
        strides = [4 * step for step in tensor.strides]
        return np.lib.stride_tricks.as_strided(flat, tensor.shape, strides, writeable=False).copy()

    return {name: Stored(tensor.shape, partial(read, tensor)) for name, tensor in open_torch(path).items()}


def open_npz(path: Path) -> dict[str, Stored]:
    """Marian's files: arrays in a zip, not compressed."""

    def read(name: str, begin: int, kind: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        return np.frombuffer(read_entry(path, name), kind, offset=begin).reshape(shape)

    found: dict[str, Stored] = {}
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > MOST_ARRAYS:
            raise ValueError(f"{len(entries):,} arrays")
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > path.stat().st_size:
                raise ValueError(f"{entry.filename} is compressed; Marian stores arrays as they are")
            with archive.open(entry) as file:
                begin, kind, shape = npy_header(BytesIO(file.read(LARGEST_NPY_HEADER)), entry)
            name = entry.filename.removesuffix(".npy")
            found[name] = Stored(shape, partial(read, entry.filename, begin, kind, shape))
    return found


def npy_header(file: BytesIO, entry: zipfile.ZipInfo) -> tuple[int, np.dtype, tuple[int, ...]]:
    """Where the numbers of an array begin, their type and shape."""
    read = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
    shape, turned, kind = read(file)
    begin = file.tell()
    if kind.str not in NPZ or turned or len(shape) > 4 or min(shape, default=0) < 0:
        raise ValueError(f"{entry.filename} is of the type {kind!s:.40} and shape {shape!s:.80}")
    if begin + math.prod(shape) * kind.itemsize != entry.file_size:
        raise ValueError(f"{entry.filename} has {entry.file_size:,} bytes for the shape {shape!s:.80}")
    return begin, kind, shape
