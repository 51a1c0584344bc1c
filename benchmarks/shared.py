"""Helpers shared by the benchmarks: the name of the processor, the cost of a process, and paths of tests and data."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = REPOSITORY / "tests"
# Default paths of the data sets.
ENGLISH_SPANISH, MULTI30K = Path("../shared/data/en-es"), Path("../shared/data/multi30k")
TATOEBA = ENGLISH_SPANISH / "test/tatoeba-test-v2020-07-28.en"
# A realistic sentence of 20 words (25 tokens) that fits on a screen.
SENTENCE = "The old man gave Tom three books yesterday, but he did not read them because he had no time at all."

MEASURED = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, status)
"""


class Cost(NamedTuple):
    """The cost of a process."""

    seconds: float
    processor: float  # CPU seconds
    megabytes: float  # peak memory


def cost_of(command: Sequence[str], environment: dict[str, str] | None = None) -> Cost:
    """Run a command, and raise an error if it fails. A small process starts the command, because a child's peak memory
    includes its parent's."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command], capture_output=True, text=True, check=True, env=environment
    )
    seconds, processor, memory, status = done.stdout.split()
    if status != "0":
        raise SystemExit(f"{' '.join(command)} failed\n{done.stderr[-2000:]}")
    return Cost(float(seconds), float(processor), int(memory) / (2**20 if sys.platform == "darwin" else 2**10))


def memory(what: str, process: int | str = "self") -> int:
    """Return a memory figure in bytes, on Linux: VmRSS is current use, VmHWM the peak, RssFile the mapped files."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(what))


def forget_peak(process: int | str = "self") -> None:
    """Reset the peak memory, VmHWM."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


def processor() -> str:
    """Return the name of the processor and the load of the machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{name}, {os.cpu_count()} cores{load}"


def timed(run: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
