"""The engine as machine code in this process: an address is an address, and one model serves all threads."""

import ctypes
from pathlib import Path
from typing import Any

# Results and arguments as in engine.h: p for a pointer, i for int32_t, l for int64_t.
FUNCTIONS = {
    **{"model_load": "p:ppipl", "model_problem": "p:", "model_free": ":p"},
    **{"search_new": "p:pi", "search_add": "p:pppipipi", "search_run": "i:pi", "search_next": "p:p"},
    **{"search_drop": ":pp", "search_free": ":p"},
    **{"sentence_count": "i:p", "sentence_length": "i:pi", "sentence_written": "i:ppi", "sentence_read": "i:pipppp"},
    **{"forced": "i:pppipipp", "classify": "i:pppip"},
    **{"record_new": "p:", "record_count": "i:p", "record_address": "p:pi", "record_rows": "i:pi"},
    **{"record_columns": "i:pi", "record_values": "p:pi", "record_free": ":p"},
}
TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int32, "l": ctypes.c_int64}


class Native:
    """A shared library. Calls leave other Python threads running."""

    shares_models = True

    def __init__(self, path: Path) -> None:
        self.functions = ctypes.CDLL(str(path))
        for name, types in FUNCTIONS.items():
            result, arguments = types.split(":")
            function = getattr(self.functions, name)
            function.restype = TYPES[result] if result else None
            function.argtypes = [TYPES[letter] for letter in arguments]

    def load(self, sizes: Any, tensors: Any, data: "memoryview[int]") -> int:
        """The model of a file's bytes (writable memory, which it does not write to), or 0."""
        place = ctypes.addressof(ctypes.c_char.from_buffer(data))
        return self.functions.model_load(sizes, tensors, len(tensors) // 3, place, len(data)) or 0

    def free(self, name: str, *addresses: int) -> None:
        """Free a model or a search."""
        getattr(self.functions, name)(*addresses)

    def read(self, address: int, size: int = -1) -> bytes:
        """So many bytes, or as many as come before a zero."""
        return ctypes.string_at(address, size)
