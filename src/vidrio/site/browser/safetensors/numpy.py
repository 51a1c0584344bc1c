"""Reads safetensors files, and converts arrays to the bytes of such files."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
NAMES = {np.dtype(code): name for name, code in TYPES.items()}


def load_file(path: Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    first = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:first])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            data[first + entry["data_offsets"][0] : first + entry["data_offsets"][1]], TYPES[entry["dtype"]]
        )
        .reshape(entry["shape"])
        .copy()
        for name, entry in header.items()
    }


def save(arrays: Mapping[str, np.ndarray]) -> bytes:
    header, parts, at = {}, [], 0
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
        raw = np.ascontiguousarray(arrays[name]).tobytes()
        entry = {"dtype": NAMES[arrays[name].dtype], "shape": list(arrays[name].shape)}
        header[name] = {**entry, "data_offsets": [at, at := at + len(raw)]}
        parts.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])
