"""A run's curves as TensorBoard reads them: those of metrics.jsonl, also after a kill, and none where it is missing."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from test_learn_train import STEPS, backwards, begin, go_on, small_config, train
from vidrio.data.store import in_memory
from vidrio.learn import loop
from vidrio.learn.model import Network
from vidrio.learn.plan import Recipe
from vidrio.learn.run_files import CURVES
from vidrio.learn.state import State

Curves = dict[str, list[tuple[int, float]]]


def scores(net: Network) -> dict[str, float]:
    return {"loss": float(net.parameters["embed"].detach().norm()), "bleu": 12.5}


def learn(run: Path, state: State, recipe: Recipe = STEPS) -> State:
    return train(in_memory(backwards(500)), state, recipe, scores, run=run)


def read(run: Path) -> Curves:
    """What TensorBoard shows."""
    found = EventAccumulator(str(run / CURVES))
    found.Reload()
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def told(run: Path) -> Curves:
    """What metrics.jsonl says."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]

    def of(kind: str, name: str) -> list[tuple[int, float]]:
        return [(r["step"], pytest.approx(r[name], rel=1e-6)) for r in records if r["kind"] == kind]

    return {
        "loss/training": of("step", "loss"),
        "rate": of("step", "rate"),
        "tokens per second": of("step", "tokens_per_second"),
        "loss/held out": of("validation", "loss"),
        "scores/BLEU": of("validation", "bleu"),
    }


def test_the_curves_are_those_of_the_metrics(tmp_path: Path) -> None:
    learn(tmp_path, begin(small_config()))
    assert len(told(tmp_path)["loss/training"]) == len(told(tmp_path)["scores/BLEU"]) == 6
    assert read(tmp_path) == told(tmp_path)


def test_a_run_that_goes_on_goes_on_in_the_same_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulled out of the wall at step 37, it goes on from step 30: what it had told of later steps is told anew."""
    original = loop.take_step

    def cut(training: Any, step: Any, state: State, clock: Any, halves: Any) -> None:
        if state.step == 37:
            raise OSError("pulled the plug")
        original(training, step, state, clock, halves)

    config, often = small_config(), replace(STEPS, validations=2)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "EVERY", 1)
        patch.setattr(loop, "take_step", cut)
        with pytest.raises(OSError, match="plug"):
            learn(tmp_path, begin(config), often)
        assert read(tmp_path)["rate"][-1][0] == 37
        patch.setattr(loop, "take_step", original)
        learn(tmp_path, go_on(tmp_path, config), often)
    assert read(tmp_path) == told(tmp_path)
    assert [step for step, _ in read(tmp_path)["rate"]] == list(range(1, 61))


def test_without_tensorboard_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    learn(tmp_path, begin(small_config()))
    assert (tmp_path / "metrics.jsonl").exists()
    assert not (tmp_path / CURVES).exists()
