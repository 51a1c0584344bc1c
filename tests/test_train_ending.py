"""Test the end of `vidrio train`: its messages, and how classifiers and language models are evaluated."""

import json
import re
import shlex
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forked import run_vidrio
from small_run import vidrio_train
from vidrio.commands._progress import Console
from vidrio.data.progress import Progress, Work
from vidrio.errors import DataError
from vidrio.learn.task import Request, Task, make_task
from vidrio.look.run import look, open_model
from vidrio.model.folder import read_config
from vidrio.translate.translator import NoTranslator, Translator

WORDS = ["one", "two", "three", "four", "five", "six"]
LINES = [f"{a} {b} {c}" for a, b, c in product(WORDS, repeat=3)]
CLASSES = [f"{line}\t{line.split()[1]}" for line in LINES]
USUAL = "--validations 2 --d-model 32 --heads 4 --d-ff 64 --encoder-layers 1 --decoder-layers 1 --rate 0.01 --dropout 0"


def train(folder: Path, lines: Sequence[str], *options: str) -> tuple[Path, str]:
    (folder / "texts.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    usual = ("--precision", "float32", "--threads", "1")
    code, said = vidrio_train(folder, "texts.tsv", "--to", "model", *options, *USUAL.split(), *usual)
    assert code == 0, said
    return folder / "model", said


def tried(said: str, folder: Path) -> str:
    """Run the command suggested at the end of training and return its output."""
    [command] = re.findall(r"^try it: vidrio (.+)$", said, re.MULTILINE)
    done = run_vidrio(*shlex.split(command), cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(folder: Path, lines: Sequence[str], *options: str) -> list[str]:
    """Return the output lines of `vidrio translate` for these lines."""
    text = "".join(f"{line}\n" for line in lines)
    done = run_vidrio("translate", "--model", "model", *options, stdin=text, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# --- progress ---------------------------------------------------------------------------------------------------------


def shown(console: Console, capsys: pytest.CaptureFixture[str], *moments: float) -> str:
    """Return what the console prints on its own at these moments, in seconds from now."""
    now = time.monotonic()
    for moment in moments:
        console.look(now + moment)
    return capsys.readouterr().err


def test_without_a_terminal_there_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    assert shown(console, capsys, 0, 100) == ""
    work = console.progress.work = Work("reading", 200)
    assert shown(console, capsys, 100, 109) == ""
    work.done = 82
    assert shown(console, capsys, 111, 112, 120) == "reading: 41%\n"
    work.done = 164
    assert shown(console, capsys, 122) == "reading: 82%\n"
    work.done = 200
    assert shown(console, capsys, 140) == ""
    console.progress.work = Work("writing")
    assert shown(console, capsys, 150, 161) == "writing …\n"


def test_on_a_terminal_work_that_takes_more_than_two_seconds_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Console() as console:
        console.progress.work = Work("soon over")
        assert "soon over" not in shown(console, capsys, 0, 1)
        console.progress.work = Work("scoring")  # shown although it does not advance
        deadline, text = time.monotonic() + 60, ""
        while "scoring" not in text:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            text += capsys.readouterr().err
        console.progress.work = None
    assert console._line == ""


# --- evaluation on held-out texts -------------------------------------------------------------------------------------


def test_a_classifier_is_judged_on_a_test_set_of_its_own(tmp_path: Path) -> None:
    test = [f"{a} {b}\t{b}" for a, b in product(WORDS, repeat=2)]
    (tmp_path / "test.tsv").write_text("".join(f"{line}\n" for line in test), encoding="utf-8")
    folder, said = train(
        tmp_path, [*CLASSES, test[0].upper()], "--task", "classify", "--test", "test.tsv", "--steps", "30"
    )
    assert "left out 1: repeats a held-out sentence" in said
    model = open_model(folder)
    right = sum(look(model, text).translation == label for text, label in (line.split("\t") for line in test))
    (score,) = read_config(folder)[1].scores
    assert score["value"] == pytest.approx(100 * right / 36)
    assert f"accuracy {score['value']:.2f}   on the test set" in said
    assert "test 36" in (folder / "README.md").read_text("utf-8")
    assert tried(said, tmp_path) in [f"{word}\n" for word in WORDS]
    texts = [text for text, _ in (line.split("\t") for line in test)]
    classes = [look(model, text).translation for text in texts]
    assert asked(tmp_path, texts) == classes
    told = [json.loads(line) for line in asked(tmp_path, [*texts, ""], "--json")]
    assert [of["class"] for of in told] == [*classes, None]
    assert all(sum(of["classes"].values()) == pytest.approx(1) for of in told[:-1])
    records = [json.dumps({"text": text, "n": n}) for n, text in enumerate(texts)]
    assert [json.loads(line)["class"] for line in asked(tmp_path, records, "--jsonl")] == classes
    with pytest.raises(NoTranslator, match="does not translate"):
        Translator.load(folder)
    assert not (folder / "translations.tsv").exists()


def test_a_writer_is_judged_on_what_it_has_not_been_chosen_by(tmp_path: Path) -> None:
    folder, said = train(tmp_path, LINES, "--task", "generate", "--steps", "30")
    assert "training pairs: 196; held out: 10 for validation, 10 for testing" in said
    assert len(tried(said, tmp_path).split()) >= 2
    beginnings = ["one two", "six"]
    written = [look(open_model(folder), text).translation for text in beginnings]
    assert asked(tmp_path, beginnings) == written
    assert [json.loads(line)["written"] for line in asked(tmp_path, beginnings, "--json")] == written
    task = prepared(tmp_path, "generate", LINES)
    test = [text for text, _ in task.test]
    assert not {*test} & {text for text, _ in task.held_out}
    model = open_model(folder)
    end = model.config.special.end
    scores = [
        look(model, "", target=(*model.target_tokenizer.encode(text), end)).trace.array("out.score") for text in test
    ]
    (score,) = read_config(folder)[1].scores
    assert score["value"] == pytest.approx(-np.concatenate(scores).mean(), rel=1e-5)


def prepared(folder: Path, task: str, lines: Sequence[str], **given: Any) -> Task:
    text = "".join(f"{line}\n" for line in lines)
    if not (path := folder / "texts.tsv").exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return make_task(Request(folder=folder, names=(str(path),), vocabulary=300, task=task, **given), Progress())


def test_given_sets_take_nothing_from_the_texts(tmp_path: Path) -> None:
    for name, line in (("dev.tsv", "six seven\tseven"), ("test.tsv", "seven six\tsix")):
        (tmp_path / name).write_text(f"{line}\n", encoding="utf-8")
    lines = [*CLASSES, *(f"{word} seven\tseven" for word in WORDS)]
    files = {"dev": (str(tmp_path / "dev.tsv"),), "test": (str(tmp_path / "test.tsv"),)}
    parts = prepared(tmp_path, "classify", lines, **files)
    assert parts.pairs == {"train": 221, "dev": 1, "test": 1}  # "six seven" is in dev.tsv
    assert (parts.held_out, parts.test) == ([("six seven", "seven")], [("seven six", "six")])
    with pytest.raises(DataError, match="classes that are missing from the training texts"):
        prepared(tmp_path, "classify", CLASSES, **files)
    (tmp_path / "test.tsv").write_text("six\t\n", encoding="utf-8")
    with pytest.raises(DataError, match="nothing to test with"):
        prepared(tmp_path, "classify", lines, **files)
