"""Test Marian's recurrent cell (SSRU), which replaces the decoder's self-attention, against its equations."""

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from parity_models import SOURCE, TARGET
from source import PACKAGE
from tolerances import FLOAT64
from traced import make_machine, make_trace, run
from vidrio.cli import main
from vidrio.engine.engine import Engine
from vidrio.errors import ConfigError, InputError
from vidrio.glass.checking import check
from vidrio.glass.compared import compare
from vidrio.glass.declaration import stages_of
from vidrio.glass.engine import INT8
from vidrio.glass.machine import Machine
from vidrio.glass.receipts import locate, receipt
from vidrio.glass.trace import Trace, parse_address
from vidrio.glass.walk import encode, stepper
from vidrio.glass.whatif import parse
from vidrio.hypothesis import default_options
from vidrio.interop.convert import import_model
from vidrio.look.run import look, open_model
from vidrio.model.folder import read_config
from vidrio.search import search
from vidrio.serve.looking import Looking
from vidrio.serve.questions import ANSWERS
from vidrio.serve.translating import Question
from vidrio.site.writing import write_site

CELL = "dec.0.ssru.cell"


def written_out(machine: Machine, ids: list[int], memory_SD: np.ndarray) -> np.ndarray:
    """Return the decoder's logits as Marian computes them: step by step, with a state per layer."""
    p, c = machine.parameters, machine.config
    half, states = c.d_model // 2, [np.zeros(c.d_model) for _ in range(c.n_decoder_layers)]
    wave = np.exp(np.arange(half) * -math.log(10000) / (half - 1))

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean()
        gain, bias = p[f"{name}.norm.gain"], p[f"{name}.norm.bias"]
        return centred / np.sqrt((centred**2).mean() + c.norm_epsilon) * gain + bias

    def cross(y: np.ndarray, name: str) -> np.ndarray:
        heads = []
        for h in range(c.n_heads):
            q, k, v = (
                x @ p[f"{name}.W{n}"][h] + p[f"{name}.b{n}"][h]
                for x, n in ((y, "Q"), (memory_SD, "K"), (memory_SD, "V"))
            )
            weights = np.exp(k @ q / math.sqrt(c.d_head))
            heads.append(weights / weights.sum() @ v)
        return np.concatenate(heads) @ p[f"{name}.WO"] + p[f"{name}.bO"]

    rows = []
    for t, word in enumerate(ids):
        y = (0 if word < 0 else p["tgt.embed"][word] * math.sqrt(c.d_model)) + np.concatenate(
            [np.sin(t * wave), np.cos(t * wave)]
        )
        for n in range(c.n_decoder_layers):
            name = f"dec.{n}"
            f = 1 / (1 + np.exp(-(y @ p[f"{name}.ssru.Wf"] + p[f"{name}.ssru.bf"])))
            states[n] = f * states[n] + (1 - f) * (y @ p[f"{name}.ssru.W"])
            y = norm(y + np.maximum(states[n], 0), f"{name}.ssru")
            y = norm(y + cross(y, f"{name}.cross"), f"{name}.cross")
            hidden = np.maximum(y @ p[f"{name}.ffn.W1"] + p[f"{name}.ffn.b1"], 0)
            y = norm(y + hidden @ p[f"{name}.ffn.W2"] + p[f"{name}.ffn.b2"], f"{name}.ffn")
        rows.append(y @ p["tgt.embed"].T + p["out.b"])
    return np.array(rows)


def test_the_decoder_is_marians() -> None:
    machine = make_machine("recurrent")
    trace = run(machine)
    ids = trace.array("tgt.ids").tolist()
    assert ids[0] == -1
    memory_SD = encode(machine, SOURCE)
    np.testing.assert_allclose(trace.array("out.logits"), written_out(machine, ids, memory_SD), rtol=0, atol=FLOAT64)
    step = stepper(machine, SOURCE)
    for n in range(1, len(ids) + 1):
        np.testing.assert_allclose(step([tuple(ids[:n])])[0], trace.array("out.logits")[n - 1], rtol=0, atol=FLOAT64)


def test_a_decoder_without_a_start_token_begins_with_zeros() -> None:
    for machine in (make_machine("recurrent"), make_machine("recurrent", np.float32, INT8)):
        trace = run(machine)
        assert not trace.array("tgt.embedding")[0].any()
        assert trace.array("tgt.embedding")[1:].any(axis=1).all()
        np.testing.assert_array_equal(trace.array("dec.in")[0], trace.array("tgt.positions")[0])
        assert receipt(trace, locate(trace, parse_address("tgt.embedding[0,1]"))).working() == ["0.0"]


