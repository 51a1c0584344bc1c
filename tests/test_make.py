"""Test the Makefile, .ci/run and conftest.py: what they pass on, and their messages if something is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def make(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=REPOSITORY, env=inherited | more, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def environment(folder: Path, **programs: str) -> list[str]:
    """Return the arguments for which make uses these programs as a complete virtual environment."""
    for name, text in programs.items():
        program(folder / "env" / "bin" / name, text)
    place = os.path.relpath(folder / "env", REPOSITORY)
    return [f"VENV={place}", f"VENV_TEST={place}", "-o", f"{place}/.vidrio-light", "-o", f"{place}/.vidrio-test"]


def test_make_alone_lists_the_goals() -> None:
    done = make()
    assert done.returncode == 0
    assert {line.split()[1] for line in done.stdout.splitlines()} >= {"help", "hello", "test", "slow", "check", "clean"}
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "text",
    ['He said "it\'s"', "costs $5 or $HOME", "`date`", "a\\b", "¿Qué?  two  spaces", "#1; ls", ""],
)
def test_hello_translates_any_text_as_it_is_typed(text: str, tmp_path: Path) -> None:
    settings = environment(tmp_path, vidrio='#!/bin/sh\nprintf "<%s>" "$@"\n')
    (tmp_path / "env" / "bin" / "python").symlink_to(sys.executable)
    done = make("hello", f"TEXT={text}", *settings)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"<translate><{text}>\n")
    # The last line is a command. In a shell, it must pass on the same text.
    command = done.stdout.splitlines()[-1].strip()
    run = subprocess.run(["sh", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert run.stdout == f"<look><{text}>"


@pytest.mark.parametrize("script", ["#!/bin/sh\n[ $1 = --version ] && echo Python 3.9.1\nexit 1\n", None])
def test_an_old_or_missing_python_is_told_kindly(script: str | None, tmp_path: Path) -> None:
    python = program(tmp_path / "python3.9", script) if script else tmp_path / "python3.9"
    done = make("hello", f"PYTHON={python}", f"VENV={tmp_path}/none")
    assert done.returncode != 0
    assert done.stderr.startswith("Vidrio needs Python 3.11 or newer.\n  found: ")
    assert "  do: " in done.stderr
    assert not script or "--version says: Python 3.9.1" in done.stderr


def test_a_python_without_venv_is_told_kindly(tmp_path: Path) -> None:
    python = program(tmp_path / "python3", '#!/bin/sh\ncase "$2" in (*version_info*) exit 0 ;; esac\nexit 1\n')
    done = make("test", f"PYTHON={python}", f"VENV_TEST={tmp_path}/none")
    assert done.returncode != 0
    assert done.stderr.startswith("This Python cannot make virtual environments.\n")


@pytest.mark.parametrize("status", [0, 5])
def test_the_tests_exit_code_and_last_line_pass_through_ci(status: int, tmp_path: Path) -> None:
    python = f'#!/bin/sh\necho "$@ CI=$CI"\necho closing line\nexit {status}\n'
    settings = environment(tmp_path, python=python)
    copy = tmp_path / "copy with a space"
    (copy / ".ci").mkdir(parents=True)
    for name in ("Makefile", ".ci/run", "pyproject.toml", "constraints.txt"):
        shutil.copy(REPOSITORY / name, copy / name)
    # A wrapper that runs the real make with the virtual environment in the parent folder.
    there = [word.replace(os.path.relpath(tmp_path, REPOSITORY), "..") for word in settings]
    program(tmp_path / "bin" / "make", f'#!/bin/sh\nexec {shutil.which("make")} "$@" {" ".join(there)}\n')
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    here = {"cwd": tmp_path, "env": os.environ | {"PATH": path}}
    done = subprocess.run([copy / ".ci" / "run"], **here, capture_output=True, text=True, timeout=60)
    assert done.returncode == status
    lines = done.stdout.splitlines()
    assert lines[-1] == "closing line"
    assert lines[0].startswith("-m pytest")
    assert lines[0].endswith("CI=true")
    assert done.stderr == ""


SKIPPING = """
import pytest

def test_that_passes():
    pass

@pytest.mark.xfail(reason="known", strict=True)
def test_that_is_known_to_fail():
    assert False

def test_that_skips():
    pytest.skip("no such thing here")

@pytest.mark.skipif(True, reason="not on this system")
def test_that_is_skipped():
    pass
"""


@pytest.mark.parametrize(
    ("ci", "text", "workers", "exit_code", "outcome"),
    [
        ("", SKIPPING, [], 0, "1 passed, 2 skipped, 1 xfailed"),
        ("true", SKIPPING, ["-n", "1"], 1, "1 failed, 1 passed, 1 xfailed, 1 error"),
        ("true", "import pytest\npytest.importorskip('no_such_module')\n", [], 2, "1 error"),
    ],
)
def test_in_ci_a_skip_is_a_failure_that_tells_its_reason(
    ci: str, text: str, workers: list[str], exit_code: int, outcome: str, tmp_path: Path
) -> None:
    shutil.copy(REPOSITORY / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_skipping.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers],
        cwd=tmp_path, env=os.environ | {"CI": ci}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert outcome in done.stdout
    assert done.returncode == exit_code
    if ci:
        reasons = ["no such thing here", "not on this system"] if "def" in text else ["no_such_module"]
        for reason in reasons:
            assert reason in done.stdout


@pytest.mark.parametrize(("name", "said"), [("PYTHONS", "name Pythons with venv"), ("KEY", "there is no key /none")])
def test_a_release_that_cannot_be_tried_or_signed_is_not_begun(name: str, said: str) -> None:
    command, environment = [sys.executable, ".ci/release.py"], os.environ | {name: "/none"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr[: len(said)]) == (1, said)
