"""Run the engine's WebAssembly module in a browser. Python runs as WebAssembly too (Pyodide), but its memory is
separate, so all data passes through JavaScript."""

from pathlib import Path
from typing import Any

import js
from pyodide.ffi import JsException


class Browser:
    """An instance of the module, with its own memory."""

    def __init__(self, wasm: bytes) -> None:
        exports = js.WebAssembly.Instance.new(js.WebAssembly.Module.new(_as_array(wasm))).exports
        exports._initialize()
        self._exports = {name: getattr(exports, name) for name in exports.object_keys()}
        self._stack_at_rest = self._exports["__stack_pointer"].value

    def call(self, name: str, *numbers: int) -> int:
        try:
            return self._exports[name](*numbers) or 0
        except JsException:  # means that memory has run out
            self._exports["__stack_pointer"].value = self._stack_at_rest
            raise MemoryError(f"WebAssembly has {self.size():,} bytes and gets no more") from None

    def write(self, address: int, data: Any) -> None:
        if len(data):
            self._view(address, len(data)).assign(data)

    def read(self, address: int, size: int) -> bytes:
        found: bytes = self._view(address, size).to_bytes()
        return found

    def size(self) -> int:
        length: int = self._exports["memory"].buffer.byteLength
        return length

    def _view(self, address: int, size: int) -> Any:
        """Return a view of the instance's memory. It becomes invalid if the memory grows."""
        return js.Uint8Array.new(self._exports["memory"].buffer, address & 0xFFFFFFFF, size)


def best(folder: Path, names: list[str]) -> bytes:
    """Return the code of the first module whose instructions the browser supports."""
    for name in names:
        code = (folder / name).read_bytes()
        if js.WebAssembly.validate(_as_array(code)):
            return code
    raise RuntimeError("this browser has no WebAssembly with SIMD")


def _as_array(data: bytes) -> Any:
    array = js.Uint8Array.new(len(data))
    array.assign(data)
    return array
