"""Bulk work on a real Ray cluster of several nodes on this machine, while workers and a node are killed. All slow: a
node takes seconds to start, and some more each worker."""

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
# The command with parts of some 4 KB, so that little text is many parts.
COMMAND = (
    "import vidrio.wide.parts as p; p.PART = p.BLOCK = 4096; from vidrio.cli import main; raise SystemExit(main())"
)


class Nodes:
    """A head and two more."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args=NODE)
        self.more = [self.cluster.add_node(**NODE) for _ in range(2)]

    def kill_node(self) -> None:
        self.cluster.remove_node(self.more.pop(), allow_graceful=False)

    def workers(self) -> list[int]:
        """The processes that hold a model on the nodes of this cluster."""
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
    command = [sys.executable, "-c", COMMAND, *arguments, "--ray", nodes.cluster.address]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def parts_in(folder: Path) -> int:
    return sum(path.name.isdigit() for path in folder.glob("*"))


def plain(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "vidrio", *arguments], cwd=folder, check=True, capture_output=True)


def test_killed_workers_and_a_killed_node_leave_no_trace(nodes, tmp_path):
    """In the middle a worker is killed, then a node with its worker; what comes out is what the plain command writes.
    Then the command itself is killed, and goes on."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("\n".join(LINES[:900]))
    (tmp_path / "in" / "b.txt").write_text("\n".join(LINES[900:]) + "\n")
    for name in ("a.txt", "b.txt"):
        plain(tmp_path, "translate", "-i", f"in/{name}", "-o", name)
    process = begun(nodes, tmp_path, "translate", "-i", "in/*.txt", "-o", "out/")
    parts = tmp_path / "out" / ".vidrio" / "a.txt"
    wait_for(lambda: parts_in(parts) >= 2, process)
    os.kill(nodes.workers()[0], signal.SIGKILL)
    done = parts_in(parts)
    wait_for(lambda: parts_in(parts) > done, process)
    nodes.kill_node()
    out, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, ""), told
    assert "files: 2; lines: 1,000" in told
    for name in ("a.txt", "b.txt"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / name).read_bytes()

    process = begun(nodes, tmp_path, "translate", "-i", "in/*.txt", "-o", "again/")
    parts = tmp_path / "again" / ".vidrio" / "a.txt"
    wait_for(lambda: parts_in(parts) >= 3, process)
    process.kill()
    process.communicate()
    there = {path: path.stat().st_mtime_ns for path in parts.glob("0*") if path.name.isdigit()}
    process = begun(nodes, tmp_path, "translate", "-i", "in/*.txt", "-o", "again/", "--resume")
    wait_for(lambda: parts_in(parts) > len(there) or (tmp_path / "again" / "a.txt").exists(), process)
    kept = {path: path.stat().st_mtime_ns for path in there if path.exists()}
    assert kept.items() <= there.items()
    assert process.communicate(timeout=PATIENCE)[1].startswith("vidrio: files: 2")
    for name in ("a.txt", "b.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / name).read_bytes()
