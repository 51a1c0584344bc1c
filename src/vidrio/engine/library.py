"""Load a build of the engine: the best native build for this processor or, if there is none, WebAssembly.

All builds give bit-for-bit identical results. The environment variable `VIDRIO_ENGINE` selects a build.
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

from vidrio.engine.turns import Turns
from vidrio.errors import ConfigError

BUILT = Path(__file__).parent / "built"
WISH = "VIDRIO_ENGINE"
MODULES = {"wasm": "engine.wasm", "wasm-core": "engine-core.wasm"}
NATIVE = ("vnni", "avx2", "plain")  # native builds, fastest first
CHOICES = ("auto", *NATIVE, *MODULES)
SUFFIX = {"linux": "so", "darwin": "dylib", "windows": "dll"}
# The flags in /proc/cpuinfo for the instructions that a build may use: x86-64-v2, v3 (abm means LZCNT) and v4.
V2 = {"cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2"}
V3 = V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
NEEDED = {"vnni": V4 | {"avx512_vnni"}, "avx2": V3}

# The result and argument types of the engine's functions: p for a pointer or a size, i for int32_t.
FUNCTIONS = {
    **{"model_load": "p:ppipp", "model_problem": "p:", "model_free": ":p"},
    **{"search_new": "p:pi", "search_add": "p:ppippipipi", "sentence_shortlist": "i:pppi"},
    **{"search_run": "i:pi", "search_next": "p:p"},
    **{"search_drop": ":pp", "search_free": ":p"},
    **{"sentence_found": "p:pi", "hypothesis_tokens": "p:p", "sentence_attention": "p:p"},
    **{"forced": "p:pppipippi", "classify": "p:pppi", "release": ":p"},
    **{"record_new": "p:", "record_quantities": "p:p", "record_count": "i:p", "record_drop": ":p", "record_free": ":p"},
}
TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int32, "": None}


class Native:
    """The engine as a native shared library. Calls release the GIL, so other Python threads keep running."""

    shares_models = True  # any number of threads may use a model at the same time
    read = staticmethod(ctypes.string_at)  # returns a given number of bytes at an address

    def __init__(self, path: Path) -> None:
        self.functions: Any = ctypes.CDLL(str(path))  # pointers are passed as addresses, or as bytes that C only reads
        for name, types in FUNCTIONS.items():
            result, arguments = types.split(":")
            function = getattr(self.functions, name)
            function.restype, function.argtypes = TYPES[result], [TYPES[letter] for letter in arguments]

    def size(self) -> int:
        """Return the size of the library's own memory. Native code has none."""
        return 0


class Instance(Protocol):
    """An instance of the WebAssembly module, in wasmtime (wasm.py) or in a browser (browser.py)."""

    def call(self, name: str, *numbers: int) -> int: ...
    def write(self, address: int, data: bytes) -> None: ...
    def read(self, address: int, size: int) -> bytes: ...
    def size(self) -> int: ...


class Wasm:
    """The engine as WebAssembly, which runs on any processor.

    WebAssembly is a sandbox: whatever a model file contains, the module can access only its own memory, and it imports
    no functions. Arguments are therefore copied into the module's memory for the duration of a call. Threads that share
    an instance take turns, one call at a time.
    """

    shares_models = False

    def __init__(self, instance: Instance) -> None:
        self._instance, self._turns = instance, Turns()
        # The functions hold no reference to this object. Without a reference cycle, an instance is freed immediately.
        calls = {name: partial(_call, instance, self._turns, name) for name in FUNCTIONS}
        self.functions: Any = SimpleNamespace(**calls)

    def read(self, address: int, size: int) -> bytes:
        with self._turns:
            return self._instance.read(address, size)

    def size(self) -> int:
        with self._turns:
            return self._instance.size()


def _call(instance: Instance, turns: Turns, name: str, *arguments: int | bytes) -> int:
    """Call a function of the module. Arguments of type bytes are copied into the module's memory."""
    given = [each + bytes(-len(each) % 8) if isinstance(each, bytes) else each for each in arguments]
    data = b"".join(each for each in given if isinstance(each, bytes))
    with turns:
        start = place = instance.call("malloc", len(data)) if data else 0
        if data and not start:
            raise MemoryError(f"WebAssembly has {instance.size():,} bytes and gets no more")
        instance.write(start, data)
        numbers = []
        for each in given:
            numbers.append(place if isinstance(each, bytes) else each)
            place += len(each) if isinstance(each, bytes) else 0
        try:
            return instance.call(name, *numbers)
        finally:
            instance.call("free", start)


Library = Native | Wasm


def opener(wish: str | None = None) -> Callable[[], Library]:
    """Return a function that opens the selected build or, by default, the best build that runs here. The function can
    be called repeatedly."""
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
    except (OSError, AttributeError):  # not built, built for another libc, or built from older sources
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
    """Return the path of a native build for this system, whether or not the build exists."""
    system, machine = platform.system().lower(), platform.machine().lower()
    return BUILT / f"{system}-{machine}-{name}.{SUFFIX.get(system, 'so')}"


def supports(name: str) -> bool:
    """Return whether this processor supports the instructions that a build uses."""
    system = platform.system()
    if name == "plain":
        return True
    if name in NEEDED and system == "Linux":
        try:
            with open("/proc/cpuinfo", "rb") as file:  # the flags of the first core suffice, as all cores are alike
                flags = next((line for line in file if line.startswith(b"flags")), b"")
        except OSError:  # e.g. in a container without /proc
            return False
        return NEEDED[name] <= set(flags.decode().split())
    if name == "avx2" and system == "Windows":
        return bool(ctypes.CDLL("kernel32").IsProcessorFeaturePresent(40))  # PF_AVX2_INSTRUCTIONS_AVAILABLE
    return False
