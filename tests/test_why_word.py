"""Test the explanation of a word: its parts add up to the logit difference and match their names."""

import json
import math
import re
from collections import defaultdict
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import vidrio
from parity_models import make_config, make_parameters
from small_models import write_model
from tolerances import FLOAT64
from traced import CHOICES, make_machine, make_trace, run
from vidrio import cli
from vidrio.errors import AddressError, InputError
from vidrio.glass.engine import INT8
from vidrio.glass.machine import Machine, build
from vidrio.glass.maths import Array, Tap
from vidrio.glass.trace import Trace
from vidrio.look.changed import look_changed
from vidrio.look.interventions import each_word_deleted
from vidrio.look.layer_by_layer import After, after_each, overtakes
from vidrio.look.parts import CHANGED, ROUNDING, SOURCE, TARGET, Decision, Part, decisions, neurons, runner_up
from vidrio.look.run import look, open_model
from vidrio.look.why_word import data, why_step, why_word
from vidrio.look.writing import text_width
from vidrio.serve.looking import Looking
from vidrio.serve.questions import ANSWERS
from vidrio.serve.translating import Question
from vidrio.text.words import words
from vidrio.translate.translation import without_places


def all_decisions(trace: Trace) -> list[Decision]:
    """Compare the best token of each row with the runner-up."""
    logits = np.atleast_2d(trace.values["out.logits"])
    this = logits.argmax(axis=-1).tolist()
    return decisions(trace, this, [runner_up(trace, row, token) for row, token in enumerate(this)])


def part_of(decision: Decision, name: str) -> float:
    return next(part.value for part in decision.parts if part.name == name)


@pytest.mark.parametrize("choice", CHOICES)
def test_the_parts_are_the_difference_of_the_logits(choice: str) -> None:
    trace = make_trace(choice)
    for decision in all_decisions(trace):
        logits = np.atleast_2d(trace.values["out.logits"])[decision.row]
        assert decision.difference == logits[decision.this] - logits[decision.that] >= 0
        assert abs(part_of(decision, ROUNDING)) <= FLOAT64 * sum(abs(part.value) for part in decision.parts)


@pytest.mark.parametrize("choice", CHOICES)
def test_in_whole_numbers_the_parts_and_the_rounding_are_the_difference(choice: str) -> None:
    trace = run(whole(choice))
    for decision in all_decisions(trace):
        assert sum(part.value for part in decision.parts) == decision.difference
        sizes = sum(abs(part.value) for part in decision.parts)
        int8 = [part.value for part in decision.parts if part.name.endswith(".whole")]
        assert 0 < sum(map(abs, int8)) < 0.1 * sizes
        assert abs(part_of(decision, ROUNDING)) < 1e-5 * sizes


def whole(choice: str) -> Machine:
    config = make_config(**CHOICES[choice])
    stored = {name: value.astype(np.float32) for name, value in make_parameters(config, 7).items()}
    return build(config, stored, np.float32, INT8)


@pytest.mark.parametrize("choice", CHOICES)
def test_a_part_is_what_the_difference_loses_without_it(choice: str) -> None:
    """Remove one part from a run that keeps all variances and the outputs of the other sub-layers."""
    machine = make_machine(choice)
    before = run(machine)
    side = "dec" if machine.config.has_decoder else "enc"
    tried = set()
    for decision in all_decisions(before)[-2:]:
        for part in decision.parts:
            taken_out = without(before, part, side)
            if taken_out is None:
                continue
            logits = np.atleast_2d(run(machine, held(before, *taken_out)).values["out.logits"])[decision.row]
            lost = decision.difference - (logits[decision.this] - logits[decision.that])
            assert lost == pytest.approx(part.value, abs=FLOAT64), part
            tried.add(part.name)
    assert {"ffn", "embedding", "positions"} <= {name.rpartition(".")[2] for name in tried}


