"""The engine as a library, and which build of it runs: the best machine code for this processor if it is there, else
WebAssembly. All of them give the same bits. `VIDRIO_ENGINE` names one, for tests and benchmarks.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
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

# Results and arguments of the engine's functions: p for a pointer or a size, i for int32_t.
FUNCTIONS = {
    **{"model_load": "p:ppipp", "model_problem": "p:", "model_free": ":p"},
    **{"search_new": "p:pi", "search_add": "p:ppippipi", "search_run": "i:pi", "search_next": "p:p"},
    **{"search_drop": ":pp", "search_free": ":p"},
    **{"sentence_found": "p:pi", "hypothesis_tokens": "p:p", "sentence_attention": "p:p"},
    **{"forced": "p:pppipi", "classify": "p:pppi", "release": ":p"},
    **{"record_new": "p:", "record_quantities": "p:p", "record_count": "i:p", "record_free": ":p"},
}
TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int32, "": None}


class Native:
    """The engine as machine code in this process: a shared library. Calls leave other Python threads running."""

    shares_models = True  # any number of threads may use one model
    read = staticmethod(ctypes.string_at)  # so many bytes at an address

    def __init__(self, path: Path) -> None:
        self.functions: Any = ctypes.CDLL(str(path))  # where C wants a pointer: an address, or bytes that it only reads
        for name, types in FUNCTIONS.items():
            result, arguments = types.split(":")
            function = getattr(self.functions, name)
            function.restype, function.argtypes = TYPES[result], [TYPES[letter] for letter in arguments]


class Instance(Protocol):
    """An instance of the WebAssembly module, as wasmtime (wasm.py) or a browser (browser.py) runs it."""

    shares_models: bool

    def call(self, name: str, *numbers: int) -> int: ...
    def write(self, address: int, data: bytes) -> None: ...
    def read(self, address: int, size: int) -> bytes: ...


class Wasm:
    """The engine as WebAssembly: on any processor, and shut in. Whatever a model file holds, the module reaches its own
    memory and nothing else; it imports no function. So bytes are copied into its memory for as long as a call takes."""

    def __init__(self, instance: Instance) -> None:
        self._instance, self.shares_models, self.read = instance, instance.shares_models, instance.read
        self.functions: Any = SimpleNamespace(**{name: partial(self._call, name) for name in FUNCTIONS})

    def _call(self, name: str, *arguments: int | bytes) -> int:
        call = self._instance.call
        given = [each + bytes(-len(each) % 8) if isinstance(each, bytes) else each for each in arguments]
        data = b"".join(each for each in given if isinstance(each, bytes))
        start = place = call("malloc", len(data)) if data else 0
        if data and not start:
            raise MemoryError("WebAssembly has at most 4 GB")
        self._instance.write(start, data)
        numbers = []
        for each in given:
            numbers.append(place if isinstance(each, bytes) else each)
            place += len(each) if isinstance(each, bytes) else 0
        result = call(name, *numbers)
        call("free", start)
        return result


Library = Native | Wasm


def opener(wish: str | None = None) -> Callable[[], Library]:
    """What opens the wished build, or the best one that runs here, any number of times."""
    if sys.platform == "emscripten":
        from vidrio.engine import browser

        code = browser.best(BUILT, list(MODULES.values()))
        return lambda: Wasm(browser.Browser(code))
    wish = wish or os.environ.get(WISH) or "auto"
    for name in (*NATIVE, "wasm") if wish == "auto" else (wish,):
        if open_library := _webassembly(MODULES[name]) if name in MODULES else _machine_code(name):
            return open_library
    raise ConfigError(
        "no build of the engine runs here",
        found=f"{WISH} is {wish!r}; no {native_path('plain').name} or better one for this processor, or no wasmtime",
        do=f"pip install wasmtime, or make engine; {WISH} may be {', '.join(CHOICES)}",
    )


def _machine_code(name: str) -> Callable[[], Library] | None:
    if not supports(name):
        return None
    try:
        library = Native(native_path(name))
    except OSError:  # it was not built, or with another libc
        return None
    return lambda: library


def _webassembly(module: str) -> Callable[[], Library] | None:
    try:
        from vidrio.engine.wasm import instances
    except ImportError:
        return None
    new = instances(BUILT / module)
    return lambda: Wasm(new())


def native_path(name: str) -> Path:
    """Where the machine code for this system lies, if it was built."""
    system, machine = platform.system().lower(), platform.machine().lower()
    return BUILT / f"{system}-{machine}-{name}.{SUFFIX.get(system, 'so')}"


def supports(name: str) -> bool:
    """Whether this processor has the instructions that a build uses."""
    system = platform.system()
    if name == "plain":
        return True
    if name in NEEDED and system == "Linux":
        try:
            with open("/proc/cpuinfo", "rb") as file:  # it says the same of every core, and the first is soon read
                flags = next((line for line in file if line.startswith(b"flags")), b"")
        except OSError:  # a container without /proc
            return False
        return NEEDED[name] <= set(flags.decode().split())
    if name == "avx2" and system == "Windows":
        return bool(ctypes.CDLL("kernel32").IsProcessorFeaturePresent(40))  # PF_AVX2_INSTRUCTIONS_AVAILABLE
    return False
