"""Which build of the engine runs: the best machine code for this processor if it is there, else WebAssembly.

All of them give the same bits. `VIDRIO_ENGINE` names one of them, for tests and benchmarks.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from vidrio.engine.native import Native
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


class Library(Protocol):
    """The engine, loaded. What it calls an address means something to it alone."""

    shares_models: bool  # whether any number of threads may use one model; else each thread needs a library of its own

    @property
    def functions(self) -> Any: ...  # of engine.h, by their names; pointers are addresses, ctypes arrays or bytes
    def load(self, sizes: Any, tensors: Any, data: "memoryview[int]") -> int: ...
    def free(self, name: str, *addresses: int) -> None: ...
    def read(self, address: int, size: int = -1) -> bytes: ...  # so many bytes, or as many as come before a zero


def opener(wish: str | None = None) -> Callable[[], Library]:
    """What opens the library that is wished for, or the best one that runs here, any number of times."""
    if sys.platform == "emscripten":
        from vidrio.engine import browser

        code = browser.best(BUILT, list(MODULES.values()))
        return lambda: browser.Browser(code)
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
        from vidrio.engine.wasm import Module, Wasm
    except ImportError:
        raise ConfigError(
            "there is no engine for this system",
            found=f"no machine code that runs here ({native_path('plain').name}), and no wasmtime",
            do="pip install wasmtime, or make engine",
        ) from None

    module = Module(BUILT / MODULES.get(wish, "engine.wasm"))
    return lambda: Wasm(module)


def native_path(name: str) -> Path:
    """Where the machine code for this system lies, if it was built."""
    system, machine = platform.system().lower(), platform.machine().lower()
    return BUILT / f"{system}-{machine}-{name}.{SUFFIX.get(system, 'so')}"


def supports(name: str) -> bool:
    """Whether this processor has the instructions that a build uses."""
    system = platform.system()
    if system == "Linux":
        try:
            with open("/proc/cpuinfo", "rb") as file:  # it says the same of every core; the first is soon read
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
