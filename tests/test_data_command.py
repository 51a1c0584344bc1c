"""Test `vidrio data` as users run it."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from vidrio.cli import main

PAIRS = [
    ("Hello world!", "¡Hola mundo!"),
    ("Hello world!", "¡Hola mundo!"),
    ("It costs 25 dollars.", "Cuesta 52 dólares."),
    ("Good morning.", "Buenos días."),
    ("Red\x1b[31m is red.", "Rojo."),
    ("How are you?", "¿Qué tal?"),
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), encoding="utf-8")
    return path


def run(*arguments: object) -> int:
    return main(["data", *map(str, arguments)])


# --- clean ------------------------------------------------------------------------------------------------------------


def test_clean_shows_what_is_left_out_and_writes_the_rest(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("clean", pairs.name) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "source, target\n6 pairs read, 3 kept\n" in text
    for told in ("1 left out: duplicate (", "1 left out: numbers differ (", "1 left out: control characters ("):
        assert told in text
    assert "      It costs 25 dollars.\n    → Cuesta 52 dólares.\n" in text
    assert "\x1b" not in text, "nothing that moves a terminal's cursor"
    assert list(tmp_path.iterdir()) == [pairs]
    assert run("clean", pairs, "--to", tmp_path / "clean.tsv") == 0
    written = (tmp_path / "clean.tsv").read_text(encoding="utf-8")
    assert written.splitlines() == [f"{s}\t{t}" for s, t in (PAIRS[0], PAIRS[3], PAIRS[5])]
    assert f"3 pairs in {tmp_path / 'clean.tsv'}\n" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clean.tsv", "pairs.tsv"]


def test_clean_obeys_the_options(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test.tsv").write_text("good morning\tx\n", encoding="utf-8")
    (tmp_path / "same.tsv").write_text("ceci est une phrase\tceci est une phrase\n", encoding="utf-8")

    def skipped(*arguments: object) -> Any:
        assert run("clean", "--json", *arguments) == 0
        return json.loads(capsys.readouterr().out)["skipped"]

    assert skipped(pairs, "--languages", "en,es") == {"control characters": 1, "numbers differ": 1, "duplicate": 1}
    options = ("--keep-duplicates", "--keep-numbers", "--longest", "13", "--columns", "1,2")
    assert skipped(pairs, *options, "--apart", tmp_path / "test.tsv") == {
        "too long": 2,
        "repeats a held-out sentence": 1,
    }
    assert skipped(tmp_path / "same.tsv") == {"identical sides": 1}
    assert skipped(tmp_path / "same.tsv", "--keep-identical") == {}
    for wrong, code in (([tmp_path / "missing.tsv"], 1), ([pairs, "--columns", "one"], 2), ([], 2)):
        assert run("clean", *wrong) == code


def test_clean_holds_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, to, held = tmp_path / "p.tsv", tmp_path / "clean.tsv", tmp_path / "held.tsv"
    path.write_text("".join(f"word{chr(97 + i)}\tpalabra{chr(97 + i)}\n" for i in range(20)), encoding="utf-8")
    assert run("clean", path, "--to", to, "--held-out", 2, "--held-out-to", held, "--json") == 0
    assert json.loads(capsys.readouterr().out)["written"] == {str(to): 18, str(held): 2}
    both = to.read_text(encoding="utf-8").splitlines() + held.read_text(encoding="utf-8").splitlines()
    assert sorted(both) == path.read_text(encoding="utf-8").splitlines()


def test_clean_refuses_what_would_lose_data(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pairs.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert run("clean", pairs, "--to", "pairs.tsv") == 2
    assert "must be different files" in capsys.readouterr().err
    assert run("clean", pairs, "--to", "c.tsv", "--held-out", 5) == 2
    assert run("clean", pairs, "--to", tmp_path / "no" / "c.tsv") == 1
    assert "cannot be written" in capsys.readouterr().err
    empty = tmp_path / "empty.tsv"
    empty.write_text("a\t\n", encoding="utf-8")
    assert run("clean", empty, "--to", "c.tsv") == 1
    assert "1 pairs read, 0 left (1 empty)" in capsys.readouterr().err
    assert not Path("c.tsv").exists()
    assert pairs.read_bytes() == before


def test_clean_leaves_devices_and_links_what_they_are(pairs: Path, tmp_path: Path) -> None:
    assert run("clean", pairs, "--to", os.devnull) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert not Path(f"{os.devnull}.lock").exists()
    (tmp_path / "link").symlink_to("real.tsv")
    assert run("clean", pairs, "--to", tmp_path / "link") == 0
    assert (tmp_path / "link").is_symlink()
    assert len((tmp_path / "real.tsv").read_text(encoding="utf-8").splitlines()) == 3