def without(trace: Trace, part: Part, side: str) -> tuple[str, Array] | None:
    """Return the quantity that contains a part and its value without the part, or None if there is no such quantity."""
    own = "tgt" if side == "dec" else "src"
    match part.name.split("."):
        case [_, _, "ffn"]:
            return f"{part.name}.out", np.zeros_like(trace.values[f"{part.name}.out"])
        case [_, _, _, head] if head.startswith("h"):
            name = part.name.removesuffix(f".{head}")
            weights, V = trace.values[f"{name}.weights.{head}"], trace.values[f"{name}.V.{head}"]
            kept = trace.values[f"{name}.head.{head}"] - np.outer(weights[:, part.row], V[part.row])
            return f"{name}.head.{head}", kept
        case [_, "positions"]:
            return f"{own}.positions", np.zeros_like(trace.values[f"{own}.positions"])
        case [_, "embedding"]:
            kept = trace.values[f"{own}.scaled"].copy()
            kept[part.row] = 0
            return f"{own}.scaled", kept
    return None


def test_a_recurrent_cell_has_a_part_for_each_row_that_it_read() -> None:
    """Leave out one candidate and recompute the recurrence with the same gates and signs."""
    trace = make_trace("recurrent")
    forget, candidate, cell = (trace.values[f"dec.1.ssru.{name}"] for name in ("forget", "candidate", "cell"))
    for decision in all_decisions(trace):
        for part in decision.parts:
            if part.name != "dec.1.ssru":
                continue
            kept, state = candidate.copy(), np.zeros_like(cell[0])
            kept[part.row] = 0
            for t in range(decision.row + 1):
                state = forget[t] * state + (1 - forget[t]) * kept[t]
            out = trace.values["dec.1.ssru.out"].copy()
            out[decision.row] -= np.where(cell[decision.row] > 0, cell[decision.row] - state, 0)
            later = run(trace.machine, held(trace, "dec.1.ssru.out", out)).values["out.logits"][decision.row]
            lost = decision.difference - (later[decision.this] - later[decision.that])
            assert lost == pytest.approx(part.value, abs=FLOAT64)


def held(before: Trace, changed: str, to: Array) -> Tap:
    """Return a tap that changes one quantity and keeps all variances and the outputs of the other sub-layers."""
    sub_layer = changed.partition(".head.")[0]

    def tap(name: str, value: Array) -> Array:
        if name == changed:
            return to
        an_output = name.endswith(("self.out", "cross.out", "ssru.out", "ffn.out")) and name != f"{sub_layer}.out"
        return before.values[name] if an_output or name.endswith(".var") else value

    return tap


def test_rows_are_read_from_their_own_side() -> None:
    decision = all_decisions(make_trace("paper"))[2]
    read = {(part.reads, part.row) for part in decision.parts if part.reads}
    assert read == {*((SOURCE, row) for row in range(5)), *((TARGET, row) for row in range(3))}


def test_neurons_add_up_to_their_network_and_push_this_word_over_that_one() -> None:
    machine = make_machine("paper")
    without_b2 = {name: value * (not name.endswith(".b2")) for name, value in machine.parameters.items()}
    trace = run(replace(machine, parameters=without_b2))
    decision = all_decisions(trace)[3]
    found = neurons(trace, decision, 10_000)
    for block in ("dec.0.ffn", "dec.1.ffn"):
        of_block = [neuron.value for neuron in found if neuron.name == block]
        assert len(of_block) == machine.config.d_ff
        assert sum(of_block) == pytest.approx(part_of(decision, block), abs=FLOAT64)
    for neuron in found:
        assert neuron.pushes[decision.this] - neuron.pushes[decision.that] == pytest.approx(neuron.value, abs=FLOAT64)


# --- layer by layer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", [name for name in CHOICES if "classifier" not in name])
def test_after_the_last_sub_layer_the_decoder_writes_what_it_wrote(choice: str) -> None:
    for trace in (make_trace(choice), run(whole(choice))):
        for decision in all_decisions(trace):
            found = after_each(trace, decision.row, decision.this, decision.that)
            assert [after.name for after in found][-1] == "dec.1.ffn"
            assert len(found) == sum(name.endswith(".sum") and name.startswith("dec.") for name in trace.values)
            assert found[-1].difference == pytest.approx(decision.difference, abs=FLOAT64)
            token, prob = found[-1].tokens[0]
            assert (token, prob) == (decision.this, pytest.approx(trace.values["out.prob"][decision.row].max()))


