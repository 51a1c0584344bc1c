"""The page of a training run: of a real one, and of things that must not break it."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chromium import open_page
from small_run import PAIRS, train_small
from vidrio.draw import html
from vidrio.draw.svg import HEIGHT, MOST_POINTS, WIDTH, bar, curves, heat, short, thinned, ticks
from vidrio.draw.training import write_report
from vidrio.learn.run.run_files import kept_steps
from vidrio.look.blocks import Curve, Curves, Heat
from vidrio.look.curves import metrics, panels, spread
from vidrio.look.report import Ending, report
from vidrio.look.run import look, open_model
from vidrio.look.writing import clock
from vidrio.model.folder import read_config, write_config
from vidrio.score.breakdown import Judged, by_length, by_rarity, count_words, judged, targets, words
from vidrio.score.metrics import corpus_scores, usual_metrics


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def page(trained: Path) -> str:
    """As the command has written it."""
    return (trained / "report.html").read_text("utf-8")


class Wellformed(HTMLParser):
    """Every element that is opened is closed, in order; no two have one id."""

    EMPTY = frozenset({"meta", "br", "line", "circle", "rect", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.tags: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.ids.update(value or "" for name, value in attrs if name == "id")
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(page: str) -> Wellformed:
    parser = Wellformed()
    parser.feed(page)
    assert parser.open == []
    assert set(parser.ids.values()) <= {1}
    return parser


# --- a real run -------------------------------------------------------------------------------------------------------


def test_the_page_is_whole_and_needs_nothing(page: str) -> None:
    told = parsed(page)
    assert told.tags["script"] == told.tags["link"] == told.tags["img"] == 0
    assert all(link.startswith("#") and link[1:] in told.ids for link in told.links)
    assert "http://" not in page
    assert "https://" not in page
    sections = ["scores", "samples", "groups", "curves", "ages", "attention", "data", "run", "limits"]
    assert list(told.ids) == sections


def test_the_same_run_gives_the_same_bytes(trained: Path, page: str) -> None:
    ending = ending_of(trained)
    data = trained / "run" / "data" / "data.json"
    one, other = (html.page(report(trained, ending, data)) for _ in range(2))
    assert one == other
    assert write_report(trained, ending, data).read_text("utf-8") == one


def ending_of(trained: Path) -> Ending:
    """What the command had: the held-out sentences, translated again by the glass engine."""
    model = open_model(trained)
    rows = [line.split("\t") for line in (trained / "run/data/test.tsv").read_text("utf-8").splitlines()]
    sources, references = [row[0] for row in rows], [row[1] for row in rows]
    translations = [look(model, source).translation for source in sources]
    scores, _ = corpus_scores(translations, [references], usual_metrics())
    return Ending(sources=sources, references=references, translations=translations, scores=scores)


def test_it_tells_the_scores_of_the_model_with_their_signatures(trained: Path, page: str) -> None:
    _, about = read_config(trained)
    assert len(about.scores) == 3
    for score in about.scores:
        low, high = score["mean"] - score["half_width"], score["mean"] + score["half_width"]
        assert f">{score['value']:.2f}</td><td>{low:.2f} to {high:.2f}</td>" in page
        assert score["signature"] in page


def test_it_tells_what_was_dropped_and_why(page: str) -> None:
    data = page.partition('<section id="data">')[2].partition("</section>")[0]
    assert "103 pairs were read" in data
    assert re.search(r'>empty</th><td>1</td><td>0.97 %</td><td class="note">one side is blank', data)
    assert re.search(r">duplicate</th><td>1</td>", data)
    assert "<summary>Some of the pairs left out</summary>" in data


def test_it_tells_the_command(page: str) -> None:
    assert "<pre>vidrio train pairs.tsv --to model --d-model 24" in page
    assert "<dt>recipe.rate</dt><dd>0.01</dd>" in page


def test_the_curves_are_those_of_the_metrics(trained: Path, page: str) -> None:
    told = metrics(trained / "run")
    losses = [r["loss"] for r in told if r["kind"] == "step"]
    validations = [r["loss"] for r in told if r["kind"] == "validation"]
    label = re.search(r'aria-label="(loss: [^"]+)"', page)
    assert label is not None
    for name, values in (("training", losses), ("held out", validations)):
        assert re.search(rf"{name} from {short(values[0])} at step \d+ to {short(values[-1])} at step 150", label[1])
    drawn = page.partition('<section id="curves">')[2].partition("</section>")[0]
    assert drawn.count("<svg") == 5  # loss, BLEU, chrF, rate, tokens a second
    for points in re.findall(r'points="([^"]+)"', drawn):
        places = [tuple(map(float, point.split(","))) for point in points.split(" ")]
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
        assert [x for x, _ in places] == sorted(x for x, _ in places)


def test_the_pictures_of_attention_are_the_traces(trained: Path, page: str) -> None:
    part = page.partition('<section id="attention">')[2].partition("</section>")[0]
    captions = re.findall(r"<figcaption>([^<]+)</figcaption>", part)
    assert captions
    assert set(captions) <= {source for source, _ in PAIRS}
    for caption, picture in zip(captions, part.split("<figure>")[1:], strict=True):
        trace = look(open_model(trained), caption).trace
        weights = np.mean([trace.array(f"dec.0.cross.weights.h{h}") for h in range(2)], axis=0)
        shares = [float(share) for share in re.findall(r"<title>[^<]+: ([\d.]+)</title>", picture)]
        np.testing.assert_allclose(shares, weights.ravel(), rtol=0, atol=5.1e-5)


def test_the_ages_lead_to_the_model(page: str) -> None:
    ages = page.partition('<section id="ages">')[2].partition("</section>")[0]
    assert re.findall(r'<th scope="row">([^<]+)</th>', ages) == [*map(str, kept_steps(150)), "kept"]


def test_a_browser_has_nothing_to_say(trained: Path) -> None:
    opened = open_page(trained / "report.html")
    assert opened.console == []
    assert opened.dom.count("<svg") >= 6


# --- what must not break it -------------------------------------------------------------------------------------------


def test_texts_stay_texts(trained: Path) -> None:
    evil = '<script>alert("1")</script> & \x1b[31m'
    ending = Ending(sources=[evil], references=[evil], translations=[evil], limits=[evil], warnings=[evil])
    drawn = html.page(report(trained, ending))
    told = parsed(drawn)
    assert told.tags["script"] == 0
    assert "\x1b" not in drawn
    assert drawn.count("&lt;script&gt;") >= 5
    assert '<p class="warning">&lt;script&gt;' in drawn


def test_a_run_that_left_little(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_bytes((trained / name).read_bytes())
    config, about = read_config(trained)
    write_config(folder, config, replace(about, provenance={}))
    told = parsed(html.page(report(folder, Ending())))
    assert list(told.ids) == []


def test_a_half_written_line_of_metrics_is_left_out(tmp_path: Path) -> None:
    record = {"kind": "step", "step": 20, "loss": 3.0, "rate": 0.1, "seconds": 60.0, "tokens_per_second": 5.0}
    (tmp_path / "metrics.jsonl").write_text(f'{json.dumps(record)}\n\n[1]\n{{"kind": "step", "st')
    assert metrics(tmp_path) == [record]
    assert metrics(tmp_path / "nowhere") == []
    assert html.fragment(panels([])) == ""
    assert html.fragment(panels([record])).count("<svg") == 3


def test_of_many_validations_the_table_shows_the_best_and_the_last() -> None:
    records = [
        {"kind": "validation", "step": n, "loss": 5.0 - n / 100, "best": n in (7, 211), "samples": [["a", f"b{n}"]]}
        for n in range(1, 301)
    ]
    drawn = html.fragment(panels(records))
    shown = re.findall(r'<th scope="row">(\d+)</th><td>', drawn)
    assert {"1", "7", "211", "300"} <= set(shown)
    assert len(shown) < 60
    assert "of 300 are shown" in drawn
    assert re.findall(r"b(\d+)</td>", drawn) == ["1", "44", "86", "129", "172", "215", "257", "300"]


@given(st.integers(0, 60), st.integers(2, 9))
def test_places_are_spread_evenly(length: int, most: int) -> None:
    places = spread(length, most)
    assert len(places) == min(length, most)
    assert places == sorted(set(places))
    assert not places or (places[0], places[-1]) == (0, length - 1)


# --- pictures ---------------------------------------------------------------------------------------------------------

numbers = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-9)


@given(numbers, numbers)
def test_ticks_hold_all_values_between_them(one: float, other: float) -> None:
    low, high = sorted((one, other))
    found = list(ticks(low, high))
    slack = 1e-6 * max(abs(low), abs(high), 1e-9)
    assert found[0] <= low + slack
    assert found[-1] >= high - slack
    assert 2 <= len(found) <= 8
    assert found == sorted(set(found))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e3, 1e3)), max_size=1500).map(sorted))
def test_thinned_curves_keep_their_end_and_their_range(points: list[tuple[float, float]]) -> None:
    few = thinned(points)
    assert len(few) <= MOST_POINTS + 1
    assert few[-1:] == points[-1:]
    if points:
        values = [value for _, value in points]
        assert all(min(values) - 1e-9 <= value <= max(values) + 1e-9 for _, value in few)


def test_a_picture_of_a_single_point_and_of_none() -> None:
    assert curves(Curves("none", [Curve("x", [])], [])) == ""
    assert curves(Curves("NaN", [Curve("x", [(1, float("nan"))])], [])) == ""
    assert "<circle" in curves(Curves("one", [Curve("x", [(1, 2.0)])], [(0.0, 0.0), (1.0, 0.5)]))
    assert "nan" not in curves(Curves("a gap", [Curve("x", [(1, 2.0), (2, float("nan")), (3, 4.0)])], []))


def test_short_numbers() -> None:
    assert [short(x) for x in (0, 0.00123, 3.14159, 999, 1000, 25_000, 1_234_567)] == [
        *("0", "0.00123", "3.14", "999", "1,000", "25k", "1.23M"),
    ]
    assert [clock(x) for x in (0, 0.333, 2.04, 31.2, 1234.5)] == ["0", "0.33", "2", "31", "1,234"]


def test_a_heat_map_says_its_numbers_in_words_too() -> None:
    drawn = heat(Heat(np.array([[0.25, 0.75], [0.96, 0.04]]), ["hola", "<s>"], ["hello", "world"], "hello world"))
    parsed(f'<p id="x">{drawn}</p>')
    assert "<title>hola reads world: 0.7500</title>" in drawn
    assert ">.75</text>" in drawn
    assert ">.04</text>" not in drawn  # too small a share for a digit
    assert "<title>&lt;s&gt; reads hello: 0.9600</title>" in drawn


def test_a_bar_stays_in_its_frame() -> None:
    assert [re.findall(r'width="([\d.]+)"', bar(share))[1] for share in (-1.0, 0.5, 7.0)] == ["0.0", "60.0", "120.0"]


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


def test_words_are_grouped_by_how_often_they_were_seen() -> None:
    seen = Counter({"el": 5000, "gato": 12, "perro": 1})
    some = sentences(("x", "El gato, el perro y el sol", "el gato y el gato"))
    told = {group.name: (group.count, group.value) for group in by_rarity(some, seen)}
    # el is wanted thrice and said twice; gato once; perro is not said; y and sol were never seen, and y is said.
    assert told == {"never": (2, 0.5), "once": (1, 0.0), "10–99": (1, 1.0), "1,000 or more": (3, 2 / 3)}


def test_words_are_counted_in_the_second_column(tmp_path: Path) -> None:
    file = tmp_path / "train.tsv"
    file.write_text("the cat\tEl gato\nthe sun\tel sol, sol\n", encoding="utf-8")
    counts, lines = count_words(targets(file))
    assert (counts, lines) == (Counter({"el": 2, "sol": 2, "gato": 1}), 2)
    assert words("¿Qué tal? 3 años") == ["qué", "tal", "3", "años"]
