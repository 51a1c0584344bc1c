"""Packs several files into one: those that the browser loads, and the bytecode that it caches."""

import struct
from collections.abc import Mapping
from pathlib import Path

from vidrio.model.json_text import json_text

UNCHECKED = struct.pack("<I8x", 1)  # .pyc flags: never compare the file with its source


def pack(files: Mapping[str, bytes]) -> bytes:
    """Concatenate files, preceded by a header with their offsets and sizes."""
    header, at = {}, 0
    for name, data in files.items():
        header[name] = (at, len(data))
        at += len(data)
    index = json_text(header).encode()
    return struct.pack("<I", len(index)) + index + b"".join(files.values())


def compiled(folder: str) -> bytes:
    """Pack the bytecode of the modules imported from a folder, so that the next startup does not have to compile
    them."""
    paths = sorted(Path(folder).rglob("__pycache__/*.pyc"))
    code = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return pack({name: data[:4] + UNCHECKED + data[16:] for name, data in code.items()})
