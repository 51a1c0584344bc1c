"""Test commands with unusual but valid input, and mistakes that must end in a message."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vidrio.cli import main
from vidrio.look.writing import CommandLine

LESSON = ["--model", "lesson"]


def test_json_lines_may_be_in_a_file_named_so(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "hello world", "n": 1}\n')
    command = ["translate", *LESSON, "-i", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl")]
    assert main([*command, "--jsonl"]) == 0
    found = json.loads((tmp_path / "out.jsonl").read_text())
    assert (found["n"], found["translation"]) == (1, "hola mundo")
    assert main(command) == 1  # as text, the file would be translated line by line, including its field names


def test_a_trained_model_in_the_model_folder_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scores that training writes have no test's name."""
    from small_models import write_model

    write_model(tmp_path / "mine")
    path = tmp_path / "mine/config.json"
    data = json.loads(path.read_text())
    data["about"]["scores"] = [{"metric": "BLEU", "value": 61.5, "signature": "…"}, {}]
    data["about"]["provenance"] = {"licence": "\x1b[31mred"}
    path.write_text(json.dumps(data))
    monkeypatch.setenv("VIDRIO_MODELS", str(tmp_path))
    assert main(["models"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("mine")]
    assert "BLEU 61.5" in line
    assert "\x1b" not in line


def test_a_redirected_output_is_utf_8(tmp_path: Path) -> None:
    """On Windows, and with PYTHONIOENCODING, it would be another encoding, in which → cannot be written."""
    with (tmp_path / "out.txt").open("wb") as out:
        command = [sys.executable, "-m", "vidrio", "look", "Hello world", *LESSON]
        subprocess.run(command, stdout=out, check=True, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert "Hello world → hola mundo" in (tmp_path / "out.txt").read_text("utf-8")


def test_suggested_commands_use_the_options_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "Hello world", *LESSON, "--no-repeat", "2"]) == 0
    out = capsys.readouterr().out
    assert "--no-repeat 2" in out
    assert "--no-repeat-ngram" not in out


def test_a_text_that_looks_like_an_option_is_suggested_as_a_text() -> None:
    again = CommandLine("--x; touch y", ("--model", "lesson"))
    assert again.look("--at", "enc.0") == 'vidrio look --model lesson --at enc.0 -- "--x; touch y"'
    assert again.why("enc.in[0,0]") == 'vidrio why --model lesson -- "enc.in[0,0]" "--x; touch y"'
    assert CommandLine("hello").look("--at", "enc.0") == "vidrio look hello --at enc.0"


VALUES = {
    "a date": ('"enc.0.ffn.b2" = 1979-05-27\n', 1, "cannot be read as TOML"),
    "a byte-order mark": ('\ufeff"enc.0.ffn.b2" = 1\n', 0, ""),
    "not a number": ('"enc.0.ffn.b2" = nan\n', 0, ""),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_file_of_values(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, code, says = VALUES[case]
    (tmp_path / "values.toml").write_text(text, encoding="utf-8")
    assert main(["look", "hello world", *LESSON, "--values", str(tmp_path / "values.toml")]) == code
    assert says in capsys.readouterr().err


def test_a_space_before_a_matrix_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "hello world", *LESSON, "--set", "enc.0.ffn.b2 = [1, 0, 0, 0]"]) == 0
    assert main(["look", "hello world", *LESSON, "--set", f"enc.0.ffn.b2=[1{'0' * 400},0,0,0]"]) == 1
    assert "is not a number" in capsys.readouterr().err


def test_every_position_cannot_be_hidden_one_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "hello world", *LESSON, "--hide", "0", "--hide", "1"]) == 1
    assert "every source position is hidden" in capsys.readouterr().err


def test_a_failure_to_write_the_held_out_pairs_leaves_the_training_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"The house number {n} is red.\tLa casa número {n} es roja.\n" for n in range(100)))
    (tmp_path / "train.tsv").write_text("before\n")
    held_out = ["--held-out", "5", "--held-out-to", str(tmp_path / "missing/test.tsv")]
    assert main(["data", "clean", str(pairs), "--to", str(tmp_path / "train.tsv"), *held_out]) == 1
    assert (tmp_path / "train.tsv").read_text() == "before\n"


def test_a_lesson_section_is_a_decimal_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "nan", "²"]) in (1, 2)
    assert "²" in capsys.readouterr().err
