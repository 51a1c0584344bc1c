"""The engine as WebAssembly, run by wasmtime: on any processor, and shut in. Whatever a model file holds, the module
reaches its own memory and nothing else; it imports no function."""

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

import wasmtime

from vidrio.engine.native import FUNCTIONS

ROOM = 1 << 16  # bytes for the arguments of a call; more are found where a call needs more


class Module:
    """The compiled module, of which any number of instances are made."""

    def __init__(self, path: Path) -> None:
        self.engine = wasmtime.Engine()
        self.module = wasmtime.Module.from_file(self.engine, str(path))


class Wasm:
    """An instance of the module with a memory of its own, for one thread at a time. An address is a place in there."""

    shares_models = False

    def __init__(self, module: Module) -> None:
        self._store = wasmtime.Store(module.engine)
        exports: Any = wasmtime.Instance(self._store, module.module, []).exports(self._store)
        self._exports, self._memory = exports, exports["memory"]
        self._room = self._place = 0
        self._call("_initialize")

    @property
    def functions(self) -> "Wasm":
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> int:
        """Call a function; arrays and bytes are copied to where it can read them, and arrays back."""
        given = [bytes(a) if isinstance(a, ctypes.Array) else a for a in arguments]
        needed = sum(len(data) + 7 & ~7 for data in given if isinstance(data, bytes))
        if needed > self._room:
            self._call("free", self._place)
            self._room, self._place = max(ROOM, needed), self._call("malloc", max(ROOM, needed))
            assert self._place, "no memory for the arguments"
        places, place = [], self._place
        for data in given:
            if isinstance(data, bytes):
                ctypes.memmove(self.at(place), data, len(data))
                places.append(place)
                place += len(data) + 7 & ~7
            else:
                places.append(data or 0)
        result: int = self._exports[name](self._store, *places) or 0
        for argument, at in zip(arguments, places, strict=True):
            if isinstance(argument, ctypes.Array) and len(argument):
                ctypes.memmove(argument, self.at(at), ctypes.sizeof(argument))
        return result

    def load(self, sizes: Any, tensors: Any, data: "memoryview[int]") -> int:
        """The model of a file's bytes (writable memory, which it does not write to), or 0."""
        place = self._call("malloc", len(data))
        if not place:
            raise MemoryError("WebAssembly has at most 4 GB")
        ctypes.memmove(self.at(place), ctypes.addressof(ctypes.c_char.from_buffer(data)), len(data))
        try:
            model = self._call("model_load", sizes, tensors, len(tensors) // 3, place, len(data))
        except wasmtime.Trap:  # the only one in there: no memory is left
            raise MemoryError("WebAssembly has at most 4 GB") from None
        self._call("free", place)
        return model

    def free(self, name: str, *addresses: int) -> None:
        """Nothing: what is in the module's memory goes with it."""

    def read(self, address: int, size: int = -1) -> bytes:
        """So many bytes, or as many as come before a zero."""
        return ctypes.string_at(self.at(address), size)

    def at(self, address: int) -> int:
        """Where in this process an address is. The module's memory may move when it grows."""
        return ctypes.addressof(self._memory.data_ptr(self._store).contents) + (address & 0xFFFFFFFF)
