"""Marian's files: `.bin` and `.npz` (arrays by name, and the configuration), and the shortlist.

The size of an array and its place in the file are checked before it is read.

A .bin file, little-endian:

    u64 version (1), u64 n
    n × u64[4]: lengths of the name (with a NUL), type, lengths of the shape and of the data
    n names, n shapes (i32), u64 gap, gap bytes, n blocks of data up to the end of the file

A block may be longer than its array: the rest is left-over memory.
"""

import math
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from vidrio.model.json_record import shown

CONFIG = "special:model.yml"
WITH_SCALE = (0x4101, 0x4102)  # intgemm8, intgemm16: a float32 follows the integers
TYPES = {0x0101: "<i1", 0x0102: "<i2", 0x0402: "<f2", 0x0404: "<f4", 0x0408: "<f8", 0x4101: "<i1", 0x4102: "<i2"}
FOREIGN = {0x0802: "packed16", 0x1801: "packed8avx2", 0x2801: "packed8avx512"}  # each for one kind of processor
MOST_ITEMS, LONGEST_NAME, MOST_AXES, LARGEST_CONFIG = 100_000, 1000, 8, 1 << 20
SHORTLIST = struct.Struct("<6Q")  # magic, checksum, first words, words of each, offsets, words
SHORTLIST_MAGIC, LARGEST_SHORTLIST = 0xF11A48D5013417F5, 1 << 28  # bytes
LARGEST_ARCHIVE = 1 << 32  # bytes of an .npz when unpacked
MOST_SQUEEZED = 100  # times that its arrays may be larger than the file


Settings = dict[str, str | list[str]]


class Item(NamedTuple):
    """An array of a file; `type` names a form that is not read."""

    shape: tuple[int, ...]
    type: str
    read: Callable[[], np.ndarray]  # flat
    quantisation: Callable[[], np.float32] | None = None  # the integers are the numbers times this


