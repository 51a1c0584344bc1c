"""Test `vidrio look`: the exact text of its views, 80 columns, plain text, JSON and errors."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from small_models import write_model
from vidrio import cli
from vidrio.look.run import look, open_model
from vidrio.look.writing import text_width
from vidrio.serve.app import create_app

Run = Callable[..., subprocess.CompletedProcess[str]]
Golden = Callable[[str, str], None]

# The options of each view, by the name of its golden file.
VIEWS = {
    "overview": [],
    "layer": ["--at", "enc.0"],
    "matrix": ["--at", "enc.0.self.weights.h0"],
    "masked-matrix": ["--at", "dec.0.self.masked.h1"],
    "parameter": ["--at", "enc.0.self.WQ.h1"],
    "vector": ["--at", "enc.0.self.norm.mean"],
    "words": ["--at", "out.prob"],
    "number": ["--at", "out.prob[0,hola]", "--at", "enc.0.self.WQ.h1[2,0]", "--at", "src.ids[1]"],
    "sampling": ["--temperature", "2", "--top-k", "4", "--top-p", "0.99", "--seed", "7"],
    "target": ["--target", "buen mundo"],
    "what-if": ["--without", "layer-norm", "--softmax", "naive"],
    "what-if-layer": ["--heads-off", "enc.1.self.h0", "--at", "enc.1.self.head"],
    "precision": ["--precision", "10", "--at", "enc.0.self.weights.h0"],
    "float32": ["--dtype", "float32", "--at", "out.prob"],
}


def look_at(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run `vidrio look` in this process. Return its exit code, stdout and stderr."""
    code = cli.main(["look", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_word_for_word_in_80_columns(view: str, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    code, out, err = look_at(capsys, "Hello world", "--model", "lesson", *VIEWS[view])
    assert code == 0, err
    golden(f"look/{view}.txt", out)
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())
    for line in out.splitlines():
        # Commands to copy are never wrapped, and additional decimals need more space.
        assert text_width(line) <= 80 or "vidrio " in line or view == "precision", line


@pytest.mark.parametrize("shape", ["encoder", "decoder", "encoder-decoder"])
def test_every_shape_of_model_in_every_view(shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {
        "encoder": {"n_classes": 3, "target_vocabulary": 0, "tying": "none"},
        "decoder": {"source_vocabulary": 0, "norm": "pre", "activation": "gelu"},
        "encoder-decoder": {"norm": "pre", "attention_bias": True, "n_heads": 8, "d_model": 40},
    }[shape]
    write_model(tmp_path / "model", ends=shape == "encoder-decoder", shape=shape, **given)
    model = ["--model", str(tmp_path / "model")]
    side = "dec" if shape == "decoder" else "enc"
    views = [[], ["--at", f"{side}.0"], ["--at", "out"], ["--at", side], ["--json"]]
    if shape != "encoder":
        views += [["--beam", "3"], ["--seed", "1"]]
    for view in views:
        code, out, err = look_at(capsys, "bala core xyz, fula!", *model, *view)
        assert code == 0, err
        assert out
        if "--json" not in view:
            assert all(text_width(line) <= 80 or "vidrio " in line for line in out.splitlines()), out


# --- JSON -------------------------------------------------------------------------------------------------------------


def no_constant(word: str) -> float:
    raise AssertionError(f"JSON has no {word}")


def test_json_is_what_the_server_answers(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = look_at(capsys, "hello world", "--model", "lesson", "--json")
    told = (
        TestClient(create_app("lesson"), base_url="http://localhost")
        .post("/api/run", json={"text": "hello world"})
        .json()
    )
    data = json.loads(out, parse_constant=no_constant)
    del told["sentences"], data["sentences"]
    assert data == told


def test_json_of_addresses_holds_their_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = look_at(capsys, "Hello world", "--model", "lesson", "--json", "--at", "dec.0.self", "--at", "memory")
    seen = look(open_model("lesson"), "Hello world")
    data = json.loads(out, parse_constant=no_constant)
    assert [entry["address"] for entry in data] == [*seen.trace.addresses("dec.0.self"), "memory"]
    for entry in data:
        array = seen.trace.array(entry["address"])
        assert tuple(entry["shape"]) == array.shape
        assert np.array_equal(np.array(entry["values"], dtype=array.dtype), array)  # NumPy parses "-inf" as −∞


# --- errors -----------------------------------------------------------------------------------------------------------


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    found, out, err = look_at(capsys, *arguments, "--model", "lesson")
    assert (found, out) == (code, ""), err
    assert "Traceback" not in err
    return err


def test_an_empty_text_is_said_to_be_empty(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = look_at(capsys, "", "--model", "lesson")
    assert (code, out) == (0, "The text is empty, and so is its translation. Nothing was computed.\n")
    assert refused(capsys, "", "--at", "enc.0.self.weights.h0")
    code, out, _ = look_at(capsys, " ", "--model", "lesson", "--json")
    assert (code, json.loads(out)["translation"]) == (0, "")
    assert look_at(capsys, "", "--model", "lesson", "--at", "enc.0.self.WQ.h0")[0] == 0, "parameters are always there"
    for view in (["--at", "out"], ["--at", "enc.0"]):
        assert refused(capsys, "", *view)


@pytest.mark.parametrize(
    ("address", "nearest"),
    [
        ("enc.0.self.weigths.h0", "enc.0.self.weights.h0"),
        ("enc.9", "enc.5"),
        ("out.prob[0,holla]", "hola"),
        ("enc.0.self.weights.h0[7,0]", "0 to 1"),
    ],
)
def test_an_unknown_address_is_answered_with_the_nearest(
    address: str, nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nearest in refused(capsys, "Hello world", "--at", address)


def test_too_long_a_text_is_refused_with_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    limit = open_model("lesson").config.max_positions
    assert f"{limit + 5} tokens" in refused(capsys, "hello " * (limit + 5), "--as-typed")


@pytest.mark.parametrize("arguments", [["--beam", "0"], ["--dtype", "int4"], ["--att", "enc.0"]])
def test_a_mistyped_option_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "Hello world", *arguments, code=2)


@pytest.mark.parametrize(
    "arguments", [["--beam", "4", "--seed", "1"], ["--without", "everything"], ["--html", "/dev/null/page.html"]]
)
def test_what_cannot_be_done_is_exit_code_1(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "Hello world", *arguments)


def test_control_characters_in_a_text_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = look_at(capsys, "hello \x1b[31mworld\u202e", "--model", "lesson")
    assert "\x1b" not in out + err
    assert "\u202e" not in out + err
