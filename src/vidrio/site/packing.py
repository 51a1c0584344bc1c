"""Files in one: what the browser loads, and what it keeps of Python's own work."""

import struct
from collections.abc import Mapping
from pathlib import Path

from vidrio.model.json_text import json_text

UNCHECKED = struct.pack("<I8x", 1)  # of a .pyc: it is never compared with its source


def pack(files: Mapping[str, bytes]) -> bytes:
    """Files one after the other behind a header that says where each lies."""
    header, at = {}, 0
    for name, data in files.items():
        header[name] = (at, len(data))
        at += len(data)
    index = json_text(header).encode()
    return struct.pack("<I", len(index)) + index + b"".join(files.values())


def compiled(folder: str) -> bytes:
    """The byte code of all modules in a folder that were imported: a later start need not compile them again."""
    paths = sorted(Path(folder).rglob("__pycache__/*.pyc"))
    code = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return pack({name: data[:4] + UNCHECKED + data[16:] for name, data in code.items()})
