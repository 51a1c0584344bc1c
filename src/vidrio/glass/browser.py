"""Computes matrix products in the engine's glass.wasm, because NumPy has no BLAS in the browser.

Integer products are exact in any order, and float products add their terms in the same order as engine.py, so the
results are bit-for-bit identical to NumPy's (tests/test_site.py compares them).
"""

from pathlib import Path
from typing import Any

import numpy as np

from vidrio.engine.browser import Browser

WASM = Path(__file__).parents[1] / "engine" / "built" / "glass.wasm"
TALL, WIDE = 4, 8  # number of rows and columns per tile
HELD = 64 << 20  # maximum size of cached packed matrices, in bytes

_glass = Browser(WASM.read_bytes())
_rooms: dict[str, tuple[int, int]] = {}  # buffer name → address and size
_held: dict[tuple[Any, ...], tuple[np.ndarray, int, int]] = {}  # array, address and size, by NumPy address


def whole_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply two integer matrices."""
    if a.ndim == 1:
        return whole_product(a[None], b)[0]
    (rows, depth), columns = a.shape, b.shape[1]
    x = _filled(a, (_up(rows, TALL), _up(depth, 2)), np.int16)
    return _called("whole_product", _room("x", x), _ready(b), x.shape, columns)[:rows, :columns].copy()


def in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply two matrices, adding the terms of each sum in order."""
    if a.ndim == 1:
        return in_order(a[None], b)[0]
    columns, a = b.shape[1], np.ascontiguousarray(a)
    filled = _filled(b, (len(b), _up(columns, WIDE)), np.float32)
    return _called("in_order", _room("x", a), _room("b", filled), a.shape, columns)[:, :columns].copy()


def _called(name: str, x: int, w: int, shape: tuple[int, ...], columns: int) -> np.ndarray:
    rows, depth = shape
    wide = _up(columns, WIDE)
    out = _place("out", 4 * rows * wide)
    _glass.call(name, x, w, rows, depth, wide, out)
    return np.frombuffer(_glass.read(out, 4 * rows * wide), np.float32).reshape(rows, wide)


def _ready(b: np.ndarray) -> int:
    """Pack a matrix as int8 in pairs of rows, and return its address. Packed matrices are cached, because parameters
    are reused. The cache holds the array itself, so that no other array can take its NumPy address."""
    key = (b.__array_interface__["data"][0], b.shape, b.strides)
    if key not in _held:
        depth, columns = _up(b.shape[0], 2), _up(b.shape[1], WIDE)
        while _held and sum(size for *_, size in _held.values()) > HELD:
            _glass.call("free", _held.pop(next(iter(_held)))[1])
        pairs = _filled(b, (depth, columns), np.int8).reshape(depth // 2, 2, columns)
        packed = np.ascontiguousarray(pairs.transpose(0, 2, 1))
        place = _glass.call("malloc", packed.nbytes)
        _glass.write(place, packed.data.cast("B"))
        _held[key] = (b, place, packed.nbytes)
    return _held[key][1]


def _filled(a: np.ndarray, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return a copy of an array, padded with zeros to this shape."""
    filled = np.zeros(shape, dtype)
    filled[: a.shape[0], : a.shape[1]] = a
    return filled


def _room(name: str, array: np.ndarray) -> int:
    place = _place(name, array.nbytes)
    _glass.write(place, array.data.cast("B") if array.nbytes else b"")
    return place


def _place(name: str, size: int) -> int:
    place, room = _rooms.get(name, (0, 0))
    if size > room:
        _glass.call("free", place)
        place = _glass.call("malloc", size)
        _rooms[name] = (place, size)
    return place


def _up(n: int, step: int) -> int:
    return -(-n // step) * step
