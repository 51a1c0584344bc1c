"""python -m vidrio.engine.build [--all]: compile the engine to WebAssembly and native code, in `built/`.

The compiler is clang, from the PyPI package `ziglang`. It can cross-compile for every supported system, and each
version always compiles the same source to the same bytes. The WebAssembly and Linux builds are part of the repository,
so that a fresh checkout is fast even without a compiler, together with the checksums of the source and of each build
(`built-from.txt`). A slow test rebuilds them and compares the bytes. `--all` also builds native code for other systems.
"""

import hashlib
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from vidrio.engine.library import FUNCTIONS
from vidrio.errors import VidrioError
from vidrio.model.config import LARGEST_BEAM

HERE = Path(__file__).parent
SOURCE, BUILT = HERE / "c", HERE / "built"
RECORD = "built-from.txt"

# Fast-math and contraction are off, so that every processor rounds results exactly where the source code says.
LIMIT = f"-DLARGEST_BEAM={LARGEST_BEAM}"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
FLAGS = ["-std=gnu11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-sanitize=all", *WARNINGS, LIMIT]
SMALL = ["-g0", "-s", f"-ffile-prefix-map={SOURCE}=."]  # omits debug information and the build machine's paths

# The compiler's target and the processor features of each build (docs/engine.md).
WEBASSEMBLY = {
    "engine.wasm": ["wasm32-wasi", "-msimd128", "-mrelaxed-simd"],
    "engine-core.wasm": ["wasm32-wasi", "-msimd128"],  # without relaxed SIMD, which Safari lacks
}
SUMS = {"glass.wasm": ("whole_product", "in_order")}  # built from c/glass.c, for the reference in a browser
NATIVE = {
    "linux-x86_64-plain.so": ["x86_64-linux-gnu.2.17", "-mcpu=x86_64"],
    "linux-x86_64-avx2.so": ["x86_64-linux-gnu.2.17", "-mcpu=x86_64_v3"],
    "linux-x86_64-vnni.so": ["x86_64-linux-gnu.2.17", "-mcpu=x86_64_v4+avx512vnni"],
    "linux-aarch64-plain.so": ["aarch64-linux-gnu.2.17"],
    "darwin-arm64-plain.dylib": ["aarch64-macos.11.0"],
    "windows-amd64-avx2.dll": ["x86_64-windows-gnu", "-mcpu=x86_64_v3"],
}


def source_and_options(name: str) -> tuple[str, list[str]]:
    """Return the source file of a build and the compiler's options."""
    wasm = name in WEBASSEMBLY or name in SUMS
    target, *features = NATIVE[name] if not wasm else WEBASSEMBLY.get(name, WEBASSEMBLY["engine-core.wasm"])
    source, exported = ("glass.c", SUMS[name]) if name in SUMS else ("engine.c", FUNCTIONS)
    if wasm:
        # A reactor is a library without a main function. It imports nothing, so a web page needs no WASI shim.
        names = [*exported, "malloc", "free", "__stack_pointer"]
        link = ["-mexec-model=reactor", *(f"-Wl,--export={each}" for each in names)]
    else:
        link = ["-shared", *([] if name.endswith(".dll") else ["-fPIC"])]
    return source, ["-target", target, *features, *FLAGS, *SMALL, *link]


def compile_to(folder: Path, name: str) -> None:
    """Compile the build with this name into a folder."""
    source, options = source_and_options(name)
    command = [sys.executable, "-m", "ziglang", "cc", *options]
    folder.mkdir(exist_ok=True)
    command += ["-o", name, str(SOURCE / source)]  # relative, because Apple libraries contain the output path
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        found = done.stderr.strip()[-2000:]
        raise VidrioError(
            f"{name} cannot be compiled", found=found, do="fix the source code, or run: pip install ziglang"
        )
    (folder / "engine.lib").unlink(missing_ok=True)  # the import library of a Windows build


SHIPPED = [*WEBASSEMBLY, *SUMS, *(name for name in NATIVE if name.startswith("linux-"))]  # stored in the repository


def here(name: str) -> bool:
    """Return whether a native build is for this system."""
    return name.startswith(f"{platform.system()}-{platform.machine()}-".lower())


def record(folder: Path = BUILT) -> str:
    """Return the checksum of everything that the shipped builds are made from, and the checksum of each build."""
    made_from = hashlib.sha256(f"ziglang {version('ziglang')}\0".encode())
    for path in sorted(SOURCE.glob("*.[ch]")):
        made_from.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    for name in SHIPPED:
        source, options = source_and_options(name)
        made_from.update("\0".join([name, source, *options, ""]).replace(str(HERE), ".").replace("\\", "/").encode())
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in SHIPPED}
    return "".join(f"{digest}  {name}\n" for name, digest in [("source", made_from.hexdigest()), *sums.items()])


def main(arguments: list[str]) -> None:
    for name in [*SHIPPED, *(name for name in NATIVE if name not in SHIPPED and ("--all" in arguments or here(name)))]:
        compile_to(BUILT, name)
        print(f"{(BUILT / name).stat().st_size:8,} bytes  {name}")
    (BUILT / RECORD).write_text(record(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except VidrioError as error:
        sys.exit(str(error))