def test_the_receipt_of_a_state_names_the_state_before() -> None:
    trace = make_trace("recurrent")
    bill = receipt(trace, locate(trace, parse_address(f"{CELL}[3,2]")))
    assert bill.formula == "forget[3,2]*cell[2,2] + (1 - forget[3,2])*candidate[3,2]"
    assert {str(at) for at, _ in bill.inputs} == {f"{CELL}[2,2]", "dec.0.ssru.forget[3,2]", "dec.0.ssru.candidate[3,2]"}
    assert bill.used_by == (f"{CELL}[4,2]", "dec.0.ssru.out[3,2]")
    assert bill.compared.agrees
    first, last = (receipt(trace, locate(trace, parse_address(f"{CELL}[{t},2]"))) for t in (0, len(TARGET) - 1))
    assert f"{CELL}[-1,2]" not in {str(at) for at, _ in first.inputs}
    assert first.compared.agrees
    assert last.used_by == (f"dec.0.ssru.out[{len(TARGET) - 1},2]",)


def test_the_line_of_numpy_is_a_loop_over_rows() -> None:
    code = stages_of(make_machine("recurrent"))[CELL].code
    assert code == (
        "for t in range(T): cell[t] = forget[t] * (cell[t - 1] if t else 0) + (1 - forget[t]) * candidate[t]"
    )


def changed(*asked: tuple[str, str], choice: str = "recurrent") -> tuple[Trace, Trace]:
    before = make_trace(choice)
    return before, run(parse(asked, before).apply(before.machine))


def test_a_state_that_is_set_goes_on_into_later_rows() -> None:
    before, after = changed(("set", f"{CELL}[2,4]=5"))
    cell, forget = after.array(CELL), before.array("dec.0.ssru.forget")
    np.testing.assert_array_equal(cell[:2], before.array(CELL)[:2])
    assert cell[2, 4] == 5
    for t in range(3, len(TARGET)):
        written = (1 - forget[t, 4]) * before.array("dec.0.ssru.candidate")[t, 4]
        assert cell[t, 4] == forget[t, 4] * cell[t - 1, 4] + written
    others = [column for column in range(cell.shape[1]) if column != 4]
    np.testing.assert_array_equal(cell[:, others], before.array(CELL)[:, others])
    checked = check(after)
    assert (checked.wrong, checked.edited) == (0, 1)
    assert compare(before, after).layers["dec.0"].largest > 0


def test_without_the_forget_gate_nothing_is_kept() -> None:
    before, after = changed(("without", "forget-gate"))
    assert not after.array("dec.0.ssru.forget").any()
    np.testing.assert_array_equal(after.array(CELL), after.array("dec.0.ssru.candidate"))
    assert check(after).wrong == 0
    np.testing.assert_array_equal(after.array(CELL)[0], before.array("dec.0.ssru.candidate")[0])


def test_without_the_recurrent_cells_a_row_reads_the_source_alone() -> None:
    _, after = changed(("without", "ssru"))
    assert not after.array("dec.0.ssru.out").any()
    assert not after.array("dec.1.ssru.out").any()
    _, of_one = changed(("without", "dec.1.ssru"))
    assert of_one.array("dec.0.ssru.out").any()
    assert not of_one.array("dec.1.ssru.out").any()


@pytest.mark.parametrize(
    ("choice", "asked", "part"),
    [
        ("recurrent", ("mask", "off"), "no masked self-attention"),
        ("classifier", ("mask", "off"), "no masked self-attention"),
        ("paper", ("without", "forget-gate"), "no recurrent cell"),
        ("paper", ("without", "ssru"), "no 'ssru'"),
    ],
)
def test_what_a_model_does_not_have_cannot_be_left_out(choice: str, asked: tuple[str, str], part: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(part)):
        parse([asked], make_trace(choice))


# --- an imported Marian model in the engine, on the page and in the commands ------------------------------------------

TEXT = "The old teacher finds the city."
GOLDEN = Path(__file__).parent / "golden/marian"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "firefox"
    import_model(str(GOLDEN), folder)
    return folder


