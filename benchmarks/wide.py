"""Translating on a Ray cluster beside the plain command, on the same cores, in one run; and what one more node brings.

    python benchmarks/wide.py --source FILE [--lines 10000] [--rounds 2] [--nodes]

First the plain command and `--ray` (which begins a cluster of this machine's cores, and ends it) take turns; told are
lines in a second of the whole process, and without what begins and ends only once: starting Ray, opening the model.
The outputs must be the same. Then, from a worker's own clock: how long opening the model takes, how much of its time is
reading and writing files; and how many parts a second Ray hands out when there is nothing to do in them, which bounds
how many workers it can feed. `--nodes`: clusters of 1 and 2 nodes with a core each, the same lines.
"""

import argparse
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, redirect_stderr
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
NODE = {"num_cpus": 1, "object_store_memory": 200 << 20, "include_dashboard": False}


class Nothing:
    """A worker with nothing to do."""

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return row


@contextmanager
def no_bar(title: str, total: int) -> Any:
    yield lambda done: None


def seconds(do: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = do()
    return time.perf_counter() - began, result


def plain(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "vidrio",
        "translate",
        "-i",
        str(folder / "in.txt"),
        "-o",
        str(folder / "plain.txt"),
    ]
    subprocess.run(command, check=True, capture_output=True)


def wide(folder: Path, address: str | None = None) -> Any:
    """The command's own way, in this process, for its summary."""
    from vidrio.commands import _wide
    from vidrio.commands.translate import translate
    from vidrio.wide.bulk import answer_files

    found = []

    def answered(asked: Any, _: Any) -> Any:
        found.append(answer_files(asked, no_bar))
        return found[0]

    arguments = ["-i", str(folder / "in.txt"), "-o", str(folder / "out"), "--ray", *([address] if address else [])]
    with redirect_stderr(io.StringIO()), patch.object(_wide, "answer_files", answered):
        translate.main(arguments, standalone_mode=False)
    return found[0]


def handing_out(count: int) -> float:
    """Parts a second that Ray hands out and takes back."""
    from vidrio.wide.cluster import cluster, results, share_out

    with cluster(None):
        rows = [{"number": number} for number in range(count)]
        arrived = [time.perf_counter() for _ in results(Nothing, (), rows, share_out(None))]
    return (len(arrived) - 1) / (arrived[-1] - arrived[0])


def nodes(folder: Path, count: int) -> tuple[float, Any]:
    from ray.cluster_utils import Cluster

    machines = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        for _ in range(count - 1):
            machines.add_node(**NODE)
        return seconds(lambda: wide(folder, machines.address))
    finally:
        machines.shutdown()


def told(name: str, lines: int, times: Sequence[float]) -> float:
    rate = lines / statistics.median(times)
    print(f"{name:34}{rate:8,.0f} lines/s   ({min(times):.1f} to {max(times):.1f} s)", flush=True)
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--nodes", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with given.source.open("rb") as file:
            text = [line.rstrip(b"\n") for line in file]
        (folder / "in.txt").write_bytes(b"\n".join(islice(cycle(text), given.lines)) + b"\n")
        alone, together, working = [], [], []
        for _ in range(given.rounds):
            alone.append(seconds(lambda: plain(folder))[0])
            took, summary = seconds(lambda: wide(folder))
            together.append(took)
            working.append(summary.working)
            if (folder / "plain.txt").read_bytes() != (folder / "out" / "in.txt").read_bytes():
                raise SystemExit("the outputs differ")
        rate = told("plain", given.lines, alone)
        share = told("--ray, the whole command", given.lines, together) / rate
        steady = told("--ray, once its workers are there", given.lines, working) / rate
        print(f"of the plain command: {share:.2f} in all, {steady:.2f} once its workers are there")
        print(f"a worker: {summary.seconds['opening']:.1f} s to open the model, files "
              f"{summary.seconds['files'] / sum(summary.seconds.values()):.1%} of its time")  # fmt: skip
        print(f"Ray hands out {handing_out(300):,.0f} parts a second")
        for count in (1, 2) if given.nodes else ():
            took, summary = nodes(folder, count)
            told(f"{count} nodes of one core, in all", given.lines, [took])
            told(f"{count} nodes of one core, working", given.lines, [summary.working])


if __name__ == "__main__":
    main()
