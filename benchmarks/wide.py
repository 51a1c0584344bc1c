"""Translating on a Ray cluster beside the plain command, on the same cores, taking turns; and what another node brings.

    python benchmarks/wide.py --source FILE [--lines 10000] [--rounds 2] [--nodes]
    python benchmarks/wide.py --source FILE --lines 1000000 --rounds 1

The lines are those of the file, and then these again with a number in each, so that all are different. Told are lines
in a second, processor time (which work beside it changes little) and memory, of the plain command and of `--ray` with
all of its processes (it begins a cluster of this machine's cores, and ends it); and `--ray` without what begins and
ends only once. The outputs must be the same. Then, how many parts a second Ray hands out when there is nothing to do in
them, which bounds how many workers it can feed. `--nodes`: clusters of 1 and 2 nodes with a core each, the same lines.
"""

import argparse
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

from vidrio.wide import cluster

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
NODE = {"num_cpus": 1, "object_store_memory": 200 << 20, "include_dashboard": False}
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
GLANCE = 0.2  # seconds


class Spent(NamedTuple):
    """What a command took, with all that it began."""

    seconds: float
    processor: float  # seconds
    memory: float  # MB, the most of the largest process
    whole: float  # the same of all of them together
    told: str


def spent(command: Sequence[str]) -> Spent:
    """Processes are known by a mark in their environment: some of Ray's leave their parents."""
    name, mark = "VIDRIO_BENCHMARK", str(time.time_ns())
    began = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, name: mark}, stdout=subprocess.PIPE, text=True)
    taken: dict[str, float] = {}
    most: dict[str, float] = {}
    while process.poll() is None:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"{name}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    taken[folder.name] = (int(fields[11]) + int(fields[12])) / TICKS
                    most[folder.name] = max(most.get(folder.name, 0), int(fields[21]) * PAGE / 1e6)
            except OSError:  # it has ended
                continue
        time.sleep(GLANCE)
    if process.returncode or process.stdout is None:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    memory = max(most.values()), sum(most.values())
    return Spent(time.perf_counter() - began, sum(taken.values()), *memory, process.stdout.read())


def distinct(lines: Sequence[str]) -> Iterator[str]:
    """These lines, and then the same with a number at their ends, for ever."""
    yield from lines
    for number in count(2):
        for line in lines:
            yield f"{line[:-1]} {number}{line[-1:]}"


def seconds(do: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = do()
    return time.perf_counter() - began, result


def wide(folder: Path, address: str | None = None) -> float:
    """The command's own way, in this process; how many seconds of it were with workers that have opened the model."""
    from vidrio.commands.translate import translate
    from vidrio.wide.cluster import Workers

    heard: list[float] = []

    class Heard(Workers):
        def next(self) -> tuple[int, Any, Any]:
            answer = super().next()
            heard.append(time.perf_counter())
            return answer

    arguments = ["-i", str(folder / "in.txt"), "-o", str(folder / "out"), "--ray", *([address] if address else [])]
    with redirect_stderr(io.StringIO()), patch.object(cluster, "Workers", Heard):
        translate.main(arguments, standalone_mode=False)
    return heard[-1] - heard[0]


def doing_nothing() -> Callable[[Any], Any]:
    return lambda piece: None


def handing_out(pieces: int) -> float:
    """Parts a second that Ray hands out and takes back."""
    from vidrio.wide.cluster import cluster, results, share_out

    with cluster(None):
        arrived = [time.perf_counter() for _ in results(doing_nothing, range(pieces), share_out(None))]
    return (len(arrived) - 1) / (arrived[-1] - arrived[0])


def nodes(folder: Path, number: int) -> tuple[float, float]:
    from ray.cluster_utils import Cluster

    machines = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        for _ in range(number - 1):
            machines.add_node(**NODE)
        return seconds(lambda: wide(folder, machines.address))
    finally:
        machines.shutdown()


def told(name: str, lines: int, runs: Sequence[Spent]) -> float:
    times = [run.seconds for run in runs]
    print(f"{name:12}{lines / median(times):8,.0f} lines/s   ({min(times):.1f} to {max(times):.1f} s), "
          f"{median(run.processor for run in runs):.1f} s of the processor, "
          f"{max(run.memory for run in runs):.0f} MB the largest process, {max(run.whole for run in runs):.0f} all",
          flush=True)  # fmt: skip
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--nodes", action="store_true")
    parser.add_argument("--wide", type=Path, metavar="FOLDER", help="only translate FOLDER/in.txt with Ray")
    given = parser.parse_args()
    if given.wide:
        print(wide(given.wide))
        return
    if given.source is None:
        parser.error("--source FILE is missing")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        text = [line for line in given.source.read_text("utf-8").splitlines() if line]
        with (folder / "in.txt").open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in islice(distinct(text), given.lines))
        files = ["-i", str(folder / "in.txt"), "-o", str(folder / "plain.txt")]
        alone, together = [], []
        for _ in range(given.rounds):
            alone.append(spent([sys.executable, "-m", "vidrio", "translate", *files]))
            together.append(spent([sys.executable, __file__, "--wide", str(folder)]))
            if (folder / "plain.txt").read_bytes() != (folder / "out" / "in.txt").read_bytes():
                raise SystemExit("the outputs differ")
        plain, whole = told("plain", given.lines, alone), told("--ray", given.lines, together)
        working = median(float(run.told) for run in together)
        processor = sum(run.processor for run in alone) / sum(run.processor for run in together)
        print(f"of the plain command: {plain / whole:.2f} in all, {plain / working:.2f} once its workers are there "
              f"({given.lines / working:,.0f} lines/s), {processor:.2f} by processor time")  # fmt: skip
        print(f"Ray hands out {handing_out(1000):,.0f} parts a second")
        for number in (1, 2) if given.nodes else ():
            took, working = nodes(folder, number)
            rates = f"{given.lines / took:,.0f} lines/s, {given.lines / working:,.0f} once they work"
            print(f"{number} nodes of one core: {rates}")


if __name__ == "__main__":
    main()
