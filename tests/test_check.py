"""Test `vidrio check` and `vidrio why`, and that all numbers of a run are checked."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traced import CHOICES, make_trace
from vidrio import cli
from vidrio.errors import ModelError
from vidrio.glass.checking import Checked, check, check_quantity, recomputed, recomputed_names
from vidrio.glass.engine import FLOAT, IN_ORDER, INT8, Arithmetic
from vidrio.glass.expressions import PRECISIONS, At, bounded
from vidrio.glass.operations import OPERATIONS
from vidrio.glass.receipts import made_from
from vidrio.glass.trace import parse_address
from vidrio.look import parts
from vidrio.look.changed import look_changed
from vidrio.look.receipt import why
from vidrio.look.run import open_model


def vidrio(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# --- all numbers of a run ---------------------------------------------------------------------------------------------


MACHINES = [
    *((dtype, FLOAT) for dtype in (np.float64, np.float32, np.float16)),
    *((np.float32, arithmetic) for arithmetic in (INT8, IN_ORDER)),
]


@pytest.mark.parametrize(("dtype", "arithmetic"), MACHINES)
@pytest.mark.parametrize("choice", CHOICES)
def test_every_number_is_checked_and_agrees(choice: str, dtype: type, arithmetic: Arithmetic) -> None:
    trace = make_trace(choice, dtype, arithmetic)
    names = recomputed_names(trace)
    checked = check(trace)
    assert (checked.wrong, checked.exceptions) == (0, [])
    assert checked.count == sum(trace.array(name).size for name in names)
    assert checked.quantities == len(names)
    assert 0.4 < checked.share <= 1


@pytest.mark.parametrize(("dtype", "arithmetic"), MACHINES)
def test_whole_arrays_are_what_receipts_say_of_each_number(dtype: type, arithmetic: Arithmetic) -> None:
    """Check that a computation gives the same value and error bound for a whole array as for a single number."""
    generator = np.random.default_rng(1)
    for choice in CHOICES:
        trace = make_trace(choice, dtype, arithmetic)
        for name in recomputed_names(trace):
            value, tolerance = recomputed(trace, name)
            place = tuple(int(generator.integers(n)) for n in value.shape)
            again, bound = bounded(made_from(trace, At(name, place))[0], PRECISIONS[trace.machine.dtype.name])
            assert float(value[place]) == pytest.approx(again, rel=1e-15, nan_ok=True), name
            assert float(tolerance[place]) == pytest.approx(bound, rel=0.02), name


@pytest.mark.parametrize("choice", CHOICES)
def test_one_wrong_number_of_any_quantity_is_found_and_named(choice: str) -> None:
    trace = make_trace(choice)
    for name in recomputed_names(trace):
        right = trace.values[name]
        finite = np.where(np.isfinite(right), np.abs(right), -1)
        place = tuple(int(i) for i in np.unravel_index(int(np.argmax(finite)), right.shape))
        trace.values[name] = right.copy()
        trace.values[name][place] = right[place] * (1 + 1e-6) or 1e-6
        checked = Checked()
        check_quantity(trace, name, checked)
        found = {at for at, _ in checked.exceptions}
        if trace.stages[name].operation == "recurrence":
            found.discard(At(name, (place[0] + 1, place[1])))  # the next row is computed from this one
        assert found == {At(name, place)}
        trace.values[name] = right


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--dtype", "float32", "--mask", "off"],
        ["--softmax", "naive", "--divisor", "0.0001"],
        ["--change-dtype", "float16", "--set", "enc.0.ffn.b1[2]=3"],
        ["--target", "mundo hola"],
    ],
    ids=" ".join,
)
def test_checks_agree_in_words(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    code, out, _ = vidrio(capsys, "check", "hello world", "--model", "lesson", *options)
    assert code == 0, out
    assert "Everything agrees." in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_check_that_fails_says_where_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slipped(x: np.ndarray) -> np.ndarray:
        exps = np.exp(x - x.max())
        return exps / exps.sum(axis=(-1, -2), keepdims=True) * x.shape[-2]

    monkeypatch.setitem(OPERATIONS, "softmax", replace(OPERATIONS["softmax"], run=slipped))
    code, out, _ = vidrio(capsys, "check", "hello world", "--model", "lesson")
    assert code == 1
    assert "NOT everything agrees" in out
    assert "numbers do not follow from their inputs" in out
    assert ".weights.h" in out


def test_a_sum_that_does_not_add_up_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an error of 0.01 % in the contributions of heads is found."""
    for model in ("lesson", "en-es"):
        code, out, _ = vidrio(capsys, "check", "hello world", "--model", model)
        assert code == 0
        assert "logit differences of " in out
        assert int(out.split("rounding: at most ")[1].split(" %")[0]) <= 20
    of_heads = parts._of_heads

    def slipped(*given: Any) -> Iterator[Any]:
        for made in of_heads(*given):
            yield replace(made, values=made.values * (1 + 1e-4))

    monkeypatch.setattr(parts, "_of_heads", slipped)
    code, out, _ = vidrio(capsys, "check", "hello world", "--model", "en-es")
    assert code == 1
    assert "do not add up" in out
    assert "NOT everything agrees" in out


