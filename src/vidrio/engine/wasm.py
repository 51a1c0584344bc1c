"""The engine's WebAssembly, run by wasmtime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import wasmtime


class Wasmtime:
    """An instance with a memory of its own, for one thread at a time."""

    shares_models = False

    def __init__(self, module: wasmtime.Module, engine: wasmtime.Engine) -> None:
        self.store = wasmtime.Store(engine)
        exports: Any = wasmtime.Instance(self.store, module, []).exports(self.store)
        self._exports, self._memory = exports, exports["memory"]
        self.call("_initialize")

    def call(self, name: str, *numbers: int) -> int:
        try:
            return self._exports[name](self.store, *numbers) or 0
        except wasmtime.Trap:  # the only one in there: no memory is left
            raise MemoryError("WebAssembly has at most 4 GB") from None

    def write(self, address: int, data: bytes) -> None:
        self._memory.write(self.store, data, address & 0xFFFFFFFF)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self._memory.read(self.store, address & 0xFFFFFFFF, (address & 0xFFFFFFFF) + size))


def instances(path: Path) -> Callable[[], Wasmtime]:
    """What makes any number of instances of a module, which is compiled once."""
    engine = wasmtime.Engine()
    module = wasmtime.Module.from_file(engine, str(path))
    return lambda: Wasmtime(module, engine)
