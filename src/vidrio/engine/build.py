"""python -m vidrio.engine.build [--all]: compile the engine to WebAssembly and machine code, in `built/`.

The compiler is the clang in PyPI's `ziglang`. It compiles for every system on every system, and one version of it
always makes the same bytes from the same source. WebAssembly and machine code for Linux are in the repository, so that
a clone is fast without a compiler; a test compiles and compares them. `--all` also makes machine code for other
systems.
"""

import platform
import subprocess
import sys
from pathlib import Path

from vidrio.engine.library import FUNCTIONS
from vidrio.errors import VidrioError
from vidrio.model.config import LARGEST_BEAM

HERE = Path(__file__).parent
SOURCE, BUILT = HERE / "c", HERE / "built"

# No fast-math and no contraction: sums are rounded where the source says, on every processor.
LIMIT = f"-DLARGEST_BEAM={LARGEST_BEAM}"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
FLAGS = ["-std=gnu11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-sanitize=all", *WARNINGS, LIMIT]
SMALL = ["-g0", "-s", f"-ffile-prefix-map={SOURCE}=."]  # no debug information, no path of this machine

# The builds: the compiler's target, and the processor or its features (docs/engine.md).
WEBASSEMBLY = {
    "engine.wasm": ["wasm32-wasi", "-msimd128", "-mrelaxed-simd"],
    "engine-core.wasm": ["wasm32-wasi", "-msimd128"],  # without relaxed SIMD, which Safari lacks
}
SUMS = {"glass.wasm": ("whole_product", "in_order")}  # of c/glass.c, for the reference in a browser
NATIVE = {
    "linux-x86_64-plain.so": ["x86_64-linux-gnu.2.17", "-mcpu=x86_64"],
    "linux-x86_64-avx2.so": ["x86_64-linux-gnu.2.17", "-mcpu=x86_64_v3"],
    "linux-x86_64-vnni.so": ["x86_64-linux-gnu.2.17", "-mcpu=x86_64_v4+avx512vnni"],
    "linux-aarch64-plain.so": ["aarch64-linux-gnu.2.17"],
    "darwin-arm64-plain.dylib": ["aarch64-macos.11.0"],
    "windows-amd64-avx2.dll": ["x86_64-windows-gnu", "-mcpu=x86_64_v3"],
}


def compile_to(folder: Path, name: str) -> None:
    """Compile one of the builds into a folder."""
    wasm = name in WEBASSEMBLY or name in SUMS
    target, *features = NATIVE[name] if not wasm else WEBASSEMBLY.get(name, WEBASSEMBLY["engine-core.wasm"])
    source, exported = ("glass.c", SUMS[name]) if name in SUMS else ("engine.c", FUNCTIONS)
    if wasm:
        # A reactor: a library without a main function. It imports nothing, so a page needs no shim.
        names = [*exported, "malloc", "free", "__stack_pointer"]
        link = ["-mexec-model=reactor", *(f"-Wl,--export={each}" for each in names)]
    else:
        link = ["-shared", *([] if name.endswith(".dll") else ["-fPIC"])]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *features, *FLAGS, *SMALL, *link]
    folder.mkdir(exist_ok=True)
    command += ["-o", name, str(SOURCE / source)]  # an Apple library contains the name under which it is made
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        found = done.stderr.strip()[-2000:]
        raise VidrioError(f"{name} cannot be compiled", found=found, do="mend the source, or pip install ziglang")
    (folder / "engine.lib").unlink(missing_ok=True)  # what programs link against for a Windows library


SHIPPED = [*WEBASSEMBLY, *SUMS, *(name for name in NATIVE if name.startswith("linux-"))]  # part of the repository


def here(name: str) -> bool:
    """Whether a native build is for this system."""
    return name.startswith(f"{platform.system()}-{platform.machine()}-".lower())


def main(arguments: list[str]) -> None:
    for name in [*SHIPPED, *(name for name in NATIVE if name not in SHIPPED and ("--all" in arguments or here(name)))]:
        compile_to(BUILT, name)
        print(f"{(BUILT / name).stat().st_size:8,} bytes  {name}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except VidrioError as error:
        sys.exit(str(error))
