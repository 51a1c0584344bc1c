"""Test the training loop: it learns, stops for the right reason, and resumes exactly after any interruption."""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from forked import run_python
from vidrio.errors import RunError
from vidrio.learn import loop
from vidrio.learn import state as states
from vidrio.learn.batches import Examples, in_memory
from vidrio.learn.loop import Validate, split_batches
from vidrio.learn.loss import gradient_of
from vidrio.learn.model import Network, build
from vidrio.learn.parameters import Parameters
from vidrio.learn.plan import Recipe, sized
from vidrio.learn.state import State, read_state
from vidrio.learn.task import Stop
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters

torch.set_num_threads(1)
STEPS = Recipe(stop=Stop(steps=60), rate=3e-3, warmup=20, batch_tokens=400, dropout=0.1, validations=6)


def backwards(count: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """Return random pairs. Each target is its source in reverse."""
    random = np.random.default_rng(seed)
    sources = [random.integers(4, 14, size=random.integers(2, 7)).tolist() for _ in range(count)]
    return [(source, source[::-1]) for source in sources]


def train(examples: Examples, state: State, recipe: Recipe, validate: Validate, **others: Any) -> State:
    watch = others.pop("watch", lambda record: None)
    for record in loop.loop(loop.Training(examples, recipe, validate, **others), state):
        watch(record)
    return state


def small_config(**changes: Any) -> ModelConfig:
    sizes = {"d_model": 32, "n_heads": 4, "d_head": 8, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1}
    return sized("tiny", 14, **{**sizes, **changes})


def begin(config: ModelConfig, seed: int = 1) -> State:
    return State.start(Parameters.from_arrays(config, random_parameters(config, np.random.default_rng(seed))))


@pytest.fixture(scope="module")
def examples() -> Examples:
    return in_memory(backwards(500))


def no_scores(net: Network) -> dict[str, float]:
    return {"loss": float(net.parameters["embed"].float().norm().detach())}


def losses(run: Path) -> list[tuple[int, float]]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(record["step"], record["loss"]) for record in records if record["kind"] == "step"]


def go_on(run: Path, config: ModelConfig) -> State:
    return read_state(run, config, torch.device("cpu"))


def test_accumulated_batches_are_one_large_batch(examples: Examples) -> None:
    """A step of two batches has the gradient of one large batch, not the mean of two: the batches differ in size."""
    config = small_config()
    recipe = replace(STEPS, stop=Stop(steps=1), dropout=0.0, accumulate=2, average=0.0)
    state = train(examples, begin(config), recipe, no_scores)
    batches = loop.stream(examples, recipe.batch_tokens, config.max_positions, recipe.seed, (0, 0))
    together = np.concatenate([batch.pairs for batch in islice(batches, 2)])
    weights = begin(config).parameters
    batch = loop.collate(examples, together, config)
    gradient, _ = gradient_of(build(weights), batch, recipe.smoothing)
    gradient /= batch.n_predictions
    loop.clip(gradient, recipe.clip)
    torch.testing.assert_close(state.adam.mean, gradient * 0.1, rtol=1e-4, atol=1e-7)


