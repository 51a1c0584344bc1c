"""The pages of runs that tell classes and that write on: of real ones, held to what glass/ computes."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from chromium import open_page
from folded import sections
from folded import text as text_of
from small_run import vidrio_train
from vidrio.draw.page import blocks_page
from vidrio.learn.run.finish import interval
from vidrio.learn.run.prepare import DataFolder
from vidrio.learn.run.request import Choices, Material, Reporter, Request
from vidrio.learn.train import prepare
from vidrio.look.report import Ending, report
from vidrio.look.report_tasks import OTHERS, Answer, answers, class_samples, confusion, go_on, surprises
from vidrio.look.run import look, open_model
from vidrio.model.folder import read_config

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
USUAL = (
    "--steps 60 --validations 2 --d-model 32 --heads 4 --d-ff 64 --encoder-layers 1 --decoder-layers 1 --rate 0.01 "
    "--dropout 0 --tokenizer word --precision float32 --threads 1"
)


def train(folder: Path, task: str, lines: Sequence[str]) -> Path:
    (folder / "texts.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, said = vidrio_train(folder, "texts.tsv", "--to", "model", "--task", task, *USUAL.split())
    assert code == 0, said
    assert "report: model/report.html" in said
    return folder / "model"


def held_out(folder: Path, task: str, again: Path) -> list[tuple[str, str]]:
    """The texts that the run has held out: chosen by checksum, so the same every time."""
    material = Material(names=(str(folder.parent / "texts.tsv"),), tokenizer="word")
    return list(prepare(Request(again, material, Choices(task=task)), DataFolder(again), Reporter()).test)


# --- classes ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The class is the middle word, which a mean of all rows does not tell at once; and one line is wrong."""
    rows = [f"{a} {b} {c}\t{b}" for a, b, c in product(NUMBERS[:7], repeat=3)]
    return train(tmp_path_factory.mktemp("classes"), "classify", [*rows, "seven\t"])


@pytest.fixture(scope="module")
def asked(classifier: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    return held_out(classifier, "classify", tmp_path_factory.mktemp("again"))


def test_the_page_of_a_classifier_is_whole(classifier: Path) -> None:
    told = sections(classifier / "report.html")
    assert list(told) == ["header", "scores", "confusion", "samples", "curves", "data", "run", "limits"]
    assert "344 texts were read, 343 kept, 1 left out" in told["data"]
    assert "vidrio train texts.tsv --to model --task classify" in told["run"]
    assert told["curves"].count("curves: ") == 4  # loss, accuracy, rate, tokens a second
    assert open_page(classifier / "report.html").console == []


def test_the_table_of_classes_counts_what_glass_says(classifier: Path, asked: list[tuple[str, str]]) -> None:
    model = open_model(classifier)
    said = [look(model, text).translation for text, _ in asked]
    wanted = Counter((label, told) for (_, label), told in zip(asked, said, strict=True))
    page = sections(classifier / "report.html")
    rows = [line.split(" | ") for line in page["confusion"].split("\n")[2:]]
    names = [name for name, *_ in rows]
    assert names == sorted({label for pair in wanted for label in pair})
    found = {
        (name, other): int(cell)
        for name, *cells in rows
        for other, cell in zip(names, cells[: len(names)], strict=True)
    }
    assert {pair: count for pair, count in found.items() if count} == wanted
    right = sum(a == b for a, b in wanted.elements())
    assert f"tells {right} of {len(asked)} rightly" in page["scores"]


def test_the_score_stands_beside_what_needs_no_reading(classifier: Path, asked: list[tuple[str, str]]) -> None:
    (score,) = read_config(classifier)[1].scores
    page = sections(classifier / "report.html")["scores"]
    label, times = Counter(label for _, label in asked).most_common(1)[0]
    assert f"always “{label}” | {100 * times / len(asked):.2f} |" in page
    low, high = score["mean"] - score["half_width"], score["mean"] + score["half_width"]
    assert f"{score['value']:.2f} | {low:.2f} to {high:.2f}" in page


@pytest.mark.parametrize(
    ("percent", "count", "low", "high"), [(50.0, 10, 23.66, 76.34), (100.0, 10, 72.25, 100.0), (0.0, 50, 0.0, 7.13)]
)
def test_an_interval_of_a_share(percent: float, count: int, low: float, high: float) -> None:
    """Wilson's interval, as tables of it have it."""
    middle, half = interval(percent, count)
    assert (middle - half, middle + half) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))


