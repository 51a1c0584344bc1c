"""Read Marian's `.bin` and `.npz` files, which contain named arrays and the configuration.

Sizes are checked before memory is allocated.

Layout of a .bin file, little-endian:

    u64 version (1), u64 n
    n × u64[4]: length of the name (including a NUL), type, length of the shape, length of the data
    n names, n shapes (i32), u64 gap, gap bytes, n blocks of data up to the end of the file

A block may be longer than its array, in which case the remaining bytes are undefined.
"""

import math
import struct
import zipfile
import zlib
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vidrio.model import shortlist
from vidrio.model.json_record import shown

CONFIG = "special:model.yml"
WITH_SCALE = (0x4101, 0x4102)  # intgemm8, intgemm16: a float32 follows the integers
TYPES = {0x0101: "<i1", 0x0102: "<i2", 0x0402: "<f2", 0x0404: "<f4", 0x0408: "<f8", 0x4101: "<i1", 0x4102: "<i2"}
MAX_ITEMS, LONGEST_NAME, MAX_AXES, LARGEST_CONFIG = 100_000, 1000, 8, 1 << 20
LARGEST_FILE = 1 << 32  # maximum size in bytes; for .npz, after decompression
MAX_SQUEEZED = 100  # maximum compression ratio of an .npz file
# The exceptions that reading a damaged file can raise.
BROKEN = (
    *(ValueError, OSError, EOFError, OverflowError, NotImplementedError, RuntimeError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)


class Item(NamedTuple):
    """An array in a file."""

    shape: tuple[int, ...]
    flat: np.ndarray
    quantisation: np.float32 | None = None  # integer = value × quantisation


def kind_of(path: Path) -> str:
    """Return "bin", "npz" or "shortlist", or an empty string for any other file."""
    with path.open("rb") as file:
        start = file.read(8)
    if start == shortlist.MAGIC.to_bytes(8, "little"):
        return "shortlist"
    if path.suffix == ".npz":
        return "npz"
    return "bin" if start == (1).to_bytes(8, "little") else ""


def read_bin(path: Path) -> dict[str, Item]:
    """Return the arrays of a .bin file by name. Raise one of the exceptions in BROKEN if the file is invalid."""
    size, at = path.stat().st_size, 16
    if size > LARGEST_FILE:
        raise ValueError(f"{size:,} bytes")
    data = path.read_bytes()
    _, n = struct.unpack_from("<2Q", data)
    if n > min(MAX_ITEMS, size // 32):
        raise ValueError(f"{n:,} items in {size:,} bytes")

    def take(layout: str) -> tuple[Any, ...]:
        nonlocal at
        found = struct.unpack_from(layout, data, at)
        at += struct.calcsize(layout)
        return found

    heads = [take("<4Q") for _ in range(n)]
    for name_length, _, axes, length in heads:
        if not 0 < name_length <= LONGEST_NAME or axes > MAX_AXES or length > size:
            raise ValueError(f"an item with a name of {name_length:,} bytes, {axes:,} axes, {length:,} bytes")
    names = [take(f"{head[0]}s")[0].rstrip(b"\0").decode() for head in heads]
    shapes = [take(f"<{head[2]}i") for head in heads]
    [gap] = take("<Q")
    begins = list(accumulate((head[3] for head in heads), initial=at + gap))
    if begins[-1] != size:
        raise ValueError(f"{size:,} bytes, but {begins[-1]:,} according to its header")
    blocks = [memoryview(data)[begin:end] for begin, end in pairwise(begins)]
    items = zip(names, heads, shapes, blocks, strict=True)
    return {name: _item(name, head[1], shape, block) for name, head, shape, block in items}


def _item(name: str, kind: int, shape: tuple[int, ...], block: memoryview) -> Item:
    if kind not in TYPES:
        raise ValueError(f"{shown(name)} has type {kind:#x}, which is not supported")
    dtype, count = np.dtype(TYPES[kind]), math.prod(shape)
    need = count * dtype.itemsize
    if min(shape, default=1) < 1 or need + 4 * (kind in WITH_SCALE) > len(block):
        raise ValueError(f"{shown(name)} has shape {shape}, but {len(block):,} bytes")
    scale = np.frombuffer(block, "<f4", 1, need)[0] if kind in WITH_SCALE else None
    return Item(shape, np.frombuffer(block, dtype, count), scale)


def read_npz(path: Path) -> dict[str, Item]:
    """Return the arrays of an .npz file by name, without using pickle."""
    with zipfile.ZipFile(path) as archive:
        sizes = [member.file_size for member in archive.infolist()]
    if len(sizes) > MAX_ITEMS or sum(sizes) > min(LARGEST_FILE, MAX_SQUEEZED * path.stat().st_size):
        raise ValueError(f"{len(sizes):,} arrays, {sum(sizes):,} bytes when unpacked")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: Item(array.shape, array.ravel()) for name, array in arrays.items()}
    except Exception as error:  # NumPy raises many kinds of exceptions for damaged files
        raise ValueError(f"an array: {error!s:.100}") from None


def settings_of(text: str) -> dict[str, str]:
    """Parse the YAML subset that Marian writes: `key: value` lines, and lists, whose items are joined with spaces."""
    settings: dict[str, str] = {}
    last = ""
    for line in text.rstrip("\0").splitlines():
        key, colon, value = line.partition(":")
        if line.strip().startswith("- ") and last:
            settings[last] = f"{settings[last]} {_plain(line.strip()[2:])}".strip()
        elif colon and not line.startswith((" ", "#")):
            last, value = key.strip(), value.strip()
            flow = value.startswith("[") and value.endswith("]")
            settings[last] = " ".join(map(_plain, value[1:-1].split(","))) if flow else _plain(value)
        elif line.strip() and not line.startswith((" ", "#", "---")):
            raise ValueError(f"the line {shown(line)} is neither `key: value` nor `- value`")
    return settings


def _plain(value: str) -> str:
    return value.strip().strip("\"'")
