"""How much memory a step takes: as predicted; how much there is: as the system tells; and what follows from both."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from test_learn_run import QUICK, number_pairs
from vidrio.errors import RunError
from vidrio.learn import train as training
from vidrio.learn.run.choose import SHARE, Need, need, sized
from vidrio.learn.run.finish import Learned
from vidrio.learn.run.machine import free_memory, free_on_cpu, settle, shares_for
from vidrio.learn.run.plan import Recipe, Stop
from vidrio.learn.run.request import Material, Reporter, Request
from vidrio.model.config import SpecialIds

SHARES = shares_for(torch.device("cpu"))

# Two steps and a saved state, in a process of its own; prints by how many bytes it has grown at most.
MEASURED = """
import sys, tempfile
from pathlib import Path
import numpy as np
import torch
from vidrio.model.config import SpecialIds
from vidrio.learn.run.loop import Training, loop
from vidrio.learn.run.machine import keep_memory
from vidrio.data.store import in_memory
from vidrio.learn.run.choose import sized
from vidrio.learn.run.plan import Recipe, Stop
from vidrio.learn.run.state import State
from vidrio.learn.net.parameters import Parameters
from vidrio.model.parameters import random_parameters

def peak():  # not ru_maxrss, which begins with that of the process that started this one
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

keep_memory()
preset, precision, tokens, longest, vocabulary, r_drop, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
torch.set_num_threads(threads)
random = np.random.default_rng(0)
sides = random.integers(4, vocabulary, (2 * tokens // longest, 2, longest - 1)).tolist()
examples = in_memory([tuple(pair) for pair in sides])
recipe = Recipe(stop=Stop(steps=2), batch_tokens=tokens, precision=precision, r_drop=r_drop)
before = peak()
config = sized(preset, vocabulary, SpecialIds())
state = State.start(Parameters.from_arrays(config, random_parameters(config, random)))
with tempfile.TemporaryDirectory() as folder:
    list(loop(Training(examples, recipe, lambda net: {"loss": 1.0}, Path(folder), shares=threads), state))
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it like this")
@pytest.mark.parametrize(
    ("preset", "precision", "tokens", "longest", "vocabulary", "r_drop", "threads"),
    [
        ("tiny", "float32", 4096, 25, 4000, 0, 1),
        ("tiny", "bfloat16", 4096, 25, 4000, 0, 1),
        ("tiny", "bfloat16", 4096, 25, 4000, 0, 2),
        ("tiny", "float32", 4096, 128, 4000, 0, 1),
        ("tiny", "bfloat16", 2048, 25, 4000, 5, 1),
        pytest.param("small", "float32", 8192, 32, 8000, 0, 1, marks=pytest.mark.slow),
        pytest.param("small", "float32", 4096, 32, 8000, 5, 2, marks=pytest.mark.slow),
    ],
)
def test_a_step_takes_what_is_predicted(
    preset: str, precision: str, tokens: int, longest: int, vocabulary: int, r_drop: float, threads: int
) -> None:
    """Never more than predicted, and not much less: else batches would be needlessly small."""
    arguments = [preset, precision, str(tokens), str(longest), str(vocabulary), str(r_drop), str(threads)]
    command = [sys.executable, "-c", MEASURED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stderr
    recipe = Recipe(stop=Stop(steps=2), precision=precision, r_drop=r_drop)
    found = need(sized(preset, vocabulary, SpecialIds()), recipe, longest, shares=threads)
    assert 0.6 < int(done.stdout) / (found.fixed + tokens * found.token) < 1.0


def test_more_of_anything_takes_more() -> None:
    def token(longest: int = 30, device: str = "cpu", recipe: Recipe | None = None, **sizes: Any) -> float:
        return need(sized("tiny", 4000, SpecialIds(), **sizes), recipe or plain, longest, device).token

    plain = Recipe(stop=Stop(steps=1), dropout=0.0)
    for more in ({"longest": 60}, {"d_ff": 512}, {"n_heads": 8}, {"n_encoder_layers": 8}, {"n_decoder_layers": 8}):
        assert token(**more) > token()
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        assert token(recipe=replace(plain, **{name: 0.1})) > token()
    assert token(recipe=replace(plain, dropout=0.1, r_drop=5.0)) == 2 * token(recipe=replace(plain, dropout=0.1))
    assert token(recipe=replace(plain, precision="bfloat16")) == token() / 2
    assert token(device="cuda") < token()  # its own kernel keeps no weights
    for shape, sizes in (("encoder", {"n_classes": 3, "tying": "none"}), ("decoder", {})):
        assert 0 < token(shape=shape, **sizes) < token()


def test_a_part_of_what_is_free_is_left_alone() -> None:
    assert Need(fixed=1000.0, token=10.0).most_tokens(5000 / SHARE) == 400
    assert Need(fixed=1000.0, token=10.0).most_tokens(1000) < 1


# --- what follows -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "numbers.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in number_pairs(3000)), encoding="utf-8")
    return path


def learn_with(memory: int | None, folder: Path, pairs: Path, **recipe: Any) -> tuple[Learned, Sequence[str]]:
    said: list[str] = []
    own = {name: value for name, value in QUICK.recipe.items() if name != "batch_tokens"}
    choices = replace(QUICK, recipe={**own, "validations": 1, **recipe}, stop=Stop(steps=2))
    material = Material(names=(str(pairs),), tokenizer="word", vocabulary=60)
    learned = training.learn(Request(folder, material, choices, memory=memory), Reporter(said.append))
    assert learned is not None
    return learned, said


def test_batches_are_parted_until_they_fit(pairs: Path, tmp_path: Path) -> None:
    """The same global batch, in parts; and a run that goes on keeps to it, whatever the memory is by then."""
    roomy, said = learn_with(1 << 40, tmp_path / "roomy", pairs)
    wish = roomy.plan.recipe.batch_tokens
    assert roomy.plan.recipe.accumulate == 1
    assert not any("memory" in line for line in said)
    wanted = need(roomy.config, roomy.plan.recipe, 5, shares=SHARES)
    memory = int((wanted.fixed + (wish // 3 + 1) * wanted.token) / SHARE) + 1000
    narrow, said = learn_with(memory, tmp_path / "narrow", pairs)
    recipe = narrow.plan.recipe
    assert recipe.accumulate == 3
    assert wish <= recipe.batch_tokens * 3 < wish + 3
    assert any(f"holds batches of {recipe.batch_tokens:,} tokens, not of {wish:,}: 3 of them" in line for line in said)
    again, said = learn_with(1 << 40, tmp_path / "narrow", pairs)
    assert again.plan.recipe == recipe
    assert not any("changed" in line for line in said)


def test_what_is_given_by_hand_is_taken(pairs: Path, tmp_path: Path) -> None:
    given, _ = learn_with(1000, tmp_path / "batch", pairs, batch_tokens=5000)
    assert (given.plan.recipe.batch_tokens, given.plan.recipe.accumulate) == (5000, 1)
    wanted = need(given.config, given.plan.recipe, 5, shares=SHARES)
    memory = int((wanted.fixed + 400 * wanted.token) / SHARE)
    parts, _ = learn_with(memory, tmp_path / "parts", pairs, accumulate=2)
    assert parts.plan.recipe.accumulate == 2
    assert parts.plan.recipe.batch_tokens <= 400


def test_a_model_that_does_not_fit_is_told_at_once(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"the memory that is free \(0.0 GB\) is too small for this model"):
        learn_with(1_000_000, tmp_path / "none", pairs)
    assert not (tmp_path / "none").exists()


# --- what there is ----------------------------------------------------------------------------------------------------


def system(root: Path, files: dict[str, str]) -> Path:
    """A system that says this of itself."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 8000000 kB\nMemFree: 100 kB\nMemAvailable:    4000000 kB\n"}
V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, None),
        (MEMINFO, 4_096_000_000),
        (  # a limit of the group around this one; what is cached can be freed
            {
                **MEMINFO,
                "proc/self/cgroup": "0::/user/job\n",
                f"{V2}/user/job/memory.max": "max\n",
                f"{V2}/user/job/memory.current": "5000\n",
                f"{V2}/user/memory.max": "1000000\n",
                f"{V2}/user/memory.current": "600000\n",
                f"{V2}/user/memory.stat": "anon 500000\ninactive_file 100000\n",
            },
            500_000,
        ),
        (  # in a container, whose own group lies at the root of what it sees
            {
                **MEMINFO,
                "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n",
                f"{V1}/memory.limit_in_bytes": "3000000\n",
                f"{V1}/memory.usage_in_bytes": "1000000\n",
                f"{V1}/memory.stat": "cache 7\ntotal_inactive_file 250000\n",
            },
            2_250_000,
        ),
        (  # no limit in version 1 is a number beyond all memory
            {
                **MEMINFO,
                "proc/self/cgroup": "4:memory:/\n",
                f"{V1}/memory.limit_in_bytes": "9223372036854771712\n",
                f"{V1}/memory.usage_in_bytes": "1000000\n",
            },
            4_096_000_000,
        ),
        (
            {
                **MEMINFO,
                "proc/self/cgroup": "0::/\n",
                f"{V2}/memory.max": "1000\n",
                f"{V2}/memory.current": "2000\n",
            },
            0,
        ),
    ],
)
def test_free_memory_is_what_the_system_and_the_groups_leave(
    files: dict[str, str], free: int | None, tmp_path: Path
) -> None:
    assert free_on_cpu(system(tmp_path, files)) == free


def test_this_machine_has_some_memory() -> None:
    free = free_memory(torch.device("cpu"))
    assert free is None or 0 < free < 1 << 50
    assert free_memory(torch.device("meta")) is None


# What a long training leaves behind: among many blocks that are free, here and there one that is still in use.
SCATTERED = """
import numpy as np
from pathlib import Path
from vidrio.learn.run.machine import Sweeper, keep_memory

def now():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

keep_memory()
Sweeper(every=0)()  # what importing has left unused
before = now()
blocks = [np.ones(60_000 if n % 10 == 0 else 1_000_000) for n in range(150)]
used = [block for block in blocks if block.size == 60_000]
del blocks
scattered = now() - before
Sweeper(every=3600)()
early = now() - before
Sweeper(every=0)()
print(sum(block.nbytes for block in used), scattered, early, now() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it like this")
def test_memory_that_nobody_uses_goes_back_to_the_system_now_and_then():
    done = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, text=True, check=True)
    used, scattered, early, after = map(int, done.stdout.split())
    assert early > 0.9 * scattered > 50 * used
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
from vidrio.learn.run.machine import free_memory, free_on_cpu, settle, shares_for
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
