"""Test that several processes, on one machine or two, learn the same as one process."""

import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from forked import run_python, run_vidrio
from small_run import PAIRS, TAUGHT
from small_run import SIZES as SIZES_OF_ONE
from test_learn_train import go_on, small_config
from tolerances import FLOAT32
from vidrio.errors import RunError
from vidrio.learn.machine import Processes, join
from vidrio.learn.state import TENSORS
from vidrio.model.folder import read_config

torch.set_num_threads(1)
Ended = subprocess.CompletedProcess[str]
# The beginning of every script. Two Gloo processes run it. argv[1] is the folder for the results.
BEGINNING = """
import json, sys
from test_learn_train import *
from vidrio.learn.machine import join, leave
torch.set_num_threads(1)
out = Path(sys.argv[1])
examples = in_memory(backwards(500))
processes = join()

def first(net):
    return {"loss": float(next(iter(net.parameters.values())).detach().float().norm())}

def keep(name, tensors):
    if processes.leads:
        np.savez(out / f"{name}.npz", **{n: t.numpy() for n, t in tensors.items()})
"""


def in_two_processes(start: Callable[[int, dict[str, str]], Ended], machines: int) -> list[Ended]:
    """Start two processes with the environment variables that torchrun would set; torchrun itself is slower."""
    both = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": str(2 // machines)}
    both |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    environments = [both | {"RANK": str(rank), "LOCAL_RANK": str(rank % (2 // machines))} for rank in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(start, (0, 1), environments))


def run_two(script: str, folder: Path, *options: str) -> list[Ended]:
    """Run the script in two processes on one machine."""
    path = folder / "script.py"
    path.write_text(BEGINNING + script + "\nleave()\n")
    imports = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}

    def start(rank: int, environment: dict[str, str]) -> Ended:
        return run_python(str(path), str(folder), *options, environment=environment | imports, timeout=180)

    return in_two_processes(start, machines=1)


def free_port() -> int:
    """Return a free port below the ephemeral range, so that the system does not assign it to another process."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


# --- the same model ---------------------------------------------------------------------------------------------------

EQUAL = """
for case, (sizes, precision, accumulate, optimiser) in json.loads(sys.argv[2]).items():
    config = small_config(n_encoder_layers=2, **sizes)
    changes = {"precision": precision, "optimiser": optimiser}
    recipe = replace(STEPS, stop=Stop(steps=15), validations=2, accumulate=accumulate, **changes)
    half = replace(recipe, accumulate=accumulate // 2)
    state = train(examples, begin(config), half, first, processes=processes)
    keep(f"{case}-together", state.tensors())
    if processes.leads:
        keep(f"{case}-alone", train(examples, begin(config), recipe, first).tensors())
    processes.sum(torch.zeros(1))

take_step = loop.take_step

def interrupted(training, step, state, clock, split):
    if processes.rank == 1 and state.step == 4:
        signal.raise_signal(signal.SIGINT)
    take_step(training, step, state, clock, split)

loop.take_step = interrupted
with pytest.raises(KeyboardInterrupt):
    train(examples, begin(config), recipe, first, run=out / "together", processes=processes)
"""
OTHER = {"tying": "none", "norm": "post", "positions": "learned", "d_ff": 63}
CASES = {
    "float32": ({}, "float32", 2, "muon"),
    "bfloat16": ({}, "bfloat16", 2, "muon"),
    "other-float32": (OTHER, "float32", 2, "adam"),
    "other-bfloat16": (OTHER, "bfloat16", 2, "adam"),
    "two-each": ({}, "float32", 4, "adam"),
}


def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    """Train on the same batches in one process and in two.

    With one batch per process, each sum has two terms and is bit-identical. With two batches per process, the order of
    the terms differs. Ctrl-C in one process ends both after the same step.
    """
    for ended in run_two(EQUAL, tmp_path, json.dumps(CASES)):
        assert ended.returncode == 0, ended.stderr
    for case, (*_, accumulate) in CASES.items():
        alone = np.load(tmp_path / f"{case}-alone.npz")
        assert set(alone) == set(TENSORS)
        assert np.abs(alone["adam.mean"]).max() > 0
        assert not np.array_equal(alone["parameters"], alone["best"])
        other, most = np.load(tmp_path / f"{case}-together.npz"), 0 if accumulate == 2 else 20 * FLOAT32
        for tensor in TENSORS:
            assert np.abs(alone[tensor] - other[tensor]).max() <= most, (case, tensor)
    assert go_on(tmp_path / "together", small_config(n_encoder_layers=2)).step == 5


BY_TIME = """
import time
rate_of, take_step, rates = loop.rate_of, loop.take_step, []

def noted(recipe, step, state):
    rates.append(rate_of(recipe, step, state))
    return rates[-1]

def slowed(*arguments):
    time.sleep(0.02 * processes.rank)
    take_step(*arguments)

loop.rate_of, loop.take_step = noted, slowed
recipe = replace(STEPS, stop=Stop(seconds=2.5), validations=5, schedule="linear", warmup=1)
time.sleep(0.5 * processes.rank)
state = train(examples, begin(small_config()), recipe, first, processes=processes)
np.savez(out / f"{processes.rank}.npz", rates=rates, step=state.step, seconds=state.seconds, end=state.best)
if processes.rank == 1:
    os._exit(0)
with pytest.raises(RunError, match="another training process has terminated"):
    processes.of_leader([0.0])
"""


def test_the_clock_of_one_process_decides_for_all(tmp_path: Path) -> None:
    """Train for a given time in two processes, one of them slow. Both take the same steps at the same learning rates.

    If one process terminates, the other reports it.
    """
    for ended in run_two(BY_TIME, tmp_path):
        assert ended.returncode == 0, ended.stderr
    one, other = (np.load(tmp_path / f"{rank}.npz") for rank in (0, 1))
    assert len(set(one["rates"].tolist())) > 1
    for name in ("rates", "step", "seconds", "end"):
        assert np.array_equal(one[name], other[name]), name


# --- the command, on one machine and on two ---------------------------------------------------------------------------


TRAIN = ["train", "pairs.tsv", "--to", "model"]
TRAIN += [part for name, value in {**SIZES_OF_ONE, **TAUGHT}.items() for part in (f"--{name}", str(value))]


def on_two_machines(folders: list[Path], *options: str) -> list[tuple[int, str]]:
    def start(rank: int, environment: dict[str, str]) -> Ended:
        return run_vidrio(*TRAIN, *options, cwd=folders[rank], environment=environment, timeout=180)

    return [(ended.returncode, ended.stderr) for ended in in_two_processes(start, machines=2)]


def two_folders(root: Path) -> list[Path]:
    """Create one folder for each of two machines, with the same pairs."""
    folders = [root / "one", root / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    return folders


def test_two_processes_train_and_go_on_as_one_does(tmp_path: Path) -> None:
    one, two = two_folders(tmp_path)
    steady = ("--validations", "2", "--schedule", "constant", "--warmup", "0")
    for code, said in on_two_machines([one, one], "--steps", "6", *steady):
        assert code == 0, said
    [(code, said), (other, _)] = on_two_machines([one, one], "--steps", "8", *steady)
    assert (code, other) == (0, 0), said
    assert "resuming from step 6" in said
    done = run_vidrio(*TRAIN, "--steps", "8", "--accumulate", "2", *steady, cwd=two)
    assert done.returncode == 0, done.stderr
    config = read_config(one / "model")[0]
    ours, theirs = (go_on(folder / "model" / "run", config).tensors() for folder in (two, one))
    for name in ("parameters", "average", "adam.mean", "adam.square"):
        assert torch.equal(ours[name], theirs[name]), name


def test_machines_that_do_not_share_the_folder_are_refused(tmp_path: Path) -> None:
    _, (code, said) = on_two_machines(two_folders(tmp_path), "--steps", "2")
    assert code == 1
    assert "cannot find the data prepared by the leading process" in said
    assert "the same shared folder" in said


def test_processes_that_nobody_brings_together_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join() == Processes()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(RunError, match="cannot connect"):
        join()
    with pytest.raises(RunError, match="GPU of its own"):
        join(device="cuda:1")
