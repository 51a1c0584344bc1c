"""Files of named arrays that others write: safetensors, PyTorch's pytorch_model.bin, NumPy's npz.

Each is opened first: its arrays have a name, a type and a shape, held to the size of the file. Numbers are read when
they are asked for. No pickle is run: torch_file.py reads what it says, and npz files with objects are refused.
"""

import ast
import math
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vidrio.errors import ModelError
from vidrio.interop.torch_file import open_torch
from vidrio.model.header import BYTES, read_header

DAMAGE = (
    *(ValueError, KeyError, IndexError, TypeError, SyntaxError, EOFError, struct.error),
    *(zipfile.BadZipFile, OSError, RuntimeError),  # of a zip: a checksum, an encrypted entry, an unknown compression
)
# How one number stands in a file; bfloat16 is the upper half of a float32.
SAFETENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "bfloat16"}
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

    def guarded(read: Callable[[], np.ndarray]) -> Callable[[], np.ndarray]:
        def reading() -> np.ndarray:
            with told_of_damage(path):
                return read()

        return reading

    if path.suffix not in kinds:
        raise ModelError(f"{path} is no file of parameters", do=f"give one of {', '.join(kinds)}")
    with told_of_damage(path):
        return {name: Stored(of.shape, guarded(of.read)) for name, of in kinds[path.suffix](path).items()}


@contextmanager
def told_of_damage(path: Path) -> Iterator[None]:
    """What the readers raise, as a message."""
    try:
        yield
    except DAMAGE as error:
        what = f"{path} is damaged, or no {path.suffix} file"
        raise ModelError(what, found=f"{error!s:.300}", do="copy it again") from None


def open_safetensors(path: Path) -> dict[str, Stored]:
    with path.open("rb") as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
    types = {**BYTES, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}  # the others of no use to us
    header = read_header(path, types)
    return {
        name: Stored(tuple(at.shape), from_place(path, begin + at.data_offsets[0], SAFETENSORS[at.dtype], at.shape))
        for name, at in header.items()
        if at.dtype in SAFETENSORS
    }


def from_place(path: Path, begin: int, kind: str, shape: list[int]) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        with path.open("rb") as file:
            file.seek(begin)
            return numbers(file.read(math.prod(shape) * (2 if kind == "bfloat16" else np.dtype(kind).itemsize)), kind)

    return lambda: read().reshape(shape)


def numbers(data: bytes, kind: str) -> np.ndarray:
    """Bytes as float32."""
    if kind == "bfloat16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, kind).astype(np.float32)


def open_torch_arrays(path: Path) -> dict[str, Stored]:
    def reader(name: str) -> Callable[[], np.ndarray]:
        tensor = tensors[name]

        def read() -> np.ndarray:
            flat = numbers(tensor.storage.read(), tensor.storage.kind)[tensor.offset :]
            strides = [4 * step for step in tensor.strides]
            return np.lib.stride_tricks.as_strided(flat, tensor.shape, strides, writeable=False).copy()

        return read

    tensors = open_torch(path)
    return {name: Stored(tensors[name].shape, reader(name)) for name in tensors}


def open_npz(path: Path) -> dict[str, Stored]:
    """Marian's files: arrays in a zip, not compressed."""
    found: dict[str, Stored] = {}
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > MOST_ARRAYS:
            raise ValueError(f"{len(entries):,} arrays")
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > path.stat().st_size:
                raise ValueError(f"{entry.filename} is compressed; Marian stores arrays as they are")
            with archive.open(entry) as file:
                begin, kind, shape = npy_header(file.read(LARGEST_NPY_HEADER), entry)
            found[entry.filename.removesuffix(".npy")] = Stored(
                shape, from_entry(path, entry.filename, begin, kind, shape)
            )
    return found


def npy_header(data: bytes, entry: zipfile.ZipInfo) -> tuple[int, str, tuple[int, ...]]:
    """Where the numbers of an array begin, their type and shape."""
    if data[:6] != b"\x93NUMPY" or data[6] not in (1, 2):
        raise ValueError(f"{entry.filename} is no NumPy array")
    size, length = (8, 2) if data[6] == 1 else (8, 4)
    begin = size + length + int.from_bytes(data[size : size + length], "little")
    if begin > len(data):
        raise ValueError(f"{entry.filename} has a header of {begin:,} bytes")
    told = ast.literal_eval(data[size + length : begin].decode("latin-1").strip())
    kind, shape = told["descr"], told["shape"]
    whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape) and len(shape) <= 4
    if kind not in ("<f4", "<f2", "<f8", "|i1", "<i1", "|u1") or told["fortran_order"] or not whole:
        raise ValueError(f"{entry.filename} is of the type {kind!s:.40} and shape {shape!s:.80}")
    if begin + math.prod(shape) * np.dtype(kind).itemsize != entry.file_size:
        raise ValueError(f"{entry.filename} has {entry.file_size:,} bytes for the shape {shape!s:.80}")
    return begin, kind, shape


def from_entry(path: Path, name: str, begin: int, kind: str, shape: tuple[int, ...]) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        with zipfile.ZipFile(path) as archive:
            data = archive.read(name)[begin:]
        return np.frombuffer(data, kind).reshape(shape)

    return read