def test_a_word_overtakes_where_it_stays_ahead() -> None:
    ahead = [After(name, (), difference) for name, difference in zip("abcd", (1.0, -1.0, 2.0, 3.0), strict=True)]
    assert overtakes(ahead) == "c"
    assert overtakes(ahead[:2]) is None


# --- deleted words ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word", "left"),
    [
        ("I bought a car.", "car", "I bought a."),
        ("I bought a car.", "I", "bought a car."),
        ("the cat and the dog", "the", "cat and dog"),
        ("(car) and car", "car", "() and"),
        ("car", "car", ""),
    ],
)
def test_a_deleted_word_leaves_one_space(text: str, word: str, left: str) -> None:
    assert without_places(text, [(a, b) for a, b in words(text) if text[a:b] == word]) == left


def test_each_word_is_deleted_translated_anew_and_scored() -> None:
    translation = vidrio.load("en-es").translate(CAR)
    made = vidrio.why(translation, "coche")
    found = each_word_deleted(made.seen, translation.translator)
    assert [one.what for one in found] == ["I", "bought", "a", "new", "car", "yesterday"]
    assert max(found, key=lambda one: one.losses[made.decision.row]).what == "car"
    without_car = translation.without("Car")
    assert found[4].translation == without_car.text == str(vidrio.load("en-es").translate("I bought a new yesterday."))
    [before], [after] = (translation.translator.score([(text, str(translation))]) for text in (CAR, without_car.source))
    assert found[4].losses == tuple(old - new for old, new in zip(before, after, strict=True))
    with pytest.raises(InputError, match="no 'dog' in the source"):
        translation.without("dog")


# --- the command ------------------------------------------------------------------------------------------------------

CAR = "I bought a new car yesterday."


