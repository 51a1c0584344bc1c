"""In the browser: the glass's sums, by the engine's glass.wasm, since NumPy has no BLAS there.

The products of whole numbers are exact in any order, and the others keep theirs, so every number is the one that NumPy
would have (tests/test_site.py compares the runs bit for bit).
"""

from pathlib import Path
from typing import Any

import js
import numpy as np

from vidrio.engine.browser import instance

WASM = Path(__file__).parents[1] / "engine" / "built" / "glass.wasm"
TALL, WIDE = 4, 8  # rows and columns at once
HELD = 64 << 20  # bytes of matrices that are kept ready

_exports = instance(WASM.read_bytes())
_rooms: dict[str, tuple[int, int]] = {}  # for what → where, and how many bytes
_held: dict[tuple[Any, ...], tuple[np.ndarray, int, int]] = {}  # by where it lies in NumPy's memory: it stays there


def whole_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b of whole numbers."""
    if a.ndim == 1:
        return whole_product(a[None], b)[0]
    (rows, depth), columns = a.shape, b.shape[1]
    x = _filled(a, (_up(rows, TALL), _up(depth, 2)), np.int16)
    return _called("whole_product", _room("x", x), _ready(b), x.shape, columns)[:rows, :columns].copy()


def in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b, each sum term by term."""
    if a.ndim == 1:
        return in_order(a[None], b)[0]
    columns, a = b.shape[1], np.ascontiguousarray(a)
    filled = _filled(b, (len(b), _up(columns, WIDE)), np.float32)
    return _called("in_order", _room("x", a), _room("b", filled), a.shape, columns)[:, :columns].copy()


def _called(name: str, x: int, w: int, shape: tuple[int, ...], columns: int) -> np.ndarray:
    rows, depth = shape
    wide = _up(columns, WIDE)
    out = _place("out", 4 * rows * wide)
    _exports[name](x, w, rows, depth, wide, out)
    return np.frombuffer(_view(out, 4 * rows * wide).to_bytes(), np.float32).reshape(rows, wide)


def _ready(b: np.ndarray) -> int:
    """Where a matrix lies as the module wants it: bytes in pairs of k. Kept, since parameters come again."""
    key = (b.__array_interface__["data"][0], b.shape, b.strides)
    if key not in _held:
        depth, columns = _up(b.shape[0], 2), _up(b.shape[1], WIDE)
        while _held and sum(size for *_, size in _held.values()) > HELD:
            _exports["free"](_held.pop(next(iter(_held)))[1])
        pairs = _filled(b, (depth, columns), np.int8).reshape(depth // 2, 2, columns)
        packed = np.ascontiguousarray(pairs.transpose(0, 2, 1))
        place = _exports["malloc"](packed.nbytes) & 0xFFFFFFFF
        _view(place, packed.nbytes).assign(packed.data.cast("B"))
        _held[key] = (b, place, packed.nbytes)
    return _held[key][1]


def _filled(a: np.ndarray, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """With zeros at its ends, up to a shape."""
    filled = np.zeros(shape, dtype)
    filled[: a.shape[0], : a.shape[1]] = a
    return filled


def _room(name: str, array: np.ndarray) -> int:
    place = _place(name, array.nbytes)
    if array.nbytes:
        _view(place, array.nbytes).assign(array.data.cast("B"))
    return place


def _place(name: str, size: int) -> int:
    place, room = _rooms.get(name, (0, 0))
    if size > room:
        _exports["free"](place)
        place = _exports["malloc"](size) & 0xFFFFFFFF
        _rooms[name] = (place, size)
    return place


def _view(place: int, size: int) -> Any:
    return js.Uint8Array.new(_exports["memory"].buffer, place, size)


def _up(n: int, step: int) -> int:
    return -(-n // step) * step
