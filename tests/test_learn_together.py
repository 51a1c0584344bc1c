"""Several processes learn what one learns: each with a whole model, or with its part of one; on one machine or two."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from small_run import PAIRS, TAUGHT
from small_run import SIZES as SIZES_OF_ONE
from test_learn_run import QUICK, learn
from test_learn_train import STEPS, backwards, begin, go_on, losses, no_scores, small_config
from tolerances import FLOAT32
from vidrio.errors import RunError
from vidrio.learn.net.parameters import Weights
from vidrio.learn.optimiser import clip
from vidrio.learn.plain import in_memory
from vidrio.learn.processes import sharded
from vidrio.learn.processes.data_owner import checksum
from vidrio.learn.processes.processes import Together, join
from vidrio.learn.run import loop as train
from vidrio.learn.run.checkpoint import load_state
from vidrio.learn.run.ram import need
from vidrio.learn.run.recipe import Stop
from vidrio.learn.run.state import TENSORS
from vidrio.learn.train import settle
from vidrio.model.parameters import count

torch.set_num_threads(1)
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]

# Two Gloo processes; argv: a folder. Every script leaves what it has found there.
BEGINNING = """
import json, sys
from test_learn_train import *
from vidrio.learn.run.state import hand_out
from vidrio.learn.processes.processes import join, leave
torch.set_num_threads(1)
out = Path(sys.argv[1])
examples = in_memory(backwards(500))
together = join()
sharing = replace(together, sharded=True)

def first(net):
    return {"loss": float(next(iter(net.weights.values())).detach().float().norm())}

def start(config, how):
    return hand_out(begin(config) if how.leads else None, config, torch.device("cpu"), how)

def keep(name, tensors):
    if together.leads:
        np.savez(out / f"{name}.npz", **{n: t.numpy() for n, t in tensors.items()})
"""


def run_two(script: str, folder: Path, *options: str, wait: bool = True) -> "subprocess.Popen[str]":
    """Start the script in two processes."""
    path = folder / "script.py"
    path.write_text(BEGINNING + script + "\nleave()\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [*TORCHRUN, "--standalone", "--nproc-per-node", "2", str(path), str(folder), *options]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    if wait:
        _, told = process.communicate(timeout=180)
        assert process.returncode == 0, told
    return process


# --- the same model ---------------------------------------------------------------------------------------------------

EQUAL = """
for case, (sizes, precision, accumulate) in json.loads(sys.argv[2]).items():
    config = small_config(n_encoder_layers=2, **sizes)
    changes = {"accumulate": accumulate, "precision": precision, "weight_decay": 0.1}
    recipe = replace(STEPS, stop=Stop(steps=15), validations=2, **changes)
    for name, how in (("each", together), ("shared", sharing)):
        state = train.train(examples, start(config, how), recipe, first, together=how)
        keep(f"{case}-{name}", state.tensors())
    if together.leads:
        keep(f"{case}-alone", train.train(examples, begin(config), recipe, first).tensors())
    together.wait()

take_step = train.take_step

def interrupted(step, examples, state, *others):
    if together.rank == 1 and state.step == 4:
        signal.raise_signal(signal.SIGINT)
    take_step(step, examples, state, *others)

train.take_step = interrupted
for name, how in (("each", together), ("shared", sharing)):
    with pytest.raises(KeyboardInterrupt):
        train.train(examples, start(config, how), recipe, first, run=out / name, together=how)
