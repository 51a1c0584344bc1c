"""Memory: what a long training gives back, and settings that leave the user's own alone."""

import os
import subprocess
import sys

import pytest

from vidrio.learn.machine import settle

# What a long training leaves behind: among many blocks that are free, here and there one that is still in use.
SCATTERED = """
import numpy as np
from pathlib import Path
from vidrio.learn.machine import give_back_memory, keep_memory

def now():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

keep_memory()
give_back_memory()  # what importing has left unused
before = now()
blocks = [np.ones(60_000 if n % 10 == 0 else 1_000_000) for n in range(150)]
used = [block for block in blocks if block.size == 60_000]
del blocks
scattered = now() - before
give_back_memory()
print(sum(block.nbytes for block in used), scattered, now() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it like this")
def test_memory_that_nobody_uses_goes_back_to_the_system():
    done = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, text=True, check=True)
    used, scattered, after = map(int, done.stdout.split())
    assert scattered > 50 * used
    assert used < after < 3 * used


def test_settings_of_the_process_leave_the_users_own_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    settle()
    assert (os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"], os.environ["GOMP_SPINCOUNT"]) == ("64", "1000")
    assert os.environ["LRU_CACHE_CAPACITY"] == "64"
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "1024")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    settle()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "1024"
    assert "GOMP_SPINCOUNT" not in os.environ


# What a training leaves behind that has seen products of many shapes; by how much that lets the process grow.
MANY_SHAPES = """
import sys
from pathlib import Path
from vidrio.learn.machine import settle
if "settle" in sys.argv:
    settle()
import torch
torch.set_num_threads(1)

def now():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

b = torch.ones(256, 256, dtype=torch.bfloat16)
largest = torch.ones(400, 256, dtype=torch.bfloat16)
largest @ b
before = now()
for n in range(1, 400):
    largest[:n] @ b
print(now() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it like this")
def test_little_is_kept_of_shapes_that_do_not_come_again() -> None:
    settings = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
    own = {name: value for name, value in os.environ.items() if name not in settings}

    def grown(*arguments: str) -> int:
        command = [sys.executable, "-c", MANY_SHAPES, *arguments]
        return int(subprocess.run(command, capture_output=True, text=True, check=True, env=own).stdout)

    assert grown("settle") < max(grown() / 2, 2e7)  # where nothing is prepared, neither grows