# --- threads that train in parallel -----------------------------------------------------------------------------------


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def test_the_halves_of_a_batch_learn_what_the_whole_batch_does(examples: Examples, two_threads: None) -> None:
    """A batch of 13 pairs is split into 7 and 6. Their gradients are summed, not averaged."""
    recipe = replace(STEPS, dropout=0.0)
    learn = partial(loop.learn_from, recipe, begin(small_config()).parameters, (1, 1, 0), examples)
    pairs, threads = np.arange(13), []
    whole, figures = learn(pairs, 0)

    def watched(some: Any, part: int) -> Any:
        threads.append((len(some), torch.get_num_threads()))
        return learn(some, part)

    with split_batches(torch.device("cpu")) as split:
        gradient, sums = split(watched, pairs)
        assert sorted(threads) == [(6, 1), (7, 1)]
        torch.testing.assert_close(gradient, whole, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(sums, figures)
        assert torch.equal(split(learn, pairs[:1])[1], learn(pairs[:1], 0)[1])
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == torch.get_num_threads() == 2


def test_where_memory_runs_out_it_is_told_what_to_do(examples: Examples, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, told in (
        (torch.OutOfMemoryError("CUDA out of memory"), "a batch does not fit in memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "a batch does not fit in memory"),
        (RuntimeError("another fault"), "another fault"),
    ):
        monkeypatch.setattr(loop, "learn_from", partial(_raise, error))
        with pytest.raises(RuntimeError if told == "another fault" else RunError, match=told):
            train(examples, begin(small_config()), STEPS, no_scores)


def _raise(error: Exception, *given: Any) -> Any:
    raise error


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_to_the_last_bit(
    examples: Examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, original = small_config(), loop.take_step
    whole = train(examples, begin(config), STEPS, no_scores, run=tmp_path / "whole")

    def interrupted(training: Any, step: Any, state: State, clock: Any, split: Any) -> None:
        if state.step + 1 == 23:
            signal.raise_signal(signal.SIGINT)  # Ctrl-C in the middle of a step
        original(training, step, state, clock, split)

    monkeypatch.setattr(loop, "take_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(examples, begin(config), STEPS, no_scores, run=tmp_path / "parts")
    monkeypatch.undo()
    assert go_on(tmp_path / "parts", config).step == 23
    resumed = train(examples, go_on(tmp_path / "parts", config), STEPS, no_scores, run=tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, resumed.tensors()[name]), name


def restless(net: Network) -> dict[str, float]:
    """Return a score that fluctuates as if at random, but is the same for the same parameters."""
    return {"loss": abs(float(net.parameters["embed"].detach().double().sum()) * 1e4) % 1}


KILLED = """
import sys
from pathlib import Path
from test_learn_train import *
run = Path(sys.argv[1])
(run / "pid").write_text(str(os.getpid()))
state = go_on(run, small_config()) if (run / states.STATE).exists() else begin(small_config())
recipe = replace(STEPS, stop=Stop(steps=2000), validations=100)
train(in_memory(backwards(500)), state, recipe, restless, run=run)
"""


def test_killed_at_random_it_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    """Kill training twice at random moments. The result must equal that of an uninterrupted run."""
    random = np.random.default_rng(4)
    script, saved = tmp_path / "killed.py", tmp_path / states.STATE
    script.write_text(KILLED)
    imports = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    for _ in range(2):
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        with ThreadPoolExecutor(1) as pool:
            learning = pool.submit(run_python, str(script), str(tmp_path), environment=imports)
            while not saved.exists() or saved.stat().st_mtime_ns <= before:
                assert not learning.done(), learning.result()
                time.sleep(0.01)
            time.sleep(float(random.uniform(0, 0.5)))
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        assert learning.result().returncode == -signal.SIGKILL
    state = go_on(tmp_path, small_config())
    assert 0 < state.step < 2000
    # Train again without interruption, but only as far as the killed run came: the whole run would take long.
    told = [pair for pair in losses(tmp_path) if pair[0] <= state.step]
    recipe = replace(STEPS, stop=Stop(steps=2000), validations=100)
    at_once = begin(small_config())
    heard: list[tuple[int, float]] = []

    class FarEnough(Exception):
        pass

    def watch(record: dict[str, Any]) -> None:
        if record["kind"] == "step":
            heard.append((record["step"], record["loss"]))
        if record["step"] == state.step and record["kind"] == "validation":
            raise FarEnough

    with pytest.raises(FarEnough):
        train(in_memory(backwards(500)), at_once, recipe, restless, run=tmp_path / "whole", watch=watch)
    assert told == heard
    for name, tensor in at_once.tensors().items():
        assert torch.equal(tensor, state.tensors()[name]), name


def test_a_damaged_state_is_refused(examples: Examples, tmp_path: Path) -> None:
    config = small_config()
    train(examples, begin(config), replace(STEPS, stop=Stop(steps=5)), no_scores, run=tmp_path)
    latest = tmp_path / states.STATE
    latest.write_bytes(latest.read_bytes()[:1000])
    with pytest.raises(RunError, match=r"cannot be resumed(.|\n)*damaged(.|\n)*to start again"):
        go_on(tmp_path, config)


def test_a_full_disk_leaves_the_last_good_state(examples: Examples, tmp_path: Path) -> None:
    config = small_config()
    train(examples, begin(config), STEPS, no_scores, run=tmp_path)
    good = (tmp_path / states.STATE).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Writing a larger file fails, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(RunError, match=r"cannot be written to .*state\.safetensors"):
            states.save_state(tmp_path, go_on(tmp_path, config))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / states.STATE).read_bytes() == good
    assert not list(tmp_path.glob(".*part"))
    assert go_on(tmp_path, config).step == 60


def test_more_steps_than_before_go_on_and_half_a_line_of_metrics_is_dropped(examples: Examples, tmp_path: Path) -> None:
    config = small_config()
    train(examples, begin(config), STEPS, no_scores, run=tmp_path)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 60, "lo')
    longer = replace(STEPS, stop=Stop(steps=80))
    assert train(examples, go_on(tmp_path, config), longer, no_scores, run=tmp_path).step == 80
    assert [step for step, _ in losses(tmp_path)] == list(range(10, 90, 10))
    assert train(examples, go_on(tmp_path, config), longer, no_scores, run=tmp_path).step == 80  # nothing left to do


def test_an_end_before_the_first_validation_keeps_what_was_learned(examples: Examples, tmp_path: Path) -> None:
    config, once = small_config(), replace(STEPS, validations=1)

    def interrupt(record: dict[str, Any]) -> None:
        if record["step"] == 10:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(examples, begin(config), once, no_scores, run=tmp_path, watch=interrupt)
    state = train(examples, go_on(tmp_path, config), replace(once, stop=Stop(steps=5)), no_scores, run=tmp_path)
    assert state.best_step == state.step >= 10
    assert torch.equal(state.best, state.average)


# --- stopping and the best model --------------------------------------------------------------------------------------


def test_a_loss_that_is_no_number_any_more_is_an_error(examples: Examples) -> None:
    with pytest.raises(RunError, match="has diverged"):
        train(examples, begin(small_config()), replace(STEPS, rate=1e30, warmup=0, clip=0.0), no_scores)


def test_the_best_model_is_kept(examples: Examples) -> None:
    scores = iter([3.0, 2.0, 2.5, 2.0, 9.0, 4.0])
    embeddings = []

    def validate(net: Network) -> dict[str, float]:
        embeddings.append(net.parameters["embed"].detach().clone())
        return {"loss": next(scores)}

    state = train(examples, begin(small_config()), STEPS, validate)
    assert (state.step, state.best_step, state.best_score) == (60, 20, 2.0)
    best = Parameters(state.parameters.config, state.best)
    # Two validations scored 2.0; only a better one replaces the best.
    assert torch.equal(best.views(best.flat)["embed"], embeddings[1])


def test_of_equal_scores_the_lower_loss_is_better(examples: Examples) -> None:
    """An early model's BLEU is always 0. Until it rises, the loss decides, so that progress is not lost."""
    scores = iter([(0.0, 5.0), (0.0, 4.0), (0.0, 4.5), (1.0, 6.0), (1.0, 6.0), (0.5, 1.0)])
    best: list[bool] = []

    def validate(net: Network) -> dict[str, float]:
        return dict(zip(("bleu", "loss"), next(scores), strict=True))

    def watch(record: dict[str, Any]) -> None:
        best.extend([record["best"]] if record["kind"] == "validation" else [])

    state = train(examples, begin(small_config()), replace(STEPS, metric="bleu"), validate, watch=watch)
    assert best == [True, True, False, True, False, False]
    assert (state.best_step, state.best_score, state.best_loss) == (40, 1.0, 6.0)


def test_time_is_a_budget(examples: Examples, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(100.0, 0.02)  # each call advances the clock by 0.02 seconds
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    state = train(examples, begin(small_config()), replace(STEPS, stop=Stop(seconds=1.5)), no_scores)
    assert 1.5 <= next(clock) - 100 < 1.7
    assert loop.share_over(Stop(seconds=1.5), state) == 1
    assert state.step > 10
