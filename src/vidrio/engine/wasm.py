"""Run the engine's WebAssembly module in wasmtime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import wasmtime

RESERVED = 64 << 20  # bytes to reserve for an instance, and again for its growth, if address space is limited


class Wasmtime:
    """An instance of the module, with its own memory."""

    def __init__(self, module: wasmtime.Module, engine: wasmtime.Engine) -> None:
        self.store = wasmtime.Store(engine)
        exports: Any = wasmtime.Instance(self.store, module, []).exports(self.store)
        self._exports, self._memory, self._stack = exports, exports["memory"], exports["__stack_pointer"]
        self.call("_initialize")
        self._stack_at_rest = self._stack.value(self.store)

    def call(self, name: str, *numbers: int) -> int:
        try:
            return self._exports[name](self.store, *numbers) or 0
        except wasmtime.Trap:  # means that memory has run out
            self._stack.set_value(self.store, self._stack_at_rest)
            raise MemoryError(f"WebAssembly has {self.size():,} bytes and gets no more") from None

    def write(self, address: int, data: bytes) -> None:
        self._memory.write(self.store, data, address & 0xFFFFFFFF)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self._memory.read(self.store, address & 0xFFFFFFFF, (address & 0xFFFFFFFF) + size))

    def size(self) -> int:
        length: int = self._memory.data_len(self.store)
        return length


def instances(path: Path) -> Callable[[], Wasmtime]:
    """Return a function that creates instances of a module, which is compiled in advance.

    An instance normally reserves more than 4 GB of address space, so that the hardware checks bounds. If address
    space is limited (`ulimit -v`), each access is bounds-checked in software, which is slower.
    """
    compiled = _compile(path, wasmtime.Config())

    def new() -> Wasmtime:
        nonlocal compiled
        try:
            return Wasmtime(*compiled)
        except wasmtime.WasmtimeError:
            config = wasmtime.Config()
            config.memory_reservation = config.memory_reservation_for_growth = RESERVED
            config.memory_guard_size = 0
            compiled = _compile(path, config)
        try:
            return Wasmtime(*compiled)
        except wasmtime.WasmtimeError as error:
            raise MemoryError(str(error)) from None

    return new


def _compile(path: Path, config: wasmtime.Config) -> tuple[wasmtime.Module, wasmtime.Engine]:
    engine = wasmtime.Engine(config)
    return wasmtime.Module.from_file(engine, str(path)), engine
