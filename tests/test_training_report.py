"""The page of a training run: of a real one, and of things that must not break it."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chromium import open_page
from folded import data_of, sections, text
from small_run import PAIRS, train_small
from vidrio.learn.run_files import kept_steps
from vidrio.look.curves import MOST_POINTS, metrics, panels, spread, thinned
from vidrio.look.page import blocks_page
from vidrio.look.report import Ending, report
from vidrio.look.run import look, open_model
from vidrio.look.writing import clock
from vidrio.model.folder import read_config, write_config
from vidrio.score.breakdown import Judged, by_length, judged
from vidrio.score.metrics import corpus_scores, usual_metrics


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def page(trained: Path) -> str:
    """As the command has written it."""
    return (trained / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def told(page: str) -> dict[str, str]:
    return sections(page)


# --- a real run -------------------------------------------------------------------------------------------------------


def test_the_page_is_whole(told: dict[str, str]) -> None:
    names = ["scores", "samples", "groups", "curves", "ages", "attention", "data", "run", "limits"]
    assert list(told) == ["header", *names]


def test_the_same_run_gives_the_same_bytes(trained: Path, page: str) -> None:
    ending = ending_of(trained)
    data = trained / "run" / "data" / "data.json"
    one, other = (blocks_page(report(trained, ending, data)) for _ in range(2))
    assert one == other


def ending_of(trained: Path) -> Ending:
    """What the command had: the held-out sentences, translated again by the glass engine."""
    model = open_model(trained)
    rows = [line.split("\t") for line in (trained / "run/data/test.tsv").read_text("utf-8").splitlines()]
    sources, references = [row[0] for row in rows], [row[1] for row in rows]
    translations = [look(model, source).translation for source in sources]
    scores, _ = corpus_scores(translations, [references], usual_metrics())
    return Ending(sources=sources, references=references, translations=translations, scores=scores)


def test_it_tells_the_scores_of_the_model_with_their_signatures(trained: Path, told: dict[str, str]) -> None:
    _, about = read_config(trained)
    assert len(about.scores) == 3
    for score in about.scores:
        low, high = score["mean"] - score["half_width"], score["mean"] + score["half_width"]
        assert f"{score['value']:.2f} | {low:.2f} to {high:.2f} | {score['signature']}" in told["scores"]


def test_it_tells_what_was_dropped_and_why(told: dict[str, str]) -> None:
    data = told["data"]
    assert "103 pairs were read" in data
    assert re.search(r"^empty \| 1 \| 0.97 % \| one side is blank", data, re.MULTILINE)
    assert re.search(r"^duplicate \| 1 \|", data, re.MULTILINE)
    assert "Some of the pairs left out" in data


def test_it_tells_the_command(told: dict[str, str]) -> None:
    assert "vidrio train pairs.tsv --to model --d-model 24" in told["run"]
    assert "recipe.rate = 0.01" in told["run"]


def drawn(page: str, section: str, kind: str) -> list[dict[str, Any]]:
    blocks = next(one["blocks"] for one in data_of(page)["sections"] if one["anchor"] == section)
    inside = [part for block in blocks for part in (block["blocks"] if block["kind"] == "beside" else [block])]
    return [block for block in inside if block["kind"] == kind]


def test_the_curves_are_those_of_the_metrics(trained: Path, page: str) -> None:
    records = metrics(trained / "run")
    curves = drawn(page, "curves", "curves")
    assert len(curves) == 5  # loss, BLEU, chrF, rate, tokens a second
    for name, kind in (("training", "step"), ("held out", "validation")):
        line = next(line for line in curves[0]["lines"] if line["name"] == name)
        assert line["points"] == [[r["step"], r["loss"]] for r in records if r["kind"] == kind]


def test_the_pictures_of_attention_are_the_traces(trained: Path, page: str) -> None:
    pictures = drawn(page, "attention", "heat")
    assert pictures
    assert {picture["caption"] for picture in pictures} <= {source for source, _ in PAIRS}
    for picture in pictures:
        trace = look(open_model(trained), picture["caption"]).trace
        weights = np.mean([trace.array(f"dec.0.cross.weights.h{h}") for h in range(2)], axis=0)
        np.testing.assert_array_equal(picture["weights"], weights)


def test_the_ages_lead_to_the_model(told: dict[str, str], page: str) -> None:
    lines = told["ages"].split("\n")
    heads = next(n for n, line in enumerate(lines) if line.startswith("step | "))
    ages = [line.partition(" | ")[0] for line in lines[heads + 1 :]]
    assert ages == [*map(str, kept_steps(150)), "kept"]
    (slider,) = drawn(page, "ages", "ages")
    assert ["kept" if age["step"] is None else str(age["step"]) for age in slider["history"]["ages"]] == ages


def test_a_browser_has_nothing_to_say(trained: Path) -> None:
    opened = open_page(trained / "report.html")
    assert opened.console == []
    assert opened.dom.count("<svg") >= 5


# --- what must not break it -------------------------------------------------------------------------------------------


def test_texts_stay_texts(trained: Path, tmp_path: Path) -> None:
    evil = '<script>alert("1")</script> & \x1b[31m'
    ending = Ending(sources=[evil], references=[evil], translations=[evil], limits=[evil], warnings=[evil])
    source = blocks_page(report(trained, ending))
    assert "<script>alert" not in source
    assert "\x1b" not in json.dumps(data_of(source), ensure_ascii=False)
    (tmp_path / "page.html").write_text(source, "utf-8")
    opened = open_page(tmp_path / "page.html")
    assert opened.console == []
    assert opened.dom.count("&lt;script&gt;") >= 5


def test_a_run_that_left_little(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_bytes((trained / name).read_bytes())
    config, about = read_config(trained)
    write_config(folder, config, replace(about, provenance={}))
    assert list(sections(blocks_page(report(folder, Ending())))) == ["header"]


def test_a_half_written_line_of_metrics_is_left_out(tmp_path: Path) -> None:
    record = {"kind": "step", "step": 20, "loss": 3.0, "rate": 0.1, "seconds": 60.0, "tokens_per_second": 5.0}
    (tmp_path / "metrics.jsonl").write_text(f'{json.dumps(record)}\n\n[1]\n{{"kind": "step", "st')
    assert metrics(tmp_path) == [record]
    assert metrics(tmp_path / "nowhere") == []
    assert text(panels([])) == ""
    assert text(panels([record])).count("curves: ") == 3


def test_of_many_validations_the_table_shows_the_best_and_the_last() -> None:
    records = [
        {"kind": "validation", "step": n, "loss": 5.0 - n / 100, "best": n in (7, 211), "samples": [["a", f"b{n}"]]}
        for n in range(1, 301)
    ]
    drawn = text(panels(records))
    shown = re.findall(r"^(\d+) \| [\d.]+ \|", drawn, re.MULTILINE)
    assert {"1", "7", "211", "300"} <= set(shown)
    assert len(shown) < 60
    assert "of 300 are shown" in drawn
    assert re.findall(r"b(\d+)$", drawn, re.MULTILINE) == ["1", "44", "86", "129", "172", "215", "257", "300"]


@given(st.integers(0, 60), st.integers(2, 9))
def test_places_are_spread_evenly(length: int, most: int) -> None:
    places = spread(length, most)
    assert len(places) == min(length, most)
    assert places == sorted(set(places))
    assert not places or (places[0], places[-1]) == (0, length - 1)


# --- pictures ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e3, 1e3)), max_size=1500).map(sorted))
def test_thinned_curves_keep_their_end_and_their_range(points: list[tuple[float, float]]) -> None:
    few = thinned(points)
    assert len(few) <= MOST_POINTS + 1
    assert few[-1:] == points[-1:]
    if points:
        values = [value for _, value in points]
        assert all(min(values) - 1e-9 <= value <= max(values) + 1e-9 for _, value in few)


def test_times_are_short() -> None:
    assert [clock(x) for x in (0, 0.333, 2.04, 31.2, 1234.5)] == ["0", "0.33", "2", "31", "1,234"]


# --- where it is good and where not -----------------------------------------------------------------------------------


def sentences(*rows: tuple[str, str, str]) -> Sequence[Judged]:
    return judged(*(list(column) for column in zip(*rows, strict=True)))


def test_sentences_are_grouped_by_their_length() -> None:
    some = sentences(("a", "uno", "uno"), ("a b c d e f", "seis", "xyz"), ("", "nada", "nada"))
    groups = by_length(some)
    assert [(group.name, group.count) for group in groups] == [("1–5", 2), ("6–10", 1)]
    assert groups[0].value == 100
    assert groups[1].value < 20
    assert [round(s.chrf) for s in some] == [100, round(groups[1].value), 100]
