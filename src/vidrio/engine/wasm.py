"""The engine as WebAssembly, run by wasmtime: on any processor, and shut in. Whatever a model file holds, the module
reaches its own memory and nothing else; it imports no function."""

import ctypes
from array import array
from pathlib import Path
from typing import Any

import wasmtime

from vidrio.engine.native import FUNCTIONS, Argument

ROOM = 1 << 16  # bytes for the arguments of a call; more are found where a call needs more


class Wasm:
    """An instance of the module with a memory of its own, for one thread at a time. An address is a place in there."""

    shares_models = False

    def __init__(self, module: "Module") -> None:
        self._store = wasmtime.Store(module.engine)
        exports = wasmtime.Instance(self._store, module.module, []).exports(self._store)
        self._functions = {name: exports[name] for name in (*FUNCTIONS, "_initialize", "malloc", "free")}
        self._memory: Any = exports["memory"]
        self.call("_initialize")
        self._room, self._place = ROOM, self.call("malloc", ROOM)

    def call(self, name: str, *arguments: Argument) -> int:
        """Call a function; arrays and bytes are copied to where it can read them, and arrays back."""
        function: Any = self._functions[name]
        given = [bytes(a) if isinstance(a, array) else a for a in arguments]
        needed = sum(len(data) + 7 & ~7 for data in given if isinstance(data, bytes))
        if not needed:
            return function(self._store, *(a or 0 for a in given)) or 0
        if needed > self._room:
            self.call("free", self._place)
            self._room, self._place = needed, self.call("malloc", needed)
            assert self._place, "no memory for the arguments"
        places, place = [], self._place
        for data in given:
            if isinstance(data, bytes):
                ctypes.memmove(self._at(place), data, len(data))
                places.append(place)
                place += len(data) + 7 & ~7
            else:
                places.append(data or 0)
        result = function(self._store, *places) or 0
        for argument, at in zip(arguments, places, strict=True):
            if isinstance(argument, array) and argument:
                ctypes.memmove(argument.buffer_info()[0], self._at(at), len(argument) * argument.itemsize)
        return result

    def load(self, sizes: "array[int]", tensors: "array[int]", data: "memoryview[int]") -> int:
        """The model of a file's bytes (writable memory, which it does not write to), or 0."""
        place = self.call("malloc", len(data))
        if not place:
            raise MemoryError("WebAssembly has at most 4 GB")
        ctypes.memmove(self._at(place), ctypes.addressof(ctypes.c_char.from_buffer(data)), len(data))
        try:
            model = self.call("model_load", sizes, tensors, len(tensors) // 3, place, len(data))
        except wasmtime.Trap:  # the only one in there: no memory is left
            raise MemoryError("WebAssembly has at most 4 GB") from None
        self.call("free", place)
        return model

    def let_go(self, name: str, address: int) -> None:
        """Nothing: what is in the module's memory goes with it."""

    def text(self, address: int) -> str:
        """The C string at an address."""
        return ctypes.string_at(self._at(address)).decode()

    def floats(self, address: int, count: int) -> "array[float]":
        """A copy of the numbers at an address."""
        return array("f", ctypes.string_at(self._at(address), 4 * count))

    def _at(self, address: int) -> int:
        """Where in this process. The module's memory may move when it grows."""
        return ctypes.addressof(self._memory.data_ptr(self._store).contents) + (address & 0xFFFFFFFF)


class Module:
    """The compiled module, of which any number of instances are made."""

    def __init__(self, path: Path) -> None:
        self.engine = wasmtime.Engine()
        self.module = wasmtime.Module.from_file(self.engine, str(path))
