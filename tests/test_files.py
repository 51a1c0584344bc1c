"""Test that files are written completely, that links and pipes are kept, and that our JSON is valid."""

import json
import os
import stat
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from vidrio.model.files import remove_leftovers, write_atomically, write_output
from vidrio.model.json_text import json_data, json_text


def test_a_link_stays_a_link_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    write_output(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"


@pytest.mark.parametrize("name", [".", "..", "folder"])
def test_a_folder_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"busy|directory"):
        write_atomically(Path(name), b"text")
    assert [*tmp_path.iterdir()] == [tmp_path / "folder"]


def test_who_may_read_a_file_may_read_its_successor_and_nobody_else(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for mode in (0o640, 0o600, 0o664):
        old.write_text("before")
        old.chmod(mode)
        before = old.stat()
        write_output(old, b"after")
        after = old.stat()
        assert after.st_ino != before.st_ino
        assert stat.S_IMODE(after.st_mode) == mode
    umask = os.umask(0o077)
    try:
        write_output(new, b"mine")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o600


def test_a_pipe_stays_a_pipe_and_gets_everything(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    write_output(tmp_path / "pipe", b"x" * 200_000)
    reader.join(20)
    assert read == [b"x" * 200_000]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@dataclass
class Record:
    array: np.ndarray
    number: float


def test_json_has_words_for_what_it_has_no_numbers_for() -> None:
    data = {"a": [1.5, float("nan")], "b": Record(np.array([[np.inf, 1], [-np.inf, 2]]), np.float32(0.5))}
    assert json.loads(json_text(data), parse_constant=pytest.fail) == {
        "a": [1.5, "NaN"],
        "b": {"array": [["inf", 1.0], ["-inf", 2.0]], "number": 0.5},
    }


def test_json_holds_half_a_character_escaped_and_all_others_as_they_are() -> None:
    assert json_text({"a": "ñ"}) == '{"a": "ñ"}'
    assert json_text({"a": "ñ\ud83d"}) == '{"a": "ñ\\ud83d"}'


@pytest.mark.parametrize(
    "text",
    [b"\xff", b'"\xed\xa0\xbd"', "", "NaN", "[Infinity]", "-1e999", '"\\ud83d"', '"\ud83d"', "[" * 100_000, "9" * 5000],
)
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        json_data(text)


def test_leftovers_of_a_killed_command_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    left = [".config.json.0123456789abcdef.part", "run/.tmpcQoXWK"]  # safetensors leaves files like the second one
    kept = [".part", ".tmp", ".tmp-notes", "notes.part", "run/state.safetensors"]
    for name in (*left, *kept):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()) == sorted(kept)
