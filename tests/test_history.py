"""Test the history of a trained model: its snapshots, their translations of a sentence, and its learning curves."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from small_models import rewrite_config, write_model
from small_run import train_small
from vidrio.learn import state
from vidrio.look.history import MAX_POINTS, ages_data, curves_data, metrics, snapshots, thinned
from vidrio.look.run import open_model


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("run"))


# --- snapshots --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**7), st.integers(1, 9))
def test_the_steps_that_are_kept_are_few_and_never_come_back(step: int, most: int) -> None:
    kept, before = state.snapshot_steps(step, most), state.snapshot_steps(max(0, step - 1), most)
    assert kept[0] == 0
    assert len(kept) <= most + 1
    assert max(kept) <= step
    assert step == 0 or max(kept) > step / 2
    assert set(kept) <= {*before, step}  # a deleted snapshot is never needed again
    assert (step in kept) == state.is_snapshot(step)


def test_large_models_keep_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "ROOM", 4000)
    for step in (0, 1, 2, 4, 8, 16, 32, 64):
        state.write_snapshot(tmp_path, step, {"x": np.zeros(125)})  # 1,000 bytes
    assert [step for step, _ in snapshots(tmp_path)] == [0, 8, 16, 32, 64]


def test_a_run_leaves_its_ages(trained: Path) -> None:
    steps = [step for step, _ in snapshots(trained / "run")]
    assert steps == state.snapshot_steps(150) == [0, 1, 2, 4, 8, 16, 32, 64, 128]


# --- a sentence at every snapshot -------------------------------------------------------------------------------------

TEXT = "the cat sees two books"


def test_the_ages_of_a_model(trained: Path) -> None:
    told = ages_data(open_model(trained), TEXT)
    assert told is not None
    assert [age["step"] for age in told["ages"]] == [0, 1, 2, 4, 8, 16, 32, 64, 128, None]
    assert told["tokens"] == ["▁el", "▁gato", "▁ve", "▁dos", "▁libros", "</s>"]
    first, last = told["ages"][0], told["ages"][-1]
    assert last["says"] == "el gato ve dos libros"
    assert first["says"] != last["says"]
    assert np.prod(first["p"]) < 1e-9 < 0.01 < np.prod(last["p"])
    for age in told["ages"]:
        assert all(1 / 6 <= share <= 1 for share in age["share"])
    assert last["reads"][0] == "▁the"
    model = open_model(trained)
    given = ages_data(model, TEXT, model.target_tokenizer.encode("el perro"))
    assert given is not None
    assert given["tokens"] == ["▁el", "▁perro"]


def test_a_young_model_is_not_let_go_on_forever(trained: Path, tmp_path: Path) -> None:
    young = tmp_path / "young"
    young.mkdir()
    for name in ("config.json", "tokenizer.json", "run"):
        (young / name).symlink_to(trained / name)
    (young / "model.safetensors").symlink_to(trained / "run/snapshots/step-00000000/model.safetensors")
    rewrite_config(young)
    told = ages_data(open_model(young), TEXT)
    assert told is not None
    assert len(told["tokens"]) == 16
    assert told["left_out"] == 4  # 2 · 5 + 10 tokens at most
    assert not told["ages"][-1]["ended"]


def test_without_snapshots_or_text_there_are_no_ages(trained: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    assert ages_data(open_model(tmp_path / "model"), "bala core") is None
    assert ages_data(open_model(trained), " ") is None


def test_on_a_light_install_the_ages_are_there(trained: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\nfrom vidrio.look import history, run\n"
        f"print(history.ages_data(run.open_model({str(trained)!r}), {TEXT!r})['ages'][-1]['says'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "el gato ve dos libros\n"


# --- curves -----------------------------------------------------------------------------------------------------------


def test_the_curves_are_those_of_the_metrics(trained: Path) -> None:
    records, curves = metrics(trained / "run"), curves_data(trained / "run")
    assert len(curves) == 5  # loss, BLEU, chrF, learning rate, tokens per second
    for line, kind in zip(curves[0]["lines"], ("step", "validation"), strict=True):
        assert line["points"] == [(r["step"], r["loss"]) for r in records if r["kind"] == kind]


def test_a_half_written_line_of_metrics_is_left_out(tmp_path: Path) -> None:
    record = {"kind": "step", "step": 20, "loss": 3.0, "rate": 0.1, "seconds": 60.0, "tokens_per_second": 5.0}
    (tmp_path / "metrics.jsonl").write_text(f'{json.dumps(record)}\n\n[1]\n{{"kind": "step", "st')
    assert metrics(tmp_path) == [record]
    assert len(curves_data(tmp_path)) == 3
    assert curves_data(tmp_path / "nowhere") == []


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e3, 1e3)), max_size=1500).map(sorted))
def test_thinned_curves_keep_their_end_and_their_range(points: list[tuple[float, float]]) -> None:
    few = thinned(points)
    assert len(few) <= MAX_POINTS + 1
    assert few[-1:] == points[-1:]
    if points:
        values = [value for _, value in points]
        assert all(min(values) - 1e-9 <= value <= max(values) + 1e-9 for _, value in few)


@pytest.fixture(autouse=True)
def _in_one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