def why(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["why", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_ten_lines_say_which_word_made_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = why(capsys, "un", CAR)
    assert code == 0, err
    lines, rest = (part.splitlines() for part in out.split("\nIf the decoder stopped after:\n"))
    after, tokens = rest[: rest.index("")], rest[rest.index("") + 1 :]
    assert len(lines) <= 11
    assert len(after) == 7  # six sub-layers, and the line on where the word overtakes its rival
    assert all(text_width(line) <= 80 for line in [*lines, *tokens])
    assert tokens[0].startswith("Carried down to the tokens, the largest: ▁car (source, 5) ")
    assert "▁un and not ▁una after row 4" in lines[1]
    assert lines[3].split()[:3] == ["▁car", "(source,", "5)"]  # the largest group comes first


def test_the_strongest_source_word_of_coche_is_car() -> None:
    made = why_word(look(open_model("en-es"), CAR), "coche")
    sums: dict[str, float] = defaultdict(float)
    for part in made.parts:
        if part.reads == SOURCE:
            sums[made.seen.trace.source_tokens[part.row]] += part.value
    assert max(sums, key=sums.__getitem__) == "▁car"
    assert made.difference == sum(part.value for part in made.parts)
    assert str(made) in unescape(made._repr_html_())


def test_the_sum_in_json_is_exact_in_any_order(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(why(capsys, "coche", CAR, "--not", "auto", "--json")[1])
    assert (told["this"], told["that"]) == ("▁coche", "▁auto")
    values = [part["value"] for part in told["parts"]]
    assert sum(values) == sum(reversed(values)) == told["difference"]
    assert len({part["name"] for part in told["parts"]}) == len(values)
    shown = [line.split() for line in why(capsys, "coche", CAR, "--not", "auto", "--all")[1].splitlines()[3:]]
    assert len(shown) == len(values)


def test_the_page_gets_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(why(capsys, "coche", CAR, "--not", "auto", "--json")[1])
    looking, tokens = Looking("en-es"), told.pop("tokens")
    for rival in ("auto", "▁auto"):
        assert ANSWERS["why"](looking, Question(text=CAR, step=told["row"], rival=rival)) == told
    assert sum(origin["value"] for origin in told["origins"]) == told["difference"]
    assert math.fsum(one["value"] for one in tokens) == pytest.approx(told["difference"], rel=1e-12)
    assert abs(tokens[-1]["value"]) < 0.1 * sum(abs(one["value"]) for one in tokens)  # rounding
    assert max(tokens, key=lambda one: one["value"])["name"] == "▁car"
    of_source = {origin["name"]: origin["value"] for origin in told["origins"] if origin["side"] == "source"}
    assert {word["word"]: word["value"] for word in told["words"]}["car"] == of_source["▁car"]
    assert all(CAR[word["start"] : word["end"]] == word["word"] for word in told["words"])
    with pytest.raises(AddressError, match="no decoding step 99"):
        ANSWERS["why"](looking, Question(text=CAR, step=99))
    with pytest.raises(InputError, match="nothing was computed"):
        ANSWERS["why"](looking, Question(text=""))


def test_the_rival_is_compared_at_the_first_token_that_differs(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(why(capsys, "compré", CAR, "--not", "compró", "--json")[1])
    assert (told["row"], told["this"], told["that"]) == (3, "é", "ó")
    told = json.loads(why(capsys, "é", CAR, "--not", "í", "--json")[1])
    assert (told["row"], told["this"], told["that"]) == (3, "é", "í")
    told = json.loads(why(capsys, "ayer", CAR, "--json")[1])  # matches the translation except for its capital
    assert (told["row"], told["this"]) == (1, "▁ayer")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["perro", CAR], "there is no 'perro' in the translation"),
        (["coche", CAR, "--not", "coche"], "same tokens"),
        (["coche", CAR, "--not", "日本"], "cannot spell"),
        (["coche", ""], "the text is empty"),
        (["perro", CAR], "Ayer, compré, un, coche, nuevo"),
        (["hola", "hello world", "--model", "lesson", "--not", "zzz"], "cannot spell"),
    ],
)
def test_what_is_refused(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = why(capsys, *arguments)
    assert (code, out) == (1, "")
    assert told in err


def test_a_word_that_stands_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "model")
    target = ["--target", "bala core bala", "--model", str(tmp_path / "model")]
    code, _, err = why(capsys, "bala", "fula", *target)
    assert code == 1
    assert "rows 0, 2" in err
    assert why(capsys, "core", "fula", *target)[0] == 0


def test_a_classifier_says_which_words_made_the_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "model", shape="encoder", n_classes=3, target_vocabulary=0, tying="none")
    model = ["--model", str(tmp_path / "model"), "--json"]
    label = look(open_model(tmp_path / "model"), "bala core").translation
    told = json.loads(why(capsys, label, "bala core", *model)[1])
    assert sum(part["value"] for part in told["parts"]) == told["difference"] > 0
    assert {part["token"] for part in told["parts"]} >= {"bala", "core"}


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        (("without", "cross"), r"\.cross\.h"),
        (("heads-off", "dec.0.self.h1"), r"dec\.0\.self\.h1"),
        (("without", "ffn"), r"\.ffn$"),
    ],
)
def test_what_a_what_if_replaced_adds_nothing_by_its_inputs(change: tuple[str, str], gone: str) -> None:
    model = open_model("lesson")
    before, after = (why_step(look_changed(model, "hello world", made).after, 1) for made in ([], [change]))
    assert any(re.search(gone, part.name) for part in before.parts)
    assert not [part for part in after.parts if re.search(gone, part.name)]
    assert math.fsum(part.value for part in after.parts) == after.difference
    assert data(after)["neurons"] or "ffn" in change


def test_numbers_that_a_what_if_replaced_are_not_called_rounding(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["hola", "hello world", "--model", "lesson", "--target", "hola mundo"]
    names = lambda *more: [part["name"] for part in json.loads(why(capsys, *given, *more, "--json")[1])["parts"]]  # noqa: E731
    assert names()[-1] == ROUNDING
    assert names("--heads-off", "dec.5.cross.h0")[-1] == CHANGED


def test_deleted_words_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = why(capsys, "coche", CAR, "--delete-words")
    assert code == 0, err
    assert "Ayer compré un nuevo." in out.split("deleted:\n")[1]
    told = json.loads(why(capsys, "coche", CAR, "--delete-words", "--json")[1])
    assert max(told["deleted"], key=lambda one: one["loss"])["name"] == "car"
    assert [layer["after"] for layer in told["layers"]][-1] == "dec.1.ffn"
    assert why(capsys, "coche", CAR, "--delete-words", "--without", "ffn")[0] == 2
