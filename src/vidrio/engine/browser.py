"""The engine as WebAssembly in a browser, beside a Python that is WebAssembly itself (Pyodide): two memories, and
JavaScript between them."""

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

import js

from vidrio.engine.native import FUNCTIONS

ROOM = 1 << 16  # bytes for the arguments of a call; more are found where a call needs more
# JavaScript gives a WebAssembly function an int64 as a BigInt only, and Python's small numbers become no BigInt.
LAST_AS_INT64 = js.Function.new("f", "return (...given) => f(...given.slice(0, -1), BigInt(given.at(-1)))")


class Browser:
    """An instance of the module with a memory of its own. An address is a place in there."""

    shares_models = True  # there is one thread

    def __init__(self, wasm: bytes) -> None:
        self._exports = instance(wasm)
        self._exports["model_load"] = LAST_AS_INT64(self._exports["model_load"])
        self._room = self._place = 0

    @property
    def functions(self) -> "Browser":
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> int:
        """Call a function; arrays and bytes are copied to where it can read them, and arrays back."""
        sizes = [len(memoryview(a).cast("B")) if isinstance(a, ctypes.Array | bytes) else 0 for a in arguments]
        needed = sum(size + 7 & ~7 for size in sizes)
        if needed > self._room:
            self._call("free", self._place)
            self._room, self._place = max(ROOM, needed), self._call("malloc", max(ROOM, needed))
        places, place = [], self._place
        for argument, size in zip(arguments, sizes, strict=True):
            if isinstance(argument, ctypes.Array | bytes):
                self._write(place, argument)
                places.append(place)
                place += size + 7 & ~7
            else:
                places.append(argument or 0)
        result: int = self._exports[name](*places) or 0
        for argument, size, place in zip(arguments, sizes, places, strict=True):
            if size and isinstance(argument, ctypes.Array):
                self._view(place, size).assign_to(memoryview(argument).cast("B"))
        return result & 0xFFFFFFFF if FUNCTIONS.get(name, "p").startswith("p") else result

    def _view(self, place: int, size: int) -> Any:
        """A part of the engine's memory, which may move when it grows."""
        return js.Uint8Array.new(self._exports["memory"].buffer, place, size)

    def _write(self, place: int, data: Any) -> None:
        raw = memoryview(data).cast("B")
        if len(raw):
            self._view(place, len(raw)).assign(raw)

    def load(self, sizes: Any, tensors: Any, data: "memoryview[int]") -> int:
        """The model of a file's bytes, or 0."""
        place = self._call("malloc", len(data))
        if not place:
            raise MemoryError("WebAssembly has at most 4 GB")
        self._write(place, data)
        model = self._call("model_load", sizes, tensors, len(tensors) // 3, place, len(data))
        self._call("free", place)
        return model

    def free(self, name: str, *addresses: int) -> None:
        """Free a model or a search."""
        self._call(name, *addresses)

    def read(self, address: int, size: int = -1) -> bytes:
        """So many bytes, or as many as come before a zero."""
        if size < 0:
            size = js.Uint8Array.new(self._exports["memory"].buffer).indexOf(0, address) - address
        found: bytes = self._view(address, size).to_bytes()
        return found


def instance(wasm: bytes) -> dict[str, Any]:
    """What a module exports, by name; it is ready to be called."""
    code = js.Uint8Array.new(len(wasm))
    code.assign(wasm)
    exports = js.WebAssembly.Instance.new(js.WebAssembly.Module.new(code)).exports
    exports._initialize()
    return {name: getattr(exports, name) for name in exports.object_keys()}


def best(folder: Path, names: list[str]) -> bytes:
    """The first of these modules whose instructions this browser has."""
    for name in names:
        code = (folder / name).read_bytes()
        view = js.Uint8Array.new(len(code))
        view.assign(code)
        if js.WebAssembly.validate(view):
            return code
    raise RuntimeError("this browser has no WebAssembly with SIMD")
