"""Compare bulk translation on a Ray cluster with the plain command, alternating between them on the same cores.

    python benchmarks/wide.py --source FILE [--lines 10000] [--rounds 2]

The lines of the file are followed by copies with a number inserted, so that all lines differ. For the plain command and
for `--ray`, the script prints lines per second, CPU time (which other load affects little) and memory. The figures for
`--ray` include all its processes, and starting and stopping a cluster on this machine. The outputs must be identical.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
GLANCE = 0.2  # seconds between samples


class Spent(NamedTuple):
    """The cost of a command, including all processes that it started."""

    seconds: float
    processor: float  # CPU seconds
    memory: float  # peak of the largest process in MB
    whole: float  # sum of the peaks of all processes in MB


def spent(command: Sequence[str]) -> Spent:
    """Run a command. Its processes are identified by an environment variable, because some Ray processes detach."""
    name, mark = "VIDRIO_BENCHMARK", str(time.time_ns())
    began = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, name: mark})
    taken: dict[str, float] = {}
    most: dict[str, float] = {}
    while process.poll() is None:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"{name}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    taken[folder.name] = (int(fields[11]) + int(fields[12])) / TICKS
                    most[folder.name] = max(most.get(folder.name, 0), int(fields[21]) * PAGE / 1e6)
            except OSError:  # the process has ended
                continue
        time.sleep(GLANCE)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    memory = max(most.values()), sum(most.values())
    return Spent(time.perf_counter() - began, sum(taken.values()), *memory)


def distinct(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, followed by an endless sequence of copies with a number at the end."""
    yield from lines
    for number in count(2):
        for line in lines:
            yield f"{line[:-1]} {number}{line[-1:]}"


def told(name: str, lines: int, runs: Sequence[Spent]) -> float:
    times = [run.seconds for run in runs]
    print(f"{name:12}{lines / median(times):8,.0f} lines/s   ({min(times):.1f} to {max(times):.1f} s), "
          f"{median(run.processor for run in runs):.1f} s of the processor, "
          f"{max(run.memory for run in runs):.0f} MB the largest process, {max(run.whole for run in runs):.0f} all",
          flush=True)  # fmt: skip
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    vidrio = [sys.executable, "-m", "vidrio", "translate", "-i"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        text = [line for line in given.source.read_text("utf-8").splitlines() if line]
        with (folder / "in.txt").open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in islice(distinct(text), given.lines))
        alone, together = [], []
        for _ in range(given.rounds):
            alone.append(spent([*vidrio, str(folder / "in.txt"), "-o", str(folder / "plain.txt")]))
            together.append(spent([*vidrio, str(folder / "in.txt"), "-o", str(folder / "out"), "--ray"]))
            if (folder / "plain.txt").read_bytes() != (folder / "out" / "in.txt").read_bytes():
                raise SystemExit("the outputs differ")
        plain, whole = told("plain", given.lines, alone), told("--ray", given.lines, together)
        processor = sum(run.processor for run in alone) / sum(run.processor for run in together)
        print(f"--ray, of the plain command: {plain / whole:.2f}, {processor:.2f} by processor time")


if __name__ == "__main__":
    main()
