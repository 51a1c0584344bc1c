"""Test removing a word or a head, and patching in a row from another run. The results must match the what-ifs."""

import json
from concurrent.futures import CancelledError
from functools import partial
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest

import vidrio
from small_models import write_model
from vidrio import cli
from vidrio.errors import InputError
from vidrio.look.changed import with_changes
from vidrio.look.interventions import each_head_off, each_word_hidden, rows_patched, source_words
from vidrio.look.run import Look
from vidrio.look.why_word import Why
from vidrio.serve.looking import Looking
from vidrio.serve.questions import ANSWERS
from vidrio.serve.translating import Question

HER, HIS = "The girl sold her car.", "The girl sold his car."


@pytest.fixture(scope="module")
def why() -> Why:
    return vidrio.why(vidrio.load("en-es").translate(HER), "su")


def changed(seen: Look, *asked: tuple[str, str]) -> Look:
    return with_changes(seen, seen.model, asked).after


def scores(seen: Look) -> np.ndarray:
    return seen.trace.values["out.score"]


def pinned(seen: Look) -> tuple[str, str]:
    """Return a what-if that forces the same translation."""
    return "pin", " ".join(seen.trace.chosen_tokens)


def test_a_hidden_word_is_the_what_if_hide(why: Why) -> None:
    seen = why.seen
    found = each_word_hidden(seen)
    assert [one.what for one in found] == ["The", "girl", "sold", "her", "car"]
    for word, one in zip(source_words(seen), found, strict=True):
        hide = ("hide", ",".join(map(str, word.rows)))
        assert one.translation == changed(seen, hide).translation
        after = scores(changed(seen, hide, pinned(seen)))
        assert one.losses == tuple((scores(seen).astype(float) - after.astype(float)).tolist())
    assert max(found, key=lambda one: one.losses[why.decision.row]).what == "her"


def test_a_head_off_is_the_what_if_heads_off(why: Why) -> None:
    seen = why.seen
    found = {one.what: one for one in each_head_off(seen)}
    assert len(found) == 80
    for head in ("enc.0.self.h0", "dec.0.self.h7", "dec.1.cross.h6"):
        off = ("heads-off", head)
        assert found[head].translation == changed(seen, off).translation
        after = scores(changed(seen, off, pinned(seen)))
        assert found[head].losses == tuple((scores(seen).astype(float) - after.astype(float)).tolist())


def test_a_patched_row_is_the_what_if_set(why: Why) -> None:
    seen, made = why.seen, why.decision
    other = vidrio.why(vidrio.load("en-es").translate(HIS), "su").seen
    assert other.chosen_ids[: made.row] == seen.chosen_ids[: made.row]  # so its rows equal those in rows_patched
    found = rows_patched(seen, made, HIS)
    assert [len(layer.differences) for layer in found.layers] == [8] * 7 + [made.row + 1] * 2
    assert found.before == pytest.approx(made.difference, abs=1e-5)
    for layer, row in (("enc.in", 4), ("enc.2", 4), ("dec.0", 2)):
        name = layer if layer.endswith(".in") else f"{layer}.ffn.sum"
        values = other.trace.values[name][row].tolist()
        after = changed(seen, ("set", f"{name}[{row},*]={values}"), pinned(seen))
        logits = after.trace.values["out.logits"][made.row].astype(float)
        [differences] = (each.differences for each in found.layers if each.layer == layer)
        assert differences[row] == pytest.approx(logits[made.this] - logits[made.that], abs=1e-5)


def test_rows_that_are_the_same_in_both_runs_move_nothing(why: Why) -> None:
    found = rows_patched(why.seen, why.decision, HIS)
    assert [row for row, value in enumerate(found.layers[0].differences) if value != found.before] == [4]
    same = rows_patched(why.seen, why.decision, HER)
    assert {value for layer in same.layers for value in layer.differences} == {same.before} == {same.of_other}


def test_every_row_of_the_last_layer_together_would_be_the_other_run(why: Why) -> None:
    """After the last layer, the logits depend only on the row of the decision."""
    found = rows_patched(why.seen, why.decision, HIS)
    assert found.layers[-1].differences[:-1] == (found.before,) * why.decision.row
    assert found.layers[-1].differences[-1] == found.of_other


def test_what_nobody_waits_for_ends(why: Why) -> None:
    for work in (
        lambda stopped: each_word_hidden(why.seen, stopped),
        lambda stopped: each_head_off(why.seen, stopped),
        lambda stopped: rows_patched(why.seen, why.decision, HIS, stopped),
    ):
        with pytest.raises(CancelledError):
            work(partial(next, chain([False], repeat(True))))


# --- the command and the page -----------------------------------------------------------------------------------------


def test_the_page_gets_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--delete-words", "--hide-words", "--ablate-heads", "--patch-from", HIS]
    assert cli.main(["why", "su", HER, *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    looking, question = Looking("en-es"), Question(text=HER, step=told["row"], other=HIS)
    assert ANSWERS["why_words"](looking, question) == {name: told[name] for name in ("deleted", "hidden")}
    assert ANSWERS["why_heads"](looking, question) == {"heads": told["heads"]}
    assert ANSWERS["why_rows"](looking, question) == told["patched"]
    assert all(one["loss"] == one["losses"][told["row"]] for one in told["deleted"] + told["hidden"] + told["heads"])
    assert len(told["patched"]["source"]) == len(told["patched"]["layers"][0]["moved"])


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["why", "su", HER, "--hide-words", "--ablate-heads", "--patch-from", HIS]) == 0
    out = capsys.readouterr().out
    assert "with each word hidden:\n  The " in out
    assert "dec.1.cross.h6" in out.partition("one head off")[2]
    assert "▁her ← ▁his" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--patch-from", "The doctor lost it."], "same number of tokens"),
        (["--patch-from", ""], "same number of tokens"),
        (["--hide-words", "--without", "cross"], "cannot be combined with what-ifs"),
        (["--ablate-heads", "--heads-off", "enc.0.self.h0"], "cannot be combined with what-ifs"),
    ],
    ids=str,
)
def test_what_is_refused(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["why", "su", HER, *options]) in (1, 2)
    out, err = capsys.readouterr()
    assert not out
    assert told in err


def test_the_only_word_of_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    """With an end token, the model can still read an empty text. Without one, nothing is left to read."""
    assert cli.main(["why", "Hola", "Hello", "--delete-words", "--hide-words"]) == 0
    assert capsys.readouterr().out.count("(nothing)") == 2
    for option in ("--delete-words", "--hide-words"):
        assert cli.main(["why", "hola", "hello", "--model", "lesson", option]) == 1
        assert "nothing of the text is left" in capsys.readouterr().err


def test_a_model_that_does_not_translate_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "model", shape="encoder", n_classes=3, target_vocabulary=0, tying="none")
    looking = Looking(str(tmp_path / "model"))
    for name in ("why_words", "why_heads", "why_rows"):
        with pytest.raises(InputError, match="needs a translator"):
            ANSWERS[name](looking, Question(text="bala core", other="bala core"))