def test_texts_that_do_not_fit_are_told_and_counted_as_wrong(classifier: Path) -> None:
    model = open_model(classifier)
    long = " ".join(["one"] * 600)
    told = answers(model, [long, "one two three"], ["one", "two"])
    assert (told[0].said, told[0].right) == ("", False)
    assert told[1].said in NUMBERS
    drawn = sections(blocks_page(report(classifier, Ending(sources=[long], references=["one"]))))["scores"]
    assert "tells 0 of 1 rightly; 1 are longer than the model and count as wrong" in drawn


def test_rare_classes_share_a_row() -> None:
    some = [Answer(f"text {n}", f"class{n % 20:02}", f"class{(n * 3) % 20:02}", 0.5, 0.5) for n in range(400)]
    rows = [line.split(" | ") for line in text_of(confusion(some)).split("\n")[2:]]
    assert len(rows) == 13
    assert rows[-1][0] == OTHERS
    assert sum(int(n) for _, *cells in rows for n in cells[: len(rows)]) == 400
    # Of the others, 8 classes of 20 texts; right are those of class 10 · n, where n · 3 ≡ n (mod 20).
    others = [answer for answer in some if answer.expected >= "class12"]
    assert f"{100 * sum(answer.right for answer in others) / len(others):.1f} %" in rows[-1]


def test_the_samples_are_the_surest_and_the_least_sure() -> None:
    some = [Answer(f"<b>{n}", "yes", "yes" if n % 2 else "no", 0.5 + n / 200, 0.5) for n in range(40)]
    parts = re.split(r"^(?=Wrong|Right)", text_of(class_samples(some)), flags=re.MULTILINE)[1:]
    found = {part.partition("\n")[0]: [int(n) for n in re.findall(r"<b>(\d+)", part)] for part in parts}
    assert found == {
        "Wrong, and sure of it": [38, 36, 34, 32, 30],
        "Right, but hardly": [1, 3, 5, 7, 9],
        "Right, and sure of it": [39, 37, 35, 33, 31],
    }


# --- writing on -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [
        " ".join(NUMBERS[(first + n) % 10] for n in range(length)) for first in range(10) for length in range(2, 26)
    ]
    return train(tmp_path_factory.mktemp("texts"), "generate", lines)


@pytest.fixture(scope="module")
def unread(writer: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [text for text, _ in held_out(writer, "generate", tmp_path_factory.mktemp("again"))]


def test_the_page_of_a_writer_is_whole(writer: Path) -> None:
    told = sections(writer / "report.html")
    assert list(told) == ["header", "scores", "samples", "curves", "data", "run", "limits"]
    assert "240 texts were read, 240 kept, 0 left out" in told["data"]
    assert "vidrio train texts.tsv --to model --task generate" in told["run"]
    (score,) = read_config(writer)[1].scores
    for value in (score["value"], score["value"] / math.log(2)):
        assert f" | {value:.3f} | " in told["scores"]
    assert f" | {math.exp(score['value']):,.2f} | " in told["scores"]


def test_the_same_run_gives_the_same_page(writer: Path, unread: list[str]) -> None:
    _, about = read_config(writer)
    ending = Ending(sources=unread, references=[""] * len(unread))
    pages = [blocks_page(report(writer, ending)) for _ in range(2)]
    assert pages[0] == pages[1]
    assert sections(pages[0])["samples"] == sections(writer / "report.html")["samples"]
    assert about.name == "model"


def test_the_bits_of_all_texts_are_the_loss(writer: Path, unread: list[str]) -> None:
    """glass/ and learn/ agree on how surprising the held-out texts are."""
    model = open_model(writer)
    told = {text: bits for bits, text in surprises(model, unread)}
    lengths = {text: len(model.target_tokenizer.encode(text)) + 1 for text in unread}  # and the end token
    rest = [text for text in unread if text not in told]  # of two tokens: too short to be begun
    assert all(lengths[text] <= 3 for text in rest)
    (score,) = read_config(writer)[1].scores
    bits = sum(told[text] * lengths[text] for text in told)
    for text in rest:
        ids = (*model.target_tokenizer.encode(text), model.config.special.end)
        bits -= float(look(model, "", target=ids).trace.array("out.score").sum()) / math.log(2)
    assert bits * math.log(2) / sum(lengths.values()) == pytest.approx(score["value"], rel=1e-5)


def test_it_goes_on_as_it_has_learned(writer: Path, unread: list[str]) -> None:
    model = open_model(writer)
    ranked = surprises(model, unread)
    some = [go_on(model, text) for _, text in ranked]
    assert len(some) > 10
    for (_, text), (begins, likeliest, _) in zip(ranked, some, strict=True):
        assert text.startswith(begins)
        assert likeliest.split()[0] == NUMBERS[(NUMBERS.index(begins.split()[-1]) + 1) % 10]
    assert any(likeliest != drawn for _, likeliest, drawn in some)
    bits = [bits for bits, _ in ranked]
    assert bits == sorted(bits)