# What reading a damaged file may raise.
BROKEN = (
    *(ValueError, OSError, EOFError, OverflowError, NotImplementedError, RuntimeError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)


def kind_of(path: Path) -> str:
    """`bin`, `npz`, `shortlist`, or nothing."""
    with path.open("rb") as file:
        start = file.read(8)
    if start == SHORTLIST_MAGIC.to_bytes(8, "little"):
        return "shortlist"
    if path.suffix == ".npz":
        return "npz"
    return "bin" if start == (1).to_bytes(8, "little") else ""


def read_bin(path: Path) -> dict[str, Item]:
    """The arrays of a .bin file by name; ValueError if it is not one."""
    with path.open("rb") as file:
        size, (_, n) = path.stat().st_size, struct.unpack("<2Q", _exactly(file, 16))
        if n > min(MOST_ITEMS, size // 32):
            raise ValueError(f"{n:,} items in {size:,} bytes")
        heads = list(struct.iter_unpack("<4Q", _exactly(file, 32 * n)))
        for name_length, _, axes, length in heads:
            if not 0 < name_length <= LONGEST_NAME or axes > MOST_AXES or length > size:
                raise ValueError(f"an item with a name of {name_length:,} bytes, {axes:,} axes, {length:,} bytes")
        names = [_exactly(file, head[0]).rstrip(b"\0").decode() for head in heads]
        shapes = [struct.unpack(f"<{head[2]}i", _exactly(file, 4 * head[2])) for head in heads]
        [gap] = struct.unpack("<Q", _exactly(file, 8))
        at = file.tell() + gap
    if at + sum(head[3] for head in heads) != size:
        raise ValueError(f"{size:,} bytes where its header has {at + sum(head[3] for head in heads):,}")
    items: dict[str, Item] = {}
    for name, shape, (_, kind, _, length) in zip(names, shapes, heads, strict=True):
        items[name] = _item(path, name, kind, shape, (at, length))
        at += length
    return items


def _item(path: Path, name: str, kind: int, shape: tuple[int, ...], place: tuple[int, int]) -> Item:
    at, length = place
    if kind in FOREIGN:
        return Item(shape, FOREIGN[kind], partial(np.empty, 0))
    if kind not in TYPES:
        raise ValueError(f"{shown(name)} is of the unknown type {kind:#x}")
    dtype, count = np.dtype(TYPES[kind]), math.prod(shape)
    need = count * dtype.itemsize
    if min(shape, default=1) < 1 or need + 4 * (kind in WITH_SCALE) > length:
        raise ValueError(f"{shown(name)} has the shape {shape} and {length:,} bytes")
    read = partial(np.fromfile, path, dtype, count, offset=at)
    scale = partial(_scalar, path, at + need) if kind in WITH_SCALE else None
    return Item(shape, dtype.name, read, scale)


def _scalar(path: Path, at: int) -> np.float32:
    scale: np.float32 = np.fromfile(path, "<f4", 1, offset=at)[0]
    return scale


def read_npz(path: Path) -> dict[str, Item]:
    """The arrays of an .npz file by name, as NumPy writes them, without pickle."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if len(members) > MOST_ITEMS or total > min(LARGEST_ARCHIVE, MOST_SQUEEZED * path.stat().st_size):
            raise ValueError(f"{len(members):,} arrays, {total:,} bytes when unpacked")
        return {member.filename.removesuffix(".npy"): _member(path, archive, member) for member in members}


def _member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Item:
    with archive.open(member) as file:
        shape, dtype = _npy_header(file)
        if dtype.kind not in "fi" or file.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError(f"{shown(member.filename)} is {dtype} of the shape {shape}, {member.file_size:,} bytes")

    def read() -> np.ndarray:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            _npy_header(file)
            return np.frombuffer(file.read(), dtype)

    return Item(shape, dtype.name, read)


def _npy_header(file: Any) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array of NumPy's format {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, by_columns, dtype = read(file)
    except Exception as error:  # NumPy's reader raises whatever damaged bytes lead to
        raise ValueError(f"the header of an array: {error!s:.100}") from None
    if by_columns and len(shape) > 1:
        raise ValueError("an array that is stored column by column")
    return shape, dtype


def check_shortlist(path: Path, source: int, target: int) -> None:
    """ValueError unless it lists target words for each source word: the file of a vocabulary of these sizes."""
    size = path.stat().st_size
    if size > LARGEST_SHORTLIST:
        raise ValueError(f"{size:,} bytes")
    data = path.read_bytes()
    _, _, _, _, n_offsets, n_words = SHORTLIST.unpack_from(data.ljust(SHORTLIST.size, b"\0"))
    if n_offsets != source + 1 or SHORTLIST.size + 8 * n_offsets + 4 * n_words != size:
        raise ValueError(f"{n_offsets:,} offsets and {n_words:,} words in {size:,} bytes, for {source:,} source words")
    offsets = np.frombuffer(data, "<u8", n_offsets, SHORTLIST.size)
    words = np.frombuffer(data, "<u4", n_words, SHORTLIST.size + 8 * n_offsets)
    if offsets[0] or offsets[-1] != n_words or (offsets[1:] < offsets[:-1]).any() or (words >= target).any():
        raise ValueError("words that are not in the vocabulary, or lists that overlap")


def settings_of(text: str) -> Settings:
    """The flat part of YAML that Marian writes: `key: value` lines, and lists of one value a line."""
    settings: Settings = {}
    last = ""
    for line in text.rstrip("\0").splitlines():
        key, colon, value = line.partition(":")
        if line.strip().startswith("- ") and last:
            found = settings[last]
            settings[last] = [*(found if isinstance(found, list) else []), _plain(line.strip()[2:])]
        elif colon and not line.startswith((" ", "#")):
            last, value = key.strip(), value.strip()
            flow = value.startswith("[") and value.endswith("]")
            settings[last] = [_plain(one) for one in value[1:-1].split(",") if one.strip()] if flow else _plain(value)
        elif line.strip() and not line.startswith((" ", "#", "---")):
            raise ValueError(f"the line {shown(line)} is neither `key: value` nor `- value`")
    return settings


def _plain(value: str) -> str:
    return value.strip().strip("\"'")


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise ValueError(f"it ends {count - len(data):,} bytes too early")
    return data
