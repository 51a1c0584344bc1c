"""Test the repository as a whole: no machine-specific paths, clean text, pinned requirements, style and types."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from source import REPOSITORY


@cache
def text_files() -> tuple[Path, ...]:
    """Return the text files that git tracks or, in a copy without git, all text files of the main folders."""
    if shutil.which("git") and (REPOSITORY / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True)
        paths = [REPOSITORY / name for name in listed.stdout.decode().split("\0") if name]
    else:
        folders = ("src", "tests", "docs", "benchmarks", ".ci")
        paths = [path for folder in folders for path in (REPOSITORY / folder).rglob("*")] + list(REPOSITORY.glob("*"))
        paths = [path for path in paths if "__pycache__" not in path.parts]
    return tuple(path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8000])


def is_written_by_hand(path: Path) -> bool:
    """Exclude data files: tabs separate the columns of a .tsv, and white space may be part of a test."""
    data = bool({"data", "golden", "behaviour"} & set(path.parts)) or "serve/page" in path.as_posix()  # build output
    return not data and path.suffix not in {".tsv", ".txt", ".jsonl", ".json"} and path.name != "LICENSE"


def machine_paths() -> re.Pattern[str]:
    """Return a pattern that matches paths of one machine: this checkout and home folders."""
    system = ("", "/", "tmp", "usr", "var", "opt", "mnt", "home", "Users", "root", "private", "srv")
    root = REPOSITORY.parts[1] if len(REPOSITORY.parts) > 1 else ""
    own = [str(REPOSITORY), str(Path.home())] + ([f"/{root}"] if root not in system else [])
    folders = "|".join(re.escape(path) for path in own if path.count("/") and len(path) > 1)
    return re.compile(rf"(?<![\w.~)}}>-])(?:(?:{folders})(?![\w-])|/(?:home|Users)/\w|[A-Z]:\\Users)")


def test_the_search_for_machine_paths_finds_them() -> None:
    search = machine_paths().search
    assert search(f"read {REPOSITORY}/notes.txt")
    assert search("see " + "/home" + "/ana/notes.txt")
    assert not search("https://example.org/home/ana, docs/homework.md and src/vidrio/home/x")


def test_no_file_names_a_path_of_one_machine() -> None:
    pattern = machine_paths()
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:100]}"
        for path in text_files()
        if path.stat().st_size < 2_000_000
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found


def test_text_files_are_clean() -> None:
    problems = []
    for path in filter(is_written_by_hand, text_files()):
        name, raw = path.relative_to(REPOSITORY), path.read_bytes()
        text = raw.decode("utf-8")
        if b"\r" in raw or raw.startswith(b"\xef\xbb\xbf"):
            problems.append(f"{name} has Windows line ends or a byte-order mark")
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            problems.append(f"{name} does not end with one line end")
        for number, line in enumerate(text.splitlines(), 1):
            if line != line.rstrip():
                problems.append(f"{name}:{number} ends in white space")
            if "\t" in line and path.name != "Makefile":
                problems.append(f"{name}:{number} has a tab")
    assert not problems


def pins() -> dict[str, str]:
    lines = (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines()
    matches = [
        re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][0-9a-z.]*)", line) for line in lines if not line.startswith("#")
    ]
    assert all(matches), "constraints.txt holds comments and name==version, no place, no local version"
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def test_every_requirement_is_pinned_with_all_that_it_requires() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    waiting = [Requirement(line) for line in project["dependencies"]]
    waiting += [Requirement(line) for extra in project["optional-dependencies"].values() for line in extra]
    pinned, seen, problems = pins(), set[str](), []
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in pinned:
            problems.append(f"{requirement} is not pinned")
        elif not requirement.specifier.contains(pinned[name], prereleases=True):
            problems.append(f"{requirement} is pinned to {pinned[name]}")
        if name not in seen:
            seen.add(name)
            further = [Requirement(line) for line in importlib.metadata.requires(name) or []]
            waiting += [need for need in further if need.marker is None or need.marker.evaluate({"extra": ""})]
    assert not problems
    assert set(pinned) == seen, "run `make pins`"


def test_a_missing_extra_can_be_named() -> None:
    from vidrio.cli import EXTRAS

    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    packages = {"google": "protobuf"}
    for library, extra in EXTRAS.items():
        assert packages.get(library, library) in {Requirement(line).name for line in extras[extra]}


def run(module: str, *arguments: str, **more: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **more}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", ["ruff check --output-format concise", "ruff format --check", "mypy"])
def test_style_and_types(command: str) -> None:
    run(*command.split())


def test_scripts_call_what_there_is() -> None:
    """Type-check the scripts. They run rarely or for hours, so a renamed argument would go unnoticed."""
    off = ("arg-type", "func-returns-value", "misc", "var-annotated")
    lenient = ["--config-file=", "--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
    lenient += ["--check-untyped-defs", *(f"--disable-error-code={name}" for name in off)]
    lenient += ["--cache-dir=.mypy_cache/scripts"]  # different options would invalidate a shared cache
    folders = ("recipes/en-es", "recipes/lesson", "benchmarks")
    files = sorted(str(path) for folder in folders for path in (REPOSITORY / folder).glob("*.py"))
    run("mypy", *lenient, *files, MYPYPATH=os.pathsep.join(("src", *folders)))
