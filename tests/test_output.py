"""Test that `vidrio translate -o` never loses translations, its input or the user's other files."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forked import CLIENT, run_vidrio, socket_path
from waiting import wait_for

TEXTS, TRANSLATIONS = ["hello world", "good world", "hello"], ["hola mundo", "buen mundo", "hola"]
LESSON = ("translate", "--model", "lesson")


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def translate(*arguments: object, stdin: str = "", cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return run_vidrio(*LESSON, *map(str, arguments), stdin=stdin, cwd=cwd)


@contextmanager
def translating(*arguments: object, cwd: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a translation that waits for standard input."""
    command = [sys.executable, "-m", "vidrio", *LESSON, *map(str, arguments)]
    streams = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=cwd, text=True, **streams) as process:  # type: ignore[call-overload]
        yield process


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_two_commands_never_write_the_same_output(tmp_path: Path, more: list[str]) -> None:
    part = tmp_path / "out.vidrio-part"
    with translating("-o", "out", cwd=tmp_path) as first:
        assert first.stdin is not None
        first.stdin.write(text_of(TEXTS[:2]))
        first.stdin.flush()
        wait_for(lambda: part.exists() and part.stat().st_size > 0)
        second = translate("-o", "out", *more, stdin=text_of(TEXTS), cwd=tmp_path)
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr.startswith("vidrio: another command is writing out\n  found: ")
        first.communicate(text_of(TEXTS[2:]), timeout=60)
    assert first.returncode == 0
    assert (tmp_path / "out").read_text() == text_of(TRANSLATIONS)
    assert os.listdir(tmp_path) == ["out"]


def test_a_killed_command_leaves_a_part_that_only_resume_continues(tmp_path: Path) -> None:
    part = tmp_path / "out.vidrio-part"
    with translating("-o", "out", cwd=tmp_path) as killed:
        assert killed.stdin is not None
        killed.stdin.write(text_of(TEXTS[:2]))
        killed.stdin.flush()
        wait_for(lambda: part.exists() and part.read_text().count("\n") == 2)
        killed.kill()
    refused = translate("-o", "out", stdin=text_of(TEXTS), cwd=tmp_path)
    assert refused.returncode == 1
    assert "found: 2 finished lines in out.vidrio-part\n  do: add --resume" in refused.stderr
    assert part.read_text() == text_of(TRANSLATIONS[:2])
    assert translate("-o", "out", "--resume", stdin=text_of(TEXTS), cwd=tmp_path).returncode == 0
    assert (tmp_path / "out").read_text() == text_of(TRANSLATIONS)
    assert os.listdir(tmp_path) == ["out"]


def test_files_of_the_users_are_left_alone(tmp_path: Path) -> None:
    mine = {name: f"mine: {name}" for name in ("out.part", "out.tmp", ".out.part", "out~")}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    assert translate("-o", "out", stdin=text_of(TEXTS), cwd=tmp_path).returncode == 0
    assert (tmp_path / "out").read_text() == text_of(TRANSLATIONS)
    assert {name: (tmp_path / name).read_text() for name in mine} == mine
    assert set(os.listdir(tmp_path)) == {"out", *mine}


@pytest.mark.parametrize(
    "command",
    [
        "translate -m lesson -i in -o in",
        "translate -m lesson -i in -o link",
        "translate -m lesson -i in -o hard",
        "translate -m lesson -i out.vidrio-part -o out",
        "translate -m lesson -i in -o in --resume",
        "translate -m lesson -i in --glossary terms -o terms",
        "translate -m lesson -i in.html -o in.html",
        "translate -m lesson -i in >> in",
        "translate -m lesson < in >> in",
        "translate -m lesson -o in < in",
        "evaluate lesson --src in --ref in -o in",
    ],
)
def test_an_input_is_never_the_output(tmp_path: Path, command: str) -> None:
    texts = {"in": text_of(TEXTS), "in.html": "<p>hello</p>", "terms": "world\tmundo\n", "out.vidrio-part": "hello\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "hard").hardlink_to(tmp_path / "in")
    shell = f"{sys.executable} -I -S {CLIENT} {socket_path()} vidrio {command}"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is also an input, which would be lost" in done.stderr
    assert {name: (tmp_path / name).read_text() for name in texts} == texts


def test_an_output_in_a_folder_that_does_not_exist_creates_none(tmp_path: Path) -> None:
    done = translate("-o", "new/out", stdin="hello\n", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "vidrio: [Errno 2] No such file or directory: 'new'\n")
    assert os.listdir(tmp_path) == []


def test_a_command_that_has_written_no_line_leaves_no_part_and_promises_none(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"\xff\n")
    done = translate("-i", "in", "-o", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("vidrio: line 1 of in is not UTF-8")
    assert os.listdir(tmp_path) == ["in"]


@pytest.mark.parametrize("command", ["translate -m lesson hello", "translate -m lesson -i in", "look -m lesson hello"])
def test_a_closed_output_is_an_error(tmp_path: Path, command: str) -> None:
    (tmp_path / "in").write_text("hello\n")
    shell = f"{sys.executable} -m vidrio {command} >&-"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("vidrio: [Errno 9] Bad file descriptor: 'stdout'\n")
    again = f"{sys.executable} -m vidrio translate -m lesson -i in -o out <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", again], cwd=tmp_path, timeout=60).returncode == 0  # needs no standard streams
