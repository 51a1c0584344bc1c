"""The engine as machine code in this process: an address is an address, and one model serves all threads."""

import ctypes
from array import array
from pathlib import Path
from typing import TypeAlias

Argument: TypeAlias = "int | bytes | array[int] | array[float] | None"  # an array may be written to

# Results and arguments as in engine.h: p for a pointer, i for int32_t, l for int64_t.
FUNCTIONS = {
    **{"model_load": "p:ppipl", "model_problem": "p:", "model_free": ":p"},
    **{"search_new": "p:pi", "search_add": "i:pppipipi", "search_run": "i:pi", "search_cancel": "i:pi"},
    **{"search_count": "i:pi", "search_length": "i:pii", "search_written": "i:pipi", "search_read": "i:piipppp"},
    **{"search_drop": ":pi", "search_free": ":p"},
    **{"forced": "i:pppipipp", "classify": "i:pppip"},
    **{"record_new": "p:", "record_count": "i:p", "record_address": "p:pi", "record_rows": "i:pi"},
    **{"record_columns": "i:pi", "record_values": "p:pi", "record_free": ":p"},
}
TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int32, "l": ctypes.c_int64}


class Native:
    """A shared library. Calls leave other Python threads running."""

    shares_models = True

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        for name, types in FUNCTIONS.items():
            result, arguments = types.split(":")
            function = getattr(library, name)
            function.restype = TYPES[result] if result else None
            function.argtypes = [TYPES[letter] for letter in arguments]
        self._library = library

    def call(self, name: str, *arguments: Argument) -> int:
        """Call a function; arrays and bytes go by their address."""
        places = [a.buffer_info()[0] if isinstance(a, array) else a for a in arguments]
        return getattr(self._library, name)(*places) or 0

    def load(self, sizes: "array[int]", tensors: "array[int]", data: "memoryview[int]") -> int:
        """The model of a file's bytes (writable memory, which it does not write to), or 0."""
        place = ctypes.addressof(ctypes.c_char.from_buffer(data))
        return self.call("model_load", sizes, tensors, len(tensors) // 3, place, len(data))

    def let_go(self, name: str, address: int) -> None:
        """Free a model or a search."""
        self.call(name, address)

    def text(self, address: int) -> str:
        """The C string at an address."""
        return ctypes.string_at(address).decode()

    def floats(self, address: int, count: int) -> "array[float]":
        """A copy of the numbers at an address."""
        return array("f", ctypes.string_at(address, 4 * count))


def float_rows(values: "array[float]", shape: tuple[int, ...]) -> "memoryview[float]":
    """Numbers as a matrix, without a copy; NumPy reads it as an array."""
    return memoryview(values).cast("B").cast("f", shape) if len(values) else memoryview(values)


def numbers(count: int) -> "array[float]":
    """Room for so many float32."""
    return array("f", bytes(4 * count))