"""
OTHER = {"tying": "none", "norm": "post", "positions": "learned", "d_ff": 63}
CASES = {
    "float32": ({}, "float32", 2),
    "bfloat16": ({}, "bfloat16", 2),
    "other-float32": (OTHER, "float32", 2),
    "other-bfloat16": (OTHER, "bfloat16", 2),
    "two-each": ({}, "float32", 4),
}


def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    """The same batches to a step: alone, in two processes, in two processes that share the model out.

    With one batch each the sums have two terms, and come out the same to the last bit; with two each, in another order.
    Ctrl-C in one process ends all of them after the same step.
    """
    run_two(EQUAL, tmp_path, json.dumps(CASES))
    for case, (*_, accumulate) in CASES.items():
        alone = np.load(tmp_path / f"{case}-alone.npz")
        assert set(alone) == set(TENSORS)
        assert np.abs(alone["adam.mean"]).max() > 0
        assert not np.array_equal(alone["parameters"], alone["best"])
        for name in ("each", "shared"):
            other, most = np.load(tmp_path / f"{case}-{name}.npz"), 0 if accumulate == 2 else FLOAT32
            for tensor in TENSORS:
                assert np.abs(alone[tensor] - other[tensor]).max() <= most, (case, name, tensor)
    for name in ("each", "shared"):
        assert go_on(tmp_path / name, small_config(n_encoder_layers=2)).step == 5


def test_a_length_is_the_same_in_parts() -> None:
    gradient = torch.randn(200_001, generator=torch.Generator().manual_seed(1))
    length = clip(gradient, 0)
    assert length == pytest.approx(float(gradient.double().norm()), rel=1e-13)
    assert length == pytest.approx(float(np.hypot(*[clip(part, 0) for part in gradient.split(110_000)])), rel=1e-13)


@pytest.mark.parametrize("changes", [{}, {"shape": "decoder"}, {"tying": "none", "positions": "learned"}])
def test_a_model_is_cut_by_layers_and_nothing_is_lost(changes: dict[str, str]) -> None:
    config = small_config(n_decoder_layers=2, **changes)
    found = sharded.units(config)
    assert {"", "dec.0", "dec.1"} <= set(found)
    names = [name for shapes in found.values() for name in shapes]
    weights = begin(config).weights
    assert isinstance(weights, Weights)
    assert sorted(names) == sorted(weights.views(weights.flat))
    for size in (1, 2, 3, 7):
        kept = sharded.lengths(config, size)
        assert count(config) <= size * sum(kept) < count(config) + size * len(kept)
    assert all(name.startswith(f"{unit}.") for unit, shapes in found.items() for name in shapes if unit)


# --- how much of it each holds ----------------------------------------------------------------------------------------

HELD = """
from torch.multiprocessing.reductions import StorageWeakRef
from vidrio.learn.processes.processes import Together

gathered, gather = [], Together.gather

def noted(self, part):
    whole = gather(self, part)
    gathered.append(StorageWeakRef(whole.untyped_storage()))
    return whole

def still_there():
    return len(gathered), sum(not one.expired() for one in gathered)

Together.gather = noted
config = small_config(n_encoder_layers=4, n_decoder_layers=4)
state = start(config, sharing)
kept = sum(t.numel() for t in (state.weights.flat, state.average, state.best, state.adam.mean, state.adam.square))
net = train.model.build(state.weights, torch.bfloat16)
leaves = net.weights, net.tables
with state.weights.let_go(leaves):
    loss, _ = train.objective(net, train.collate(examples, np.arange(8), config), 0.1)
