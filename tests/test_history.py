"""The ages of a model: which are kept while it learns, and what each of them makes of a sentence."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from small_models import rewrite_config, write_model
from small_run import train_small
from vidrio.cli import main
from vidrio.learn import run_files
from vidrio.look.writing import text_width
from vidrio.model.folder import read_parameters


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("run"))


# --- snapshots --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**7), st.integers(1, 9))
def test_the_steps_that_are_kept_are_few_and_never_come_back(step: int, most: int) -> None:
    kept, before = run_files.kept_steps(step, most), run_files.kept_steps(max(0, step - 1), most)
    assert kept[0] == 0
    assert len(kept) <= most + 1
    assert max(kept) <= step
    assert step == 0 or max(kept) > step / 2
    assert set(kept) <= {*before, step}  # what was let go is not wanted again
    assert (step in kept) == run_files.is_due(step)


def test_snapshots_are_what_is_kept(tmp_path: Path) -> None:
    for step in range(1201):
        if run_files.is_due(step):
            run_files.keep_snapshot(tmp_path, step, {"x": np.array([float(step)])})
    found = run_files.snapshots(tmp_path)
    assert [step for step, _ in found] == run_files.kept_steps(1200) == [0, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert [float(read_parameters(folder)["x"][0]) for _, folder in found] == [step for step, _ in found]


def test_large_models_keep_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "ROOM", 4000)
    for step in (0, 1, 2, 4, 8, 16, 32, 64):
        run_files.keep_snapshot(tmp_path, step, {"x": np.zeros(125)})  # 1,000 bytes
    assert [step for step, _ in run_files.snapshots(tmp_path)] == [0, 8, 16, 32, 64]


def test_a_run_leaves_its_ages(trained: Path) -> None:
    steps = [step for step, _ in run_files.snapshots(trained / "run")]
    assert steps == run_files.kept_steps(150) == [0, 1, 2, 4, 8, 16, 32, 64, 128]


# --- the command ------------------------------------------------------------------------------------------------------


def said(*arguments: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["look", *arguments])
    return code, out.getvalue(), err.getvalue()


PAIR = ("the cat sees two books", "--target", "el gato ve dos libros")


def test_the_ages_of_a_model(trained: Path) -> None:
    code, out, err = said("-m", str(trained), PAIR[0], "--history", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert [age["step"] for age in told["ages"]] == [0, 1, 2, 4, 8, 16, 32, 64, 128, None]
    assert told["tokens"] == ["▁el", "▁gato", "▁ve", "▁dos", "▁libros", "</s>"]
    first, last = told["ages"][0], told["ages"][-1]
    assert last["says"] == "el gato ve dos libros"
    assert first["says"] != last["says"]
    assert np.prod(first["p"]) < 1e-9 < 0.01 < np.prod(last["p"])
    assert math.exp(last["log_p"]) >= np.prod(last["p"])  # the search may not take every word: p of the others is more
    assert told["attention"] == "dec.0.cross"
    for age in told["ages"]:
        assert all(1 / 6 <= share <= 1 for share in age["share"])
        assert all(0 <= bits <= math.log2(6) + 1e-12 for bits in age["entropy"])
    assert last["reads"][0] == "▁the"


def test_the_ages_as_text(trained: Path) -> None:
    code, out, err = said(
        "-m", str(trained), PAIR[0], "--history", "--at", "dec.0.cross.weights.h1", "--precision", "2"
    )
    assert code == 0, err
    assert "What each token reads: dec.0.cross.weights.h1" in out
    assert [line for line in out.splitlines() if text_width(line) > 80 or line != line.rstrip()] == []
    _, given, _ = said("-m", str(trained), PAIR[0], "--history", "--target", "el perro")
    assert "How sure it is of “▁el ▁perro </s>”" in given


def test_a_young_model_is_not_let_go_on_forever(trained: Path, tmp_path: Path) -> None:
    young = tmp_path / "young"
    young.mkdir()
    for name in ("config.json", "tokenizer.json", "run"):
        (young / name).symlink_to(trained / name)
    (young / "model.safetensors").symlink_to(trained / "run/snapshots/step-00000000/model.safetensors")
    rewrite_config(young)
    code, out, err = said("-m", str(young), PAIR[0], "--history", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert len(told["tokens"]) == 16
    assert told["left_out"] == 4  # 2 · 5 + 10 tokens at most
    assert not told["ages"][-1]["ended"]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("the cat", "--history", "--at", "enc.0.self"), "is no cross-attention of this model"),
        (("", "--history"), "there is nothing to follow"),
    ],
)
def test_what_cannot_be_is_refused(trained: Path, arguments: tuple[str, ...], told: str) -> None:
    code, out, err = said("-m", str(trained), *arguments)
    assert (code, out) == (1, "")
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("the cat", "--history", "--without", "residual"),
        ("the cat", "--history", "--at", "dec.0.cross", "--at", "dec.0.cross"),
    ],
)
def test_views_that_do_not_go_together(trained: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = said("-m", str(trained), *arguments)
    assert (code, out) == (2, "")
    assert "Error:" in err


def test_a_model_without_snapshots_has_no_history(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    code, _, err = said("-m", str(tmp_path / "model"), "bala core", "--history")
    assert code == 1
    assert "this model has no history" in err


def without_torch(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.modules['torch'] = None\nfrom vidrio.cli import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_on_a_light_install_the_ages_are_there(trained: Path, tmp_path: Path) -> None:
    done = without_torch(["look", "-m", str(trained), PAIR[0], "--history"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "el gato ve dos libros" in done.stdout


@pytest.fixture(autouse=True)
def _in_one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
