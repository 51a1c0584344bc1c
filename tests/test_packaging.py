"""Test the contents of the built wheel and source archive: the code, its data, its licence, and nothing else."""

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import BytesParser
from pathlib import Path

import pytest

from vidrio import __version__

REPOSITORY = Path(__file__).resolve().parent.parent


def build(kind: str, source: Path, to: Path) -> Path:
    """Build an archive with the installed Hatchling and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(to)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=300)
    return next(to.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(build("wheel", REPOSITORY, tmp_path_factory.mktemp("dist"))) as archive:
        yield archive


def source_files() -> set[str]:
    folder = REPOSITORY / "src"
    files = (path for path in (folder / "vidrio").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in files if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    info = f"vidrio-{__version__}.dist-info"
    # Hatchling omits files that git ignores, so a lesson's data under an ignored name would be missing here.
    assert {name for name in names if not name.startswith(info)} == source_files()
    assert {"vidrio/py.typed", "vidrio/engine/built/engine.wasm", "vidrio/engine/built/engine-core.wasm"} <= names
    assert {f"{info}/licenses/{name}" for name in ("LICENSE", "THIRD_PARTY.txt")} <= names


def test_the_wheels_metadata(wheel: zipfile.ZipFile) -> None:
    told = BytesParser().parsebytes(wheel.read(f"vidrio-{__version__}.dist-info/METADATA"))
    assert (told["Name"], told["Version"]) == ("vidrio", __version__)
    assert (told["License-Expression"], told["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    light = {re.split("[<>]", line)[0] for line in told.get_all("Requires-Dist", []) if ";" not in line}
    assert light == {
        *("click", "fastapi", "filelock", "huggingface-hub", "justhtml", "markdown-it-py", "numpy", "py3langid"),
        *("python-multipart", "safetensors", "sentencex", "tokenizers", "uvicorn", "wasmtime"),
    }
    assert {"train", "interop", "ray", "dev"} == set(told.get_all("Provides-Extra", []))
    assert b"vidrio = vidrio.cli:main" in wheel.read(f"vidrio-{__version__}.dist-info/entry_points.txt")


def test_the_wheel_runs_from_where_it_was_unpacked(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import vidrio, vidrio.cli; print(vidrio.__file__)"
    code += "; raise SystemExit(vidrio.cli.main(['--version']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{tmp_path / 'vidrio' / '__init__.py'}\nvidrio, version {__version__}\n"


@pytest.mark.slow
def test_the_source_archive_can_be_tested_and_builds_the_same_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", REPOSITORY, tmp_path)) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    names = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert {"pyproject.toml", "constraints.txt", "Makefile", "LICENSE", "THIRD_PARTY.txt", "README.md"} <= names
    assert {".ci/run", "tests/conftest.py", "src/vidrio/py.typed"} <= names
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]
    with zipfile.ZipFile(build("wheel", source, tmp_path)) as again:
        assert {i.filename: i.CRC for i in again.infolist()} == {i.filename: i.CRC for i in wheel.infolist()}


def test_who_made_what_is_packed_is_named() -> None:
    named = (REPOSITORY / "THIRD_PARTY.txt").read_text("utf-8")
    page = json.loads((REPOSITORY / "page/package.json").read_text("utf-8"))["dependencies"]
    packed = {*page, *(folder.name for folder in (REPOSITORY / "src/vidrio/models").iterdir() if folder.is_dir())}
    known = {"@fontsource-variable/inter": "Inter ", "svelte": "Svelte ", "katex": "KaTeX "}
    assert not [name for name in packed - {"__pycache__"} if known.get(name, name) not in named]
    assert f"version: {__version__}\n" in (REPOSITORY / "CITATION.cff").read_text("utf-8")


def test_the_wheel_is_not_large(wheel: zipfile.ZipFile) -> None:
    assert Path(str(wheel.filename)).stat().st_size <= 45_000_000
    names = [name for name in wheel.namelist() if name.startswith("vidrio/models/")]
    assert any(name.endswith("/model.safetensors") for name in names)
    assert not any(name.endswith(".bin") for name in names)  # every parameter is stored only once
