"""What a pytorch_model.bin says, without running what it says.

Such a file is a pickle: a small program that builds objects and may call anything. Here it is read as text is read,
instruction by instruction (`pickletools` takes it apart, and runs nothing), and the only things that are built are
numbers, texts, tuples, dictionaries, and `Tensor`, a place in the file. Everything else is refused by its name.

Since PyTorch 1.6 the file is a zip: data.pkl, and data/KEY for each storage. Before, five pickles stood one after the
other, then the storages.
"""

import math
import pickletools
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

LARGEST_PICKLE = 8 * 1024 * 1024  # bytes; it holds names and shapes, no numbers
OLD_MAGIC = 0x1950A86A20F9469CFC6C
BFLOAT16 = "<u2"  # NumPy has no such type: it is the upper half of a float32
STORAGES = {
    "torch DoubleStorage": "<f8",
    "torch FloatStorage": "<f4",
    "torch HalfStorage": "<f2",
    "torch BFloat16Storage": BFLOAT16,
    "torch LongStorage": "<i8",
}


@dataclass(frozen=True)
class Name:
    """Something that the program wants to call; it never is."""

    text: str


@dataclass
class Storage:
    """Numbers side by side in the file."""

    kind: str
    count: int
    read: Callable[[], bytes] = bytes

    @property
    def length(self) -> int:
        """In bytes."""
        return self.count * np.dtype(self.kind).itemsize


@dataclass(frozen=True)
class Tensor:
    """A view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_place(path: Path, begin: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(length)


def read_entry(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def open_torch(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; ValueError for what is none, or more than tensors."""
    state = (_open_zip if read_place(path, 0, 4) == b"PK\x03\x04" else _open_old)(path)
    if not isinstance(state, dict):
        raise ValueError("it holds no dictionary of tensors")
    return {name: value for name, value in state.items() if isinstance(name, str) and isinstance(value, Tensor)}


def _open_zip(path: Path) -> object:
    storages: dict[str, Storage] = {}
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        [pickle] = [name for name in entries if name.endswith("/data.pkl")]
        if entries[pickle].file_size > LARGEST_PICKLE:
            raise ValueError(f"a pickle of {entries[pickle].file_size:,} bytes")
        [state] = run(BytesIO(archive.read(pickle)), 1, storages)
    for key, storage in storages.items():
        entry = entries[f"{pickle.removesuffix('data.pkl')}data/{key}"]
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != storage.length:
            raise ValueError(f"{entry.file_size:,} bytes where {storage.length:,} are told")
        storage.read = partial(read_entry, path, entry.filename)
    return state


def _open_old(path: Path) -> object:
    storages: dict[str, Storage] = {}
    size = path.stat().st_size
    with path.open("rb") as file:
        magic, _, _, state, keys = run(file, 5, storages)
        if magic != OLD_MAGIC or not isinstance(keys, list) or set(keys) != set(storages):
            raise ValueError("it is no file of PyTorch's")
        for storage in map(storages.__getitem__, keys):
            [count], begin = struct.unpack("<q", file.read(8)), file.tell()
            if count != storage.count or begin + storage.length > size:
                raise ValueError(f"{count:,} numbers where {storage.count:,} are told, in {size:,} bytes")
            storage.read = partial(read_place, path, begin, storage.length)
            file.seek(begin + storage.length)
    return state


def run(file: IO[bytes], count: int, storages: dict[str, Storage]) -> list[Any]:
    """What `count` pickles, one after the other, say. Storages are noted by their keys."""
    return [_said(_instructions(file), storages) for _ in range(count)]


def _instructions(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    begin = file.tell()
    for instruction, argument, _ in pickletools.genops(file):
        if file.tell() - begin > LARGEST_PICKLE:
            raise ValueError(f"a pickle of more than {LARGEST_PICKLE:,} bytes")
        yield instruction.name, argument


MARK = object()
EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
ARGUMENTS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "BINFLOAT", "UNICODE", "INT", "LONG"),
    *("SHORT_BINSTRING", "BINSTRING"),
}
IGNORED = {"PROTO", "FRAME", "STOP"}


def _said(instructions: Iterator[tuple[str, Any]], storages: dict[str, Storage]) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        place = len(stack) - 1 - stack[::-1].index(MARK)
        items = stack[place + 1 :]
        del stack[place:]
        return items

    for name, argument in instructions:
        if name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name in ARGUMENTS:
            stack.append(argument)
        elif name in EMPTY:
            stack.append(EMPTY[name]())
        elif name == "MARK":
            stack.append(MARK)
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            size = int(name[-1])
            stack[-size:] = [tuple(stack[-size:])]
        elif name in ("APPEND", "APPENDS"):
            items = since_mark() if name == "APPENDS" else [stack.pop()]
            if not isinstance(stack[-1], list):
                raise ValueError("a value is added to what is no list")
            stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = since_mark() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            if not isinstance(stack[-1], dict):
                raise ValueError("a pair is put into what is no dictionary")
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name == "GLOBAL":
            if argument not in (*CALLS, *STORAGES):
                raise ValueError(f"it wants to call {argument!r:.80}, and only tensors are read")
            stack.append(Name(argument))
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop(), storages))
        elif name == "REDUCE":
            arguments, called = stack.pop(), stack.pop()
            if not isinstance(called, Name) or called.text not in CALLS or not isinstance(arguments, tuple):
                raise ValueError("it calls what is no function")
            stack.append(CALLS[called.text](*arguments))
        elif name == "BUILD":  # what an OrderedDict carries besides: the versions of modules
            stack.pop()
        elif name not in IGNORED:
            raise ValueError(f"its pickle has the instruction {name}, which no file of tensors needs")
    return stack.pop()


def _storage(told: Any, storages: dict[str, Storage]) -> Storage:
    word, kind, key, _, count, *_ = told
    if word != "storage" or not isinstance(kind, Name) or not isinstance(key, str) or not isinstance(count, int):
        raise ValueError(f"a storage told as {told!r:.80}")
    return storages.setdefault(key, Storage(STORAGES[kind.text], count))


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Tensor:
    numbers = [offset, *shape, *strides]
    if not isinstance(storage, Storage) or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError(f"a tensor told as {(storage, *numbers)!r:.80}")
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if len(shape) > 4 or math.prod(shape) > storage.count or (math.prod(shape) and last >= storage.count):
        raise ValueError(f"a tensor of the shape {shape} in {storage.count:,} numbers")
    return Tensor(storage, offset, tuple(shape), tuple(strides))


# What stands for what a program may call.
CALLS: dict[str, Callable[..., Any]] = {
    "collections OrderedDict": lambda *_: {},
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_parameter": lambda data, *_: data,
}