def test_an_empty_text_has_nothing_to_recompute(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = vidrio(capsys, "check", "", "--model", "lesson")
    assert code == 0
    assert "The text is empty" in out
    code, out, err = vidrio(capsys, "why", "memory[0,0]", "", "--model", "lesson")
    assert code == 1
    assert "the text is empty" in err
    assert not out


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["check", "hello world", "--softmax", "odd"], 1, "is not one of naive"),
        (["why", "enc.0.self.Q.h0[0,0]"], 2, "TEXT"),
        (["why", "enc.0.self.Q.h0", "hello world"], 1, "enc.0.self.Q.h0[0,0]"),
        (["why", "out.prob[0,holla]", "hello world"], 1, "hola"),
        (["why", "memory[0,0]", "hello world", "--as", "python", "--json"], 2, "--json"),
        (["why", "memory[0,0]", "hello world", "--model", "nowhere"], 1, "nowhere"),
    ],
)
def test_mistakes_are_answered(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str) -> None:
    if "--model" not in arguments:
        arguments = [*arguments, "--model", "lesson"]
    got, out, err = vidrio(capsys, *arguments)
    assert got == code
    assert told in err
    assert "Traceback" not in err
    assert not out


ADDRESSES = [
    "enc.0.self.scores.h0[0,1]",
    "dec.0.cross.weights.h1[1,hello]",
    "dec.0.self.masked.h0[0,1]",
    "out.prob[0,hola]",
    "out.choice[0]",
    "out.score[1]",
    "enc.0.self.norm.out[0,1]",
    "enc.0.self.WQ.h1[2,1]",
    "src.embed[hello,1]",
    "src.ids[0]",
    "src.positions[1,2]",
    "memory[1,3]",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_why_in_words_and_as_json(capsys: pytest.CaptureFixture[str], address: str) -> None:
    code, out, _ = vidrio(capsys, "why", address, "hello world", "--model", "lesson")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "made from" in out
    assert "used by" in out
    assert "DO NOT AGREE" not in out
    data = json.loads(vidrio(capsys, "why", address, "hello world", "--model", "lesson", "--json")[1])
    model = open_model("lesson")
    trace = look_changed(model, "hello world", []).after.trace
    assert trace.number(parse_address(data["address"])) == float(data["value"])
    assert data["agrees"]
    assert set(data["copies"]) == {"python", "spreadsheet"}
    for made in data["made_from"]:
        assert trace.number(parse_address(made["address"])) == float(made["value"])
    if data["kind"] == "parameter":
        place = data["stored"]
        raw = (model.path / "model.safetensors").read_bytes()[place["offset"] :][: len(bytes.fromhex(place["bytes"]))]
        assert raw == bytes.fromhex(place["bytes"])
        assert place["value"] == data["value"]


def test_why_with_more_decimals_and_other_machines(capsys: pytest.CaptureFixture[str]) -> None:
    def told(*options: str) -> str:
        code, out, _ = vidrio(capsys, "why", "enc.0.self.scaled.h0[0,1]", "hello world", "--model", "lesson", *options)
        assert code == 0
        return out

    assert "/ 1.7321" in told()
    assert "/ 1.73205081" in told("--precision", "8")
    assert "/ 30" in told("--divisor", "30")
    assert "scores / 30" in told("--divisor", "30")
    assert "model       float32" in told("--dtype", "float32")
    assert "A what-if replaced it with 0.25" in told("--set", "enc.0.self.scaled.h0[0,1]=0.25")


def test_a_file_that_was_damaged_meanwhile_is_refused(tmp_path: Path) -> None:
    trace = look_changed(open_model("lesson"), "hello world", []).after.trace
    for damage in (b"", b"\xff" * 100, b"\2" + bytes(7) + b"{}"):
        (tmp_path / "model.safetensors").write_bytes(damage)
        with pytest.raises(ModelError, match="cannot be read"):
            list(why(trace, "enc.0.ffn.W1[0,0]", tmp_path / "model.safetensors"))


def test_unknown_words_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["why", "memory[0,0]", "hello xyzzy"], ["check", "hello xyzzy"]):
        code, _, err = vidrio(capsys, *arguments, "--model", "lesson")
        assert code == 0
        assert "'xyzzy' is not in the vocabulary" in err
