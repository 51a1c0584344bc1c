"""Test how a token is chosen: temperature, top-k, top-p, a forced prefix, a pinned hypothesis, a random draw."""

from concurrent.futures import CancelledError
from dataclasses import replace

import numpy as np
import pytest

from vidrio.errors import VidrioError
from vidrio.glass.whatif import parse
from vidrio.hypothesis import Sampling
from vidrio.look.changed import look_changed, with_changes
from vidrio.look.run import LoadedModel, look, open_model
from vidrio.look.run_data import choosing_data
from vidrio.search import Tree
from vidrio.serve.looking import Looking
from vidrio.serve.translating import RunRequest


@pytest.fixture(scope="module")
def lesson() -> LoadedModel:
    return open_model("lesson")


def test_temperature_and_cuts_are_those_of_the_formula(lesson: LoadedModel) -> None:
    seen = look(lesson, "hello world")
    data = choosing_data(seen, 1, Sampling(temperature=2.0, top_k=3))
    logits = seen.trace.array("out.logits")[1]
    special = lesson.config.special
    allowed = np.delete(np.arange(len(logits)), [special.pad, special.start, *seen.options.suppressed])
    tempered = np.exp(logits[allowed] / 2) / np.exp(logits[allowed] / 2).sum()
    by_id = {token["id"]: token for token in data["tokens"]}
    for i, p in zip(allowed, tempered, strict=True):
        if i in by_id and not by_id[i]["forbidden"]:
            assert by_id[i]["tempered"] == pytest.approx(p, rel=1e-6)
    best = sorted(tempered, reverse=True)[:3]
    drawn = sorted((token["drawn"] for token in data["tokens"]), reverse=True)
    assert drawn[:4] == pytest.approx([*(np.array(best) / sum(best)), 0])
    assert data["left"] == 3
    assert data["log_sum_exp"] == pytest.approx(np.log(np.exp(logits).sum()))
    for name in ("p", "tempered", "drawn"):
        assert sum(token[name] for token in data["tokens"]) + data["others"][name] == pytest.approx(1)
    nucleus = choosing_data(seen, 1, Sampling(top_p=0.5))
    assert nucleus["left"] == 1
    assert next(token for token in nucleus["tokens"] if token["taken"])["drawn"] == 1


def test_a_translation_begins_as_it_is_told(lesson: LoadedModel) -> None:
    tried = look_changed(lesson, "hello world", [("prefix", "mundo")], tree=Tree())
    assert tried.before.translation == "hola mundo"
    assert tried.after.translation.startswith("mundo")
    assert tried.compared.shared_steps == 1, "the first step saw the same, whatever was taken"
    assert [change.option for change in tried.whatif.changes] == ["--prefix mundo"]


def test_a_hypothesis_is_pinned_by_its_tokens(lesson: LoadedModel) -> None:
    words, end = lesson.target_vocabulary, lesson.config.special.end
    whole = look_changed(lesson, "hello world", [("pin", f"mundo hola {words[end]}")]).after
    assert (whole.translation, whole.forced) == ("mundo hola", True)
    begun = look_changed(lesson, "hello world", [("pin", "hola")]).after
    assert begun.translation == "hola mundo"
    with pytest.raises(VidrioError, match="no token 'nowhere'"):
        look_changed(lesson, "hello world", [("pin", "nowhere")])


def test_a_draw_is_the_same_for_the_same_seed(lesson: LoadedModel) -> None:
    drawn = [
        look_changed(lesson, "hello world", [("draw", f"temperature=3 seed={seed}")]).after.translation
        for seed in (1, 1, 2, 3, 4)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    for wrong in ("temperature=0", "warmth=3", "top-k=many", "temperature"):
        with pytest.raises(VidrioError):
            look_changed(lesson, "hello world", [("draw", wrong)])


@pytest.mark.parametrize("changes", [[("without", "ffn")], [("draw", "temperature=30 seed=1")]])
def test_a_changed_model_stops_where_it_rambles(changes: list[tuple[str, str]]) -> None:
    """Check that it stops at three times the text's length or at a repetition, not at the limit of 256 tokens."""
    model = open_model("en-es")
    before = look(model, "Good morning.")
    steps: list[None] = []
    after = with_changes(before, model, changes, tree=Tree(), stopped=lambda: bool(steps.append(None))).after
    assert after.result
    assert not after.result.ended
    assert 0 < len(after.chosen_ids) <= len(steps) <= 3 * len(before.source_ids) + 10
    assert len(after.trace.values["out.prob"]) == len(after.chosen_ids)


def test_a_what_if_that_nobody_waits_for_is_cancelled() -> None:
    model = open_model("en-es")
    before, asked = look(model, "Good morning."), iter(range(99))
    with pytest.raises(CancelledError):
        with_changes(before, model, [("mask", "off")], tree=Tree(), stopped=lambda: next(asked) == 2)
    assert next(asked) == 3, "it was not asked again"


def test_rows_that_are_edited_alike_may_be_kept(lesson: LoadedModel) -> None:
    """Check that decoding with cached keys and values finds the same as recomputing every prefix."""
    before = look(lesson, "hello world")
    for change in [
        ("without", "ffn"),
        ("without", "cross"),
        ("heads-off", "dec.0.cross.h1"),
        ("without", "enc.0.self"),
    ]:
        machine = parse([change], before.trace).apply(lesson.machine)
        assert machine.can_cache
        trees = (Tree(), Tree())
        for tree, ran in zip(trees, (machine, replace(machine, edits_rows=True)), strict=True):
            look(replace(lesson, machine=ran), "hello world", tree=tree)
        for kept, afresh in zip(*(tree.nodes for tree in trees), strict=True):
            assert (kept.token, kept.parent) == (afresh.token, afresh.parent)
            assert kept.total == pytest.approx(afresh.total, abs=1e-9)
    assert not parse([("set", "dec.0.ffn.out[1,0]=3")], before.trace).apply(lesson.machine).can_cache
    assert not parse([("mask", "off")], before.trace).apply(lesson.machine).can_cache


def test_the_worked_example_computes_what_it_prints() -> None:
    """Check the numbers that the document prints, to its eight digits, and those of the corrected computation."""
    looking = Looking("lesson")
    printed = looking.run(RunRequest("hello world", "worked-example-printed", changes=(("divisor", "30"),))).trace
    assert printed.array("enc.in").tolist() == [[1, 3, 3, 5], [2.84, 3.99, 4, 6]]
    Z = [11.46394285, -13.18016471, -11.59340253, -17.04387829]
    assert printed.array("enc.0.self.out")[0] == pytest.approx(Z, abs=5.1e-9)
    right = looking.run(RunRequest("hello world", "worked-example")).trace
    first = [1.7120025012, -0.5249792500, -0.3826422867, -0.8043809645]
    assert right.array("enc.0.self.norm.out")[0] == pytest.approx(first, abs=5.1e-11)