def test_the_engine_and_both_searches_agree(imported: Path) -> None:
    model = open_model(imported)
    engine = Engine.load(imported, model.config)
    ids = [*model.source_tokenizer.encode(TEXT), *model.config.source_close]
    for beam in (1, 4):
        options = replace(default_options(model.config), beam=beam, n_best=beam, max_length=30)
        [found] = engine.search([ids], options)
        special = model.config.special
        reference = search(stepper(model.machine, ids), special.start, special.end, options)
        assert [h[:5] for h in found] == [h[:5] for h in reference]


def test_in_float32_the_engine_has_marians_texts_and_log_probabilities(imported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "float32"
    assert main(["import", str(GOLDEN), "--to", str(folder), "--float32"]) == 0
    model, config = open_model(folder), read_config(folder)[0]
    assert config == replace(read_config(imported)[0], int8=False)
    assert not model.machine.whole
    engine = Engine.load(folder, model.config)
    for expected in json.loads((GOLDEN / "expected.json").read_text("utf-8")):
        source = [*model.source_tokenizer.encode(expected["source"]), *config.source_close]
        [[best]] = engine.search([source], replace(default_options(config), max_length=100))
        assert model.target_tokenizer.decode(best.ids) == expected["target"].strip()
        [log_probs] = engine.forced([(source, best.ids)])
        words: list[list[float]] = []
        for token, log_prob in zip(best.ids, log_probs, strict=False):
            if model.target_tokenizer.token(token).startswith("▁") or not words:
                words.append([])
            words[-1].append(log_prob)
        assert np.abs([np.mean(word) for word in words] - np.array(expected["words"])).max() < 1e-5


@pytest.mark.parametrize("change", [None, ("without", "forget-gate"), ("set", f"{CELL}[1,2]=3")])
def test_every_question_of_the_page_has_an_answer(imported: Path, change: tuple[str, str] | None) -> None:
    looking = Looking(str(imported))
    further: dict[str, dict[str, object]] = {
        "tensors": {
            "addresses": (CELL, "dec.0.ssru.forget", "dec.0.cross.weights", "dec.0.self.Q.h0"),
            "if_there": True,
        },
        "positions": {"address": "tgt.positions"},
        "receipt": {"address": f"{CELL}[1,2]"},
        "copy": {"address": "dec.0.ssru.forget[1,2]", "kind": "python"},
        "forced": {"answer": "never"},
        "why_rows": {"other": TEXT},
    }
    for name, ask in ANSWERS.items():
        if name.startswith("why_") and change:
            with pytest.raises(InputError, match="what-ifs"):
                ask(looking, Question(text=TEXT, changes=(change,)))
            continue
        question = Question(text=TEXT, changes=(change,) if change else (), **further.get(name, {}))  # type: ignore[arg-type]
        answer = ask(looking, question)
        assert answer, name
        if name == "run":
            assert answer["target"][0] == {"token": "∅", "id": -1}
        if name == "tensors":
            assert set(load(answer)) == {CELL, "dec.0.ssru.forget", "dec.0.cross.weights"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("check", TEXT), "Everything agrees"),
        (("look", TEXT), "a recurrent cell, which keeps a state"),
        (("look", TEXT, "--at", "dec.0.ssru"), "dec.0.ssru.cell"),
        (("look", TEXT, "--at", f"{CELL}[1,2]"), "row 1"),
        (("look", TEXT, "--without", "ssru"), "the recurrent cells add nothing"),
        (("why", f"{CELL}[1,2]", TEXT), "+ (1 - forget[1,2])*candidate[1,2]"),
        (("why", "dec.0.ssru.Wf[0,1]", TEXT), "weights of the forget gate"),
    ],
)
def test_the_commands_speak_of_the_cell(
    imported: Path, arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([arguments[0], "--model", str(imported), *arguments[1:]]) == 0
    assert says in capsys.readouterr().out


def test_the_page_alone_reads_such_a_model(imported: Path, tmp_path: Path) -> None:
    """Run with the modules that replace libraries in the browser."""
    _, sizes = write_site(tmp_path / "site", (str(imported),), lambda what: None)
    assert sizes[imported.name] > 0
    program = "import sys, vidrio.look.run as r; print(r.look(r.open_model(sys.argv[1]), sys.argv[2]).translation)"
    path = os.pathsep.join([str(PACKAGE / "site/browser"), str(PACKAGE.parent)])
    done = subprocess.run(
        [sys.executable, "-c", program, str(imported), TEXT],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == (look(open_model(imported), TEXT).translation, "")
