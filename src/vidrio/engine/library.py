"""The engine as a library, and which build of it runs: the best machine code for this processor if it is there, else
WebAssembly. All of them give the same bits. `VIDRIO_ENGINE` names one, for tests and benchmarks.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from vidrio.errors import ConfigError

BUILT = Path(__file__).parent / "built"
WISH = "VIDRIO_ENGINE"
MODULES = {"wasm": "engine.wasm", "wasm-core": "engine-core.wasm"}
NATIVE = ("vnni", "avx2", "plain")  # the best first
CHOICES = ("auto", *NATIVE, *MODULES)
SUFFIX = {"linux": "so", "darwin": "dylib", "windows": "dll"}
# What /proc/cpuinfo calls the instructions that a build uses.
NEEDED = {
    "vnni": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni", "avx2", "fma", "bmi2"},
    "avx2": {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"},
}

# Results and arguments as in engine.h: p for a pointer, i for int32_t, l for int64_t.
FUNCTIONS = {
    **{"model_load": "p:ppipl", "model_problem": "p:", "model_free": ":p"},
    **{"search_new": "p:pi", "search_add": "p:pppipipi", "search_run": "i:pi", "search_next": "p:p"},
    **{"search_drop": ":pp", "search_free": ":p"},
    **{"sentence_count": "i:p", "sentence_length": "i:pi", "sentence_read": "i:pipppp"},
    **{"forced": "i:pppipipp", "classify": "i:pppip"},
    **{"record_new": "p:", "record_count": "i:p", "record_quantity": "p:pi", "record_values": "p:pi"},
    **{"record_free": ":p"},
}
TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int32, "l": ctypes.c_int64}
ROOM = 1 << 16  # bytes for the arguments of a call of WebAssembly; a call that needs more gets more


class Library(Protocol):
    """The engine, loaded. An address is meaningful to the library that it came from, and to no other."""

    shares_models: bool  # whether any number of threads may use one model; else each thread needs a library of its own
    quantity: struct.Struct  # as in record.c: its address, its rows and columns, where its numbers are

    @property
    def functions(self) -> Any: ...  # of engine.h, by their names; pointers are addresses, ctypes arrays or bytes
    def load(self, sizes: Any, tensors: Any, data: "memoryview[int]") -> int: ...  # a model's address, or 0
    def free(self, name: str, *addresses: int) -> None: ...  # a model or a search
    def read(self, address: int, size: int = -1) -> bytes: ...  # so many bytes, or as many as come before a zero
    def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]: ...  # several: an address and a size each


class Native:
    """The engine as machine code in this process: a shared library. Calls leave other Python threads running."""

    shares_models = True
    quantity = struct.Struct("<64s2iQ")

    def __init__(self, path: Path) -> None:
        self.functions = ctypes.CDLL(str(path))
        for name, types in FUNCTIONS.items():
            result, arguments = types.split(":")
            function = getattr(self.functions, name)
            function.restype = TYPES[result] if result else None
            function.argtypes = [TYPES[letter] for letter in arguments]

    def load(self, sizes: Any, tensors: Any, data: "memoryview[int]") -> int:
        place = ctypes.addressof(ctypes.c_char.from_buffer(data))  # of writable memory, which is not written to
        return self.functions.model_load(sizes, tensors, len(tensors) // 3, place, len(data)) or 0

    def free(self, name: str, *addresses: int) -> None:
        getattr(self.functions, name)(*addresses)

    def read(self, address: int, size: int = -1) -> bytes:
        return ctypes.string_at(address, size)

    def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.read(*place) for place in places]


class Instance(Protocol):
    """An instance of the WebAssembly module, as wasmtime (wasm.py) or a browser (browser.py) runs it."""

    shares_models: bool

    def call(self, name: str, *numbers: int) -> int: ...
    def write(self, address: int, data: Any) -> None: ...
    def read(self, address: int, size: int = -1) -> bytes: ...


class Wasm:
    """The engine as WebAssembly: on any processor, and shut in. Whatever a model file holds, the module reaches its own
    memory and nothing else; it imports no function. So arguments are copied into its memory, and results out of it."""

    quantity = struct.Struct("<64s2iI")

    def __init__(self, instance: Instance) -> None:
        self._instance, self.shares_models, self.read = instance, instance.shares_models, instance.read
        self._room = self._place = 0

    @property
    def functions(self) -> "Wasm":
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> int:
        given = [bytes(a) if isinstance(a, ctypes.Array) else a for a in arguments]
        needed = sum(len(data) + 7 & ~7 for data in given if isinstance(data, bytes))
        if needed > self._room:
            self._instance.call("free", self._place)
            self._room, self._place = max(ROOM, needed), self._instance.call("malloc", max(ROOM, needed))
            assert self._place, "no memory for the arguments"
        places, place = [], self._place
        for data in given:
            if isinstance(data, bytes):
                self._instance.write(place, data)
                places.append(place)
                place += len(data) + 7 & ~7
            else:
                places.append(data or 0)
        result = self._instance.call(name, *places)
        for argument, place in zip(arguments, places, strict=True):
            if isinstance(argument, ctypes.Array) and len(argument):
                size = ctypes.sizeof(argument)
                ctypes.memmove(argument, self._instance.read(place, size), size)
        return result

    def load(self, sizes: Any, tensors: Any, data: "memoryview[int]") -> int:
        place = self._instance.call("malloc", len(data))
        if not place:
            raise MemoryError("WebAssembly has at most 4 GB")
        self._instance.write(place, data)
        model = self._call("model_load", sizes, tensors, len(tensors) // 3, place, len(data))
        self._instance.call("free", place)
        return model

    def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        """All that lies between the first and the last is read at once: a thousand calls would take longer."""
        first, end = min(at for at, _ in places), max(at + size for at, size in places)
        memory = self.read(first, end - first)
        return [memory[at - first : at - first + size] for at, size in places]

    def free(self, name: str, *addresses: int) -> None:
        if self.shares_models:  # else the instance goes with its one model, and another thread may be in it now
            self._call(name, *addresses)


def opener(wish: str | None = None) -> Callable[[], Library]:
    """What opens the wished build, or the best one that runs here, any number of times."""
    if sys.platform == "emscripten":
        from vidrio.engine import browser

        code = browser.best(BUILT, list(MODULES.values()))
        return lambda: Wasm(browser.Browser(code))
    wish = wish or os.environ.get(WISH) or "auto"
    if wish not in CHOICES:
        raise ConfigError(
            f"there is no build {wish!r} of the engine",
            found=f"{WISH}={wish}",
            do=f"choose one of {', '.join(CHOICES)}",
        )
    for name in NATIVE if wish == "auto" else [wish]:
        if name in NATIVE and (path := native_path(name)).is_file() and (name == "plain" or supports(name)):
            try:
                library = Native(path)
            except OSError:  # another libc than the one it was linked with
                continue
            return lambda: library
    if wish in NATIVE:
        raise ConfigError(
            f"the build {wish!r} of the engine does not run here",
            found=f"no {native_path(wish)}" if not native_path(wish).is_file() else "a processor without it",
            do=f"make engine, or leave {WISH} away",
        )
    try:
        from vidrio.engine.wasm import Module, Wasmtime
    except ImportError:
        raise ConfigError(
            "there is no engine for this system",
            found=f"no machine code that runs here ({native_path('plain').name}), and no wasmtime",
            do="pip install wasmtime, or make engine",
        ) from None

    module = Module(BUILT / MODULES.get(wish, "engine.wasm"))
    return lambda: Wasm(Wasmtime(module))


def native_path(name: str) -> Path:
    """Where the machine code for this system lies, if it was built."""
    system, machine = platform.system().lower(), platform.machine().lower()
    return BUILT / f"{system}-{machine}-{name}.{SUFFIX.get(system, 'so')}"


def supports(name: str) -> bool:
    """Whether this processor has the instructions that a build uses."""
    system = platform.system()
    if system == "Linux":
        try:
            with open("/proc/cpuinfo", "rb") as file:  # it says the same of every core, and the first is soon read
                flags = next((line for line in file if line.startswith(b"flags")), b"")
        except OSError:  # a container without /proc
            return False
        return NEEDED[name] <= set(flags.decode().split())
    if name == "avx2" and system == "Windows":
        return bool(ctypes.CDLL("kernel32").IsProcessorFeaturePresent(40))  # PF_AVX2_INSTRUCTIONS_AVAILABLE
    if name == "avx2" and system == "Darwin":
        found, size = ctypes.c_int32(), ctypes.c_size_t(4)
        ctypes.CDLL(None).sysctlbyname(b"hw.optional.avx2_0", ctypes.byref(found), ctypes.byref(size), None, 0)
        return bool(found.value)
    return False
