"""The engine's WebAssembly, run by wasmtime."""

import ctypes
from pathlib import Path
from typing import Any

import wasmtime


class Module:
    """The compiled module, of which any number of instances are made."""

    def __init__(self, path: Path) -> None:
        self.engine = wasmtime.Engine()
        self.module = wasmtime.Module.from_file(self.engine, str(path))


class Wasmtime:
    """An instance with a memory of its own, for one thread at a time."""

    shares_models = False

    def __init__(self, module: Module) -> None:
        self.store = wasmtime.Store(module.engine)
        exports: Any = wasmtime.Instance(self.store, module.module, []).exports(self.store)
        self._exports, self._memory = exports, exports["memory"]
        self.call("_initialize")

    def call(self, name: str, *numbers: int) -> int:
        try:
            return self._exports[name](self.store, *numbers) or 0
        except wasmtime.Trap:  # the only one in there: no memory is left
            raise MemoryError("WebAssembly has at most 4 GB") from None

    def write(self, address: int, data: Any) -> None:
        room = (ctypes.c_uint8 * len(data)).from_address(self._at(address))
        memoryview(room).cast("B")[:] = data

    def read(self, address: int, size: int = -1) -> bytes:
        return ctypes.string_at(self._at(address), size)

    def _at(self, address: int) -> int:
        """Where in this process an address is. The module's memory may move when it grows."""
        return ctypes.addressof(self._memory.data_ptr(self.store).contents) + (address & 0xFFFFFFFF)