forward = still_there()
loss.backward()
(out / f"{together.rank}.json").write_text(json.dumps([kept, forward, still_there()]))
"""


def test_each_holds_its_part_and_one_layer_at_a_time(tmp_path: Path) -> None:
    run_two(HELD, tmp_path)
    config = small_config(n_encoder_layers=4, n_decoder_layers=4)
    for rank in (0, 1):
        kept, forward, back = json.loads((tmp_path / f"{rank}.json").read_text())
        assert kept <= 5 * (count(config) / 2 + 9)
        # Eight layers and the rest are gathered, the layers once more on the way back; there are the last one and the
        # rest, though the graph would give gradients to all.
        assert forward == [9, 2]
        assert back == [17, 2]


def test_what_is_shared_out_is_counted_once() -> None:
    """By the choice of a batch that fits: on a GPU down to what a validation takes, 6 bytes a parameter."""
    config, recipe = small_config(), replace(STEPS, precision="bfloat16")
    whole, *shared = (need(config, recipe, 10, "cuda", shares) for shares in (1, 4, 1000))
    saved = [(whole.fixed - one.fixed) / count(config) for one in shared]
    assert saved == pytest.approx([40 - 20 / 4 - 6, 40 - 20 / 1000 - 6])
    assert {one.token for one in shared} == {whole.token}


# --- it goes on exactly -----------------------------------------------------------------------------------------------

GOING_ON = """
(out / f"pid-{together.rank}").write_text(str(os.getpid()))
config, run = small_config(), out / "run"
found = resume(run, config, torch.device("cpu")) if together.leads else None
state = (found[0] if found else begin(config)) if together.leads else None
state = hand_out(state, config, torch.device("cpu"), sharing)
train.train(examples, state, LONG, no_scores, run=run, together=sharing)
"""
LONG = replace(STEPS, stop=Stop(steps=120), validations=30, accumulate=2)


def test_a_shared_run_killed_goes_on_to_the_last_bit_shared_or_not(tmp_path: Path) -> None:
    whole = train.train(in_memory(backwards(500)), begin(small_config()), LONG, no_scores, run=tmp_path / "whole")
    script = f"LONG = {LONG!r}\n{GOING_ON}"
    run = tmp_path / "run"
    process = run_two(script, tmp_path, wait=False)
    deadline = time.monotonic() + 100
    while not (run / "state.previous.safetensors").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for pid in (process.pid, *(int((tmp_path / f"pid-{rank}").read_text()) for rank in (1, 0))):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    shutil.copytree(run, tmp_path / "alone")
    assert 0 < go_on(run, small_config()).step < 120
    run_two(script, tmp_path)
    alone = train.train(
        in_memory(backwards(500)), go_on(tmp_path / "alone", small_config()), LONG, no_scores, run=tmp_path / "alone"
    )
    for name in ("run", "alone"):
        assert losses(tmp_path / name) == losses(tmp_path / "whole")
    shared = go_on(run, small_config())
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, shared.tensors()[name]), name
        assert torch.equal(tensor, alone.tensors()[name]), name


# --- by the command, on one machine and on two ------------------------------------------------------------------------


def start_training(folder: Path, launcher: list[str], *options: str) -> "subprocess.Popen[str]":
    usual = [part for name, value in {**SIZES_OF_ONE, **TAUGHT}.items() for part in (f"--{name}", str(value))]
    command = [*launcher, "-m", "vidrio", "train", "pairs.tsv", "--to", "model", *usual, *options]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start_machine(number: int, port: int, folder: Path, *options: str) -> "subprocess.Popen[str]":
    launcher = [*TORCHRUN, "--nnodes", "2", "--node-rank", str(number), "--nproc-per-node", "1"]
    launcher += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    return start_training(folder, launcher, *options)


def on_two_machines(folders: list[Path], *options: str) -> list[tuple[int, str]]:
    """Exit code and what was told on each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    machines = [start_machine(number, port, folder, *options) for number, folder in enumerate(folders)]
    told = [machine.communicate(timeout=180)[1] for machine in machines]
    return [(machine.returncode, text) for machine, text in zip(machines, told, strict=True)]


