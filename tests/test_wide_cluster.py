"""Test bulk translation on a local Ray cluster of several nodes while workers and a node are killed.

All tests are slow, because starting a node or a worker takes seconds.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
PATIENCE = 300  # seconds
VERBS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
LINES = [f"The {a} men saw {b} dogs and {c} cats near the house." for a in VERBS for b in VERBS for c in VERBS]
FILES = 20


class Nodes:
    """A Ray cluster with a head node and two more nodes."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args=NODE)
        self.more = [self.cluster.add_node(**NODE) for _ in range(2)]

    def kill_node(self) -> None:
        self.cluster.remove_node(self.more.pop(), allow_graceful=False)

    def workers(self) -> list[int]:
        """Return the ids of the processes that hold a model on the nodes of this cluster."""
        ours = {node.all_processes["raylet"][0].process.pid for node in [self.cluster.head_node, *self.more]}
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                name, parent = (process / "cmdline").read_bytes(), (process / "stat").read_text().rpartition(")")[2]
            except OSError:
                continue
            if b"ray::attempt" in name and int(parent.split()[1]) in ours:
                found.append(int(process.name))
        return found


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        paths = [str(Path(__file__).parent), *filter(None, sys.path)]  # workers import this file
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        nodes = Nodes()
        try:
            yield nodes
        finally:
            nodes.cluster.shutdown()


def wait_for(what, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + PATIENCE
    while not what() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert what(), process.stderr and process.communicate(timeout=PATIENCE)


def begun(nodes: Nodes, folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "vidrio", *arguments, "--ray", nodes.cluster.address]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def done_in(folder: Path) -> dict[str, int]:
    """Return the complete files and their modification times."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.txt")}


def test_killed_workers_and_a_killed_node_leave_no_trace(nodes, tmp_path):
    """Kill a worker, then a node with its worker, and compare the output with that of the plain command.

    Then kill the command itself and resume it.
    """
    (tmp_path / "in").mkdir()
    each = len(LINES) // FILES
    names = [f"{number:02}.txt" for number in range(FILES)]
    for number, name in enumerate(names):
        (tmp_path / "in" / name).write_text("\n".join(LINES[number * each : (number + 1) * each]))
        command = [sys.executable, "-m", "vidrio", "translate", "-i", f"in/{name}", "-o", name]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    out = tmp_path / "out"
    process = begun(nodes, tmp_path, "translate", "-i", "in/*.txt", "-o", "out/")
    wait_for(lambda: len(done_in(out)) >= 2, process)
    os.kill(nodes.workers()[0], signal.SIGKILL)
    done = len(done_in(out))
    wait_for(lambda: len(done_in(out)) > done, process)
    nodes.kill_node()
    said, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (0, ""), told
    assert "files: 20; lines: 1,000" in told
    for name in names:
        assert (out / name).read_bytes() == (tmp_path / name).read_bytes()

    again = tmp_path / "again"
    process = begun(nodes, tmp_path, "translate", "-i", "in/*.txt", "-o", "again/")
    wait_for(lambda: len(done_in(again)) >= 3, process)
    process.kill()
    process.communicate()
    there = done_in(again)
    process = begun(nodes, tmp_path, "translate", "-i", "in/*.txt", "-o", "again/", "--resume")
    assert process.communicate(timeout=PATIENCE)[1].startswith("vidrio: files: 20 (")
    assert there.items() <= done_in(again).items()
    for name in names:
        assert (again / name).read_bytes() == (tmp_path / name).read_bytes()
