"""The model folder: what is written is read back, and damage of every kind is told, never traced back."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from vidrio.errors import ModelError
from vidrio.model.config import ModelConfig
from vidrio.model.folder import About, read_config, read_parameters, write_atomically, write_config, write_parameters
from vidrio.model.parameters import random_parameters

CONFIG = ModelConfig(source_vocabulary=11, target_vocabulary=11, d_model=4, n_heads=2, d_head=3, d_ff=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parameters(tmp_path / "model", random_parameters(CONFIG, np.random.default_rng(3)))
    write_config(tmp_path / "model", CONFIG, About(name="small", source_language="en", target_language="es"))
    return tmp_path / "model"


def test_what_is_written_is_read_back(folder: Path) -> None:
    config, about = read_config(folder)
    assert (config, about.name, about.target_language) == (CONFIG, "small", "es")
    expected = random_parameters(CONFIG, np.random.default_rng(3))
    parameters = read_parameters(folder)
    assert set(parameters) == set(expected)
    assert all(np.array_equal(parameters[name], expected[name]) for name in expected)


def test_another_format_is_refused_with_the_version_that_wrote_it(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 7, "written_by": "vidrio 9.9"}))
    with pytest.raises(ModelError, match=r"(?s)format 7.*format 1.*vidrio 9\.9"):
        read_config(folder)


@pytest.mark.parametrize(
    "damage", ["", "[]", "{", '{"format": 1}', '{"format": 1, "model": {}, "about": {"x": 1}}', "[" * 99999]
)
def test_a_damaged_config_is_told(folder: Path, damage: str) -> None:
    (folder / "config.json").write_text(damage)
    with pytest.raises(ModelError):
        read_config(folder)


def test_what_is_not_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        read_config(tmp_path / "nowhere")
    (tmp_path / "file").write_text("text")
    with pytest.raises(ModelError, match="not a folder"):
        read_config(tmp_path / "file")


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_truncated_parameters_are_told_with_their_checksum(folder: Path, keep: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"(?s)damaged.*sha256 [0-9a-f]{64}"):
        read_parameters(folder)


def test_a_failed_write_leaves_the_last_good_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"good")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"good"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_killed_while_writing_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"\x00" * 1_000_000)
    writer = (
        "import sys; from pathlib import Path; from vidrio.model.folder import write_atomically\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for byte in (b'a', b'b'): write_atomically(Path(sys.argv[1]), byte * 1_000_000)\n"
    )
    for moment in (0.01, 0.05, 0.11):
        process = subprocess.Popen([sys.executable, "-c", writer, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        data = path.read_bytes()
        assert len(data) == 1_000_000
        assert len(set(data)) == 1
