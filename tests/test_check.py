"""Checking many numbers, the parameters' file, and one pass against the steps; `vidrio check` and `vidrio why`."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from small_models import write_model
from traced import CHOICES, make_machine, make_trace
from vidrio import cli
from vidrio.errors import AddressError, ModelError
from vidrio.glass.numbers.trace import parse_address
from vidrio.glass.proof import checking
from vidrio.glass.proof.checking import (
    check,
    check_following,
    check_steps,
    every,
    how_many,
    recomputed_names,
    spread,
    under,
    usual,
)
from vidrio.glass.proof.receipts import At
from vidrio.glass.proof.stored import check_file, stored
from vidrio.look import checked as report
from vidrio.look.changed import look_changed
from vidrio.look.run import open_model
from vidrio.look.terminal import text as text_of
from vidrio.model.folder import read_parameters, write_parameters


def vidrio(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# --- which numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", CHOICES)
def test_every_number_is_checked_once_and_agrees(choice: str) -> None:
    trace = make_trace(choice)
    names = recomputed_names(trace)
    ats = list(every(trace, names))
    assert len(set(ats)) == len(ats) == how_many(trace) == sum(trace.array(name).size for name in names)
    checked = check(trace, ats)
    assert not checked.exceptions
    assert checked.count == len(ats)
    assert checked.quantities == set(names)
    assert 0 < checked.share <= 1
    assert 0 < checked.largest < 1e-11


@pytest.mark.parametrize("choice", ["paper", "classifier", "decoder-alone"])
def test_one_wrong_number_is_found_and_named(choice: str) -> None:
    trace = make_trace(choice)
    names = recomputed_names(trace)
    last = next(name for name in reversed(names) if not trace.stages[name].inputs[0].startswith("out."))
    trace.values[last] = trace.values[last].copy()
    place = (0,) * trace.values[last].ndim
    trace.values[last][place] *= 1 + 1e-6
    checked = check(trace, every(trace, names))
    assert At(last, place) in [at for at, _ in checked.exceptions]
    at, result = checked.worst(1)[0]
    assert result.difference > result.tolerance > 0
    assert at in [at for at, _ in checked.exceptions]


def test_random_numbers_are_spread_over_the_quantities() -> None:
    trace = make_trace()
    names = recomputed_names(trace)
    for count in (1, 100, len(names), 5 * len(names), 10**9):
        ats = spread(trace, names, count, np.random.default_rng(0))
        assert len(set(ats)) == len(ats) == min(count, how_many(trace))
        per_name = {name: sum(at.name == name for at in ats) for name in names}
        fullest = max(per_name.values())
        assert all(n >= min(fullest // 2, trace.array(name).size) for name, n in per_name.items())
        assert not check(trace, ats).exceptions
    assert spread(trace, names, 50, np.random.default_rng(1)) == spread(trace, names, 50, np.random.default_rng(1))
    assert spread(trace, names, 50, np.random.default_rng(1)) != spread(trace, names, 50, np.random.default_rng(2))


def test_the_usual_check_has_all_that_came_out(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = make_trace()
    outputs = set(every(trace, ["out.logits", "out.prob", "out.score"]))
    ats = usual(trace, np.random.default_rng(0))
    assert outputs <= set(ats)
    assert len(ats) == len(outputs) + checking.USUAL
    assert {at.name for at in ats} == set(recomputed_names(trace))
    monkeypatch.setattr(checking, "MOST_OUTPUTS", 30)
    assert sum(at.name.startswith("out.") for at in usual(trace, np.random.default_rng(0))) == 30


def test_numbers_under_an_address() -> None:
    trace = make_trace()
    assert under(trace, parse_address("memory[1,2]")) == [At("memory", (1, 2))]
    assert {at.name for at in under(trace, parse_address("enc.0.self.norm"))} == {
        f"enc.0.self.norm.{part}" for part in ("mean", "var", "normed", "out")
    }
    at_step = under(trace, parse_address("dec.0.self.weights.h1@2"))
    assert len(at_step) == 9
    assert {at.step for at in at_step} == {2}
    assert [at.place[0] for at in under(trace, parse_address("out.prob@2"))] == [2] * 29
    assert not check(trace, [*at_step, *under(trace, parse_address("out.prob@2"))]).exceptions
    for wrong, told in (("enc.0.sel", "the nearest"), ("embed", "nothing is computed"), ("memory[9,9]", "0 to 4")):
        with pytest.raises(AddressError, match=told):
            under(trace, parse_address(wrong))


# --- what goes with the numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["paper", "pre-gelu-halves", "decoder-learned"])
def test_one_pass_is_held_to_the_steps(choice: str) -> None:
    trace = make_trace(choice)
    result = check_steps(trace)
    assert result is not None
    assert result.agrees
    assert result.steps == 7
    trace.values["out.logits"] = trace.values["out.logits"].copy()
    trace.values["out.logits"][4, 1] += 1e-4
    result = check_steps(trace)
    assert result is not None
    assert not result.agrees
    assert result.at == 4
    trace.values["out.logits"][2, 1] = np.nan
    result = check_steps(trace)
    assert result is not None
    assert not result.agrees


def test_there_is_nothing_to_hold_to_steps_without_a_decoder_or_with_changed_numbers() -> None:
    assert check_steps(make_trace("classifier")) is None
    trace = make_trace()
    trace.computed["memory"] = trace.values["memory"]
    assert check_steps(trace) is None


def test_ids_are_held_to_tokens_and_choices() -> None:
    trace = make_trace()
    assert check_following(trace) == []
    trace.values["out.choice"] = trace.values["out.choice"].copy()
    trace.values["out.choice"][2] += 1
    assert check_following(trace) == ["tgt.ids[3]", "out.choice[2]"]
    trace = make_trace()
    trace.source_tokens = ["s9", *trace.source_tokens[1:]]
    assert check_following(trace) == ["src.ids[0]"]


def test_the_file_is_read_by_hand_as_by_its_library(tmp_path: Path) -> None:
    parameters = make_machine().parameters
    for dtype in (np.float64, np.float32, np.float16):
        path = tmp_path / "model.safetensors"
        save_file({name: p.astype(dtype) for name, p in parameters.items()}, path, metadata={"made": "by a test"})
        tensors = {tensor.name: tensor for tensor in stored(path)}
        assert set(tensors) == set(parameters)
        data = path.read_bytes()
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(tensor.array, parameters[name].astype(dtype))
            place = tuple(length - 1 for length in tensor.shape)
            offset, raw = tensor.bytes_of(place)
            assert data[offset : offset + len(raw)] == raw
            assert np.frombuffer(raw, dtype)[0] == parameters[name].astype(dtype)[place]


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<HH", 0x3FC0, 0xC000))
    (tensor,) = stored(path)
    np.testing.assert_array_equal(tensor.array, [1.5, -2.0])


@pytest.mark.parametrize("damage", [b"", b"\0" * 8, b"\xff" * 100, struct.pack("<Q", 2) + b"{}x", None])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, damage: bytes | None) -> None:
    path = tmp_path / "model.safetensors"
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises(ModelError, match="cannot be read"):
        list(stored(path))


def test_every_bit_of_the_parameters_is_held_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    machine = make_machine()
    save_file(dict(machine.parameters), path)
    result = check_file(path, machine.parameters)
    assert result.wrong == ()
    assert result.tensors == len(machine.parameters)
    assert result.numbers == sum(p.size for p in machine.parameters.values())
    assert check_file(path, make_machine(dtype=np.float32).parameters).wrong == ()  # each rounded once
    flipped = {name: p.copy() for name, p in machine.parameters.items()}
    flipped["enc.0.ffn.W2"][3, 2] = np.nextafter(flipped["enc.0.ffn.W2"][3, 2], 9)
    assert check_file(path, flipped).wrong == ("enc.0.ffn.W2",)
    fewer = {name: p for name, p in machine.parameters.items() if name != "memory" and name != "embed"}
    assert check_file(path, fewer).wrong == ("embed",)
    assert check_file(path, {**machine.parameters, "extra": np.zeros(3)}).wrong == ("extra",)


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["hello world", "good morning", "world world hello"])
def test_every_number_of_the_trained_lesson_is_recomputed(capsys: pytest.CaptureFixture[str], text: str) -> None:
    code, out, _ = vidrio(capsys, "check", text, "--all", "--json", "--model", "lesson")
    data = json.loads(out)
    assert code == 0
    assert data["agrees"]
    assert data["exceptions"] == []
    assert data["recomputed"] == data["of"] > 3000
    assert data["one_pass_against_steps"]["largest"] < 1e-9
    assert data["parameters"]["wrong"] == []
    assert all(len(sum_) == 64 for sum_ in data["parameters"]["sha256"].values())


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--random", "50"],
        ["enc.0", "out.prob[hola]@0", "dec.1.cross.weights.h0@1"],
        ["--dtype", "float32", "--all"],
        ["--all", "--mask", "off"],
        ["--all", "--without", "layer-norm", "--softmax", "naive"],
        ["--all", "--softmax", "naive", "--divisor", "0.0001"],
        ["--all", "--change-dtype", "float16"],
        ["--heads-off", "enc.1.self.h0", "--set", "enc.0.ffn.b1[2]=3"],
        ["--target", "mundo hola", "--all"],
        ["--beam", "2", "--random", "100", "--random-seed", "3"],
    ],
    ids=" ".join,
)
def test_checks_agree_in_words(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    code, out, _ = vidrio(capsys, "check", "hello world", "--model", "lesson", *options)
    assert code == 0, out
    assert "Everything agrees." in out
    assert "Parameters" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_check_that_fails_says_where_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vidrio.glass.paper.arithmetic import FLOAT

    def slipped(x: np.ndarray) -> np.ndarray:
        exps = np.exp(x - x.max())
        return exps / exps.sum(axis=(-1, -2), keepdims=True) * x.shape[-2]

    monkeypatch.setitem(vars(FLOAT), "softmax", slipped)
    code, out, _ = vidrio(capsys, "check", "hello world", "--model", "lesson", "--all")
    assert code == 1
    assert "NOT everything agrees" in out
    assert "numbers do not follow from their inputs" in out
    assert "enc.0.self.weights.h0[0," in out or "weights" in out
    code, out, _ = vidrio(capsys, "check", "hello world", "--model", "lesson", "--all", "--json")
    data = json.loads(out)
    assert code == 1
    assert not data["agrees"]
    operations = {
        parse_address(entry["address"]).name.rpartition(".h")[0].rpartition(".")[2] for entry in data["exceptions"]
    }
    assert "weights" in operations
    assert "scores" not in operations


def test_a_file_changed_since_it_was_read_is_found(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    model = open_model(tmp_path / "model")
    text = "bala core"
    assert report.run(look_changed(model, text, []), report.Which()).agrees
    parameters = read_parameters(tmp_path / "model")
    parameters["enc.0.ffn.b1"] = parameters["enc.0.ffn.b1"] + 1
    write_parameters(tmp_path / "model", parameters)
    outcome = report.run(look_changed(model, text, []), report.Which(random=10))
    assert not outcome.agrees
    assert outcome.file.wrong == ("enc.0.ffn.b1",)
    assert "WRONG: not as in model.safetensors: enc.0.ffn.b1" in text_of(report.tell(outcome))


def test_progress_is_told_when_it_takes_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PATIENCE", 0.0)
    told: list[tuple[int, int]] = []
    tried = look_changed(open_model("lesson"), "hello world", [])
    outcome = report.run(tried, report.Which(random=20), progress=lambda done, whole: told.append((done, whole)))
    assert outcome.checked.count == 20
    assert told[-1] == (20, 20)


def test_an_empty_text_has_nothing_to_recompute(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = vidrio(capsys, "check", "", "--model", "lesson")
    assert code == 0
    assert "The text is empty" in out
    assert "Parameters" in out
    code, out, err = vidrio(capsys, "why", "memory[0,0]", "", "--model", "lesson")
    assert code == 1
    assert "the text is empty" in err
    assert not out


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["check", "hello world", "--all", "--random", "3"], 2, "one of"),
        (["check", "hello world", "enc.9"], 1, "the nearest"),
        (["check", "hello world", "--softmax", "odd"], 1, "naive, stable"),
        (["check", "hello world", "--random", "0"], 2, "--random"),
        (["why", "enc.0.self.Q.h0[0,0]"], 2, "TEXT"),
        (["why", "enc.0.self.Q.h9[0,0]", "hello world"], 1, "enc.0.self.Q.h1"),
        (["why", "enc.0.self.Q.h0", "hello world"], 1, "enc.0.self.Q.h0[0,0]"),
        (["why", "out.prob[holla]@0", "hello world"], 1, "hola"),
        (["why", "out.prob[hola]@9", "hello world"], 1, "steps 0 to 2"),
        (["why", "memory[0,0]", "hello world", "--as", "python", "--deep"], 2, "--deep"),
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
    "dec.0.cross.weights.h1[1,hello]@1",
    "dec.0.self.masked.h0[0,1]",
    "out.prob[hola]@0",
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
def test_why_in_words(capsys: pytest.CaptureFixture[str], address: str) -> None:
    code, out, _ = vidrio(capsys, "why", address, "hello world", "--model", "lesson")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "made from" in out
    assert "used by" in out
    assert "DO NOT AGREE" not in out


@pytest.mark.parametrize("address", ADDRESSES)
def test_why_as_json(capsys: pytest.CaptureFixture[str], address: str) -> None:
    data = json.loads(vidrio(capsys, "why", address, "hello world", "--model", "lesson", "--json")[1])
    model = open_model("lesson")
    trace = look_changed(model, "hello world", []).after.trace
    assert trace.number(parse_address(data["address"])) == float(str(data["value"]).replace("-inf", "-inf"))
    assert data["agrees"]
    assert set(data["copy"]) == {"calculator", "python", "spreadsheet", "latex"}
    for made in data["made_from"]:
        assert trace.number(parse_address(made["address"])) == float(made["value"])
    if data["kind"] == "parameter":
        place = data["stored"]
        raw = (model.path / "model.safetensors").read_bytes()[place["offset"] :][: len(bytes.fromhex(place["bytes"]))]
        assert raw == bytes.fromhex(place["bytes"])
        assert place["value"] == data["value"]


def test_why_with_more_decimals_and_other_machines(capsys: pytest.CaptureFixture[str]) -> None:
    def why(*options: str) -> str:
        code, out, _ = vidrio(capsys, "why", "enc.0.self.scaled.h0[0,1]", "hello world", "--model", "lesson", *options)
        assert code == 0
        return out

    assert "/ 1.7321" in why()
    assert "/ 1.73205081" in why("--precision", "8")
    assert "/ 30" in why("--divisor", "30")
    assert "scores / 30" in why("--divisor", "30")
    assert "model       float32" in why("--dtype", "float32")
    assert "A what-if put 0.25 in its place" in why("--set", "enc.0.self.scaled.h0[0,1]=0.25")


def test_why_goes_down_to_parameters_and_ids(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["why", "enc.0.self.scores.h0[0,1]", "hello world", "--model", "lesson", "--deep"]
    code, out, _ = vidrio(capsys, *arguments)
    assert code == 0
    assert "a parameter" in out
    assert "the id of hello" in out
    assert "left out" not in out
    code, short, _ = vidrio(capsys, *arguments, "--limit", "5")
    assert code == 0
    assert "left out" in short
    data = json.loads(vidrio(capsys, *arguments, "--json", "--limit", "7")[1])
    assert len(data["numbers"]) == 7
    assert data["left_out"] == sum(data["made_from"].values()) + 1 - 7
    assert data["numbers"][0]["address"] == "enc.0.self.scores.h0[0,1]"


@pytest.mark.parametrize("kind", ["calculator", "python", "spreadsheet", "latex"])
def test_why_to_copy(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    arguments = ["why", "enc.0.self.scores.h0[0,1]", "hello world", "--model", "lesson", "--as", kind]
    code, out, _ = vidrio(capsys, *arguments)
    assert code == 0
    assert len(out.splitlines()) == 1
    assert out.startswith("=") == (kind == "spreadsheet")


def test_an_edit_that_shows_a_row_a_later_one_is_traced_step_by_step() -> None:
    tried = look_changed(open_model("lesson"), "hello world", [("set", "dec.0.self.weights.h0[0,1]=0.5")])
    assert tried.after.trace.steps
    assert tried.after.disagreement <= tried.after.tolerance
    assert report.run(tried, report.Which(every=True)).agrees


def test_unknown_words_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["why", "memory[0,0]", "hello xyzzy"], ["check", "hello xyzzy", "memory"]):
        code, out, err = vidrio(capsys, *arguments, "--model", "lesson")
        assert code == 0
        assert "'xyzzy' is not in the vocabulary" in err
        assert "vocabulary" not in out