def two_folders(root: Path) -> list[Path]:
    """The same pairs in a folder on each of two machines."""
    folders = [root / "one", root / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    return folders


def test_two_machines_without_a_shared_folder_learn_what_one_learns(tmp_path: Path) -> None:
    one, two = folders = two_folders(tmp_path)
    steady = ("--validations", "2", "--schedule", "constant", "--warmup", "0")
    for code, told in on_two_machines(folders, "--steps", "6", "--sharded", *steady):
        assert code == 0, told
    assert {path.name for path in (two / "model").iterdir()} == {"run"}
    assert {path.name for path in (two / "model/run").iterdir()} == {"data", "tokenizer.json", "tokenizer.key"}
    # Two more steps: the second machine has no state of its own to go on from.
    [(code, told), (other, _)] = on_two_machines(folders, "--steps", "8", *steady)
    assert (code, other) == (0, 0), told
    assert "going on from step 6" in told
    (alone := tmp_path / "alone").mkdir()
    shutil.copy(one / "pairs.tsv", alone)
    process = start_training(alone, [sys.executable], "--steps", "8", "--accumulate", "2", *steady)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    ours, theirs = (load_state(folder / "model" / "run", torch.device("cpu")) for folder in (alone, one))
    assert ours is not None
    assert theirs is not None
    for name in ("parameters", "average", "adam.mean", "adam.square"):
        assert torch.equal(ours[0][name], theirs[0][name]), name


def test_a_checksum_tells_other_ids_another_order_and_other_boundaries() -> None:
    pairs = [([4, 5], [6]), ([7], [8, 9])]
    others = [pairs[::-1], [([4, 5], [6]), ([7], [8, 10])], [([4], [6]), ([5, 7], [8, 9])]]
    found = {checksum(in_memory(some), "") for some in (pairs, *others)}
    assert len(found) == 4
    assert checksum(in_memory(pairs), "") != checksum(in_memory(pairs), "another tokenizer")
    as_arrays = [(np.array(a), np.array(b)) for a, b in pairs]
    assert checksum(in_memory(as_arrays), "") == checksum(in_memory(pairs), "")


def test_a_shared_folder_is_not_made_twice_from_other_files(tmp_path: Path) -> None:
    one, two = two_folders(tmp_path)
    os.utime(two / "pairs.tsv", (1e9, 1e9))
    shared = tmp_path / "shared"
    [_, (code, told)] = on_two_machines([one, two], "--steps", "2", "--to", str(shared))
    assert code == 1
    assert "was made from other files" in told
    assert not (shared / "config.json").exists()


def test_machines_with_other_pairs_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    _, two = folders = two_folders(tmp_path)
    (two / "pairs.tsv").write_text((two / "pairs.tsv").read_text().replace("un niño", "una niña"))
    for code, told in on_two_machines(folders, "--steps", "2"):
        assert code == 1
        assert "have not made the same data" in told
    for folder in folders:
        assert [path.name for path in folder.iterdir()] == ["pairs.tsv"]


def test_two_machines_that_share_a_folder_make_the_data_once(tmp_path: Path) -> None:
    one, _ = two_folders(tmp_path)
    for code, told in on_two_machines([one, one], "--steps", "2", "--validations", "1"):
        assert code == 0, told
    assert (one / "model" / "config.json").exists()
    assert len(list((one / "model" / "run" / "data").glob("tokens-*"))) == 1


def test_steps_are_shared_out_evenly_or_refused(tmp_path: Path) -> None:
    one, _ = two_folders(tmp_path)
    learned, _ = learn(one / "model", one / "pairs.tsv", replace(QUICK, stop=Stop(steps=1)))
    anew = (learned.task, QUICK, torch.device("cpu"))
    plan, _ = settle(*anew, None, None, Together(size=3))
    assert plan.recipe.accumulate == 3
    assert settle(*anew, plan, None, Together(size=3))[0].recipe.accumulate == 3
    assert settle(*anew, plan, None, Together())[0].recipe.accumulate == 3
    with pytest.raises(RunError, match="2 processes cannot share out") as error:
        settle(*anew, plan, None, Together(size=2))
    assert "3 batches to a step" in str(error.value)


def test_alone_there_is_nobody_to_share_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join() == Together()
    with pytest.raises(RunError, match="nobody to share"):
        join(sharded=True)


def test_processes_that_nobody_brings_together_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(RunError, match="cannot come together"):
        join()
    with pytest.raises(RunError, match="GPU of its own"):
        join(device="cuda:1")
