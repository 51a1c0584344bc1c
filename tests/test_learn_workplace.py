"""One command at a time works in a run's folder, and what is refused leaves nothing."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vidrio.errors import DataError, RunError
from vidrio.learn.plain import in_memory
from vidrio.learn.workplace import LOCK, checksum, leaving_nothing, only_one

HOLD = """
import sys
from pathlib import Path
from vidrio.learn.workplace import only_one
with only_one(Path(sys.argv[1])):
    print("here", flush=True)
    sys.stdin.read()
"""


def hold(home: Path) -> "subprocess.Popen[str]":
    """Another command, at work in the folder until its input ends."""
    command = [sys.executable, "-c", HOLD, str(home)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "here\n"
    return other


def test_a_second_command_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    home = tmp_path / "model" / "run"
    other = hold(home)
    (home / "state").write_text("of the other")
    with pytest.raises(RunError, match="another command is at work"), only_one(home):
        pass
    assert (home / "state").exists()
    other.communicate("")
    with only_one(home):
        assert (home / LOCK).exists()


def test_a_killed_command_holds_nothing(tmp_path: Path) -> None:
    other = hold(tmp_path / "run")
    other.kill()
    other.communicate()
    with only_one(tmp_path / "run"):
        pass


def test_a_folder_that_stays_empty_goes_again(tmp_path: Path) -> None:
    with only_one(tmp_path / "a" / "b" / "run"):
        assert (tmp_path / "a" / "b" / "run").is_dir()
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    with only_one(tmp_path / "mine" / "run"):
        (tmp_path / "mine" / "run" / "state").touch()
    assert (tmp_path / "mine" / "run" / "state").exists()


def test_what_is_refused_leaves_nothing_but_an_earlier_run(tmp_path: Path) -> None:
    home = tmp_path / "model" / "run"

    def refused() -> None:
        with only_one(home), leaving_nothing(home):
            (home / "data").mkdir(exist_ok=True)
            (home / "data" / "train.tsv").touch()
            (home / "tokenizer.json").touch()
            raise DataError("no")

    with pytest.raises(DataError):
        refused()
    assert not list(tmp_path.iterdir())
    home.mkdir(parents=True)
    (home / "state").touch()
    with pytest.raises(DataError):
        refused()
    assert {path.name for path in home.iterdir()} == {LOCK, "state", "data", "tokenizer.json"}


def test_a_checksum_tells_other_ids_another_order_and_other_boundaries() -> None:
    pairs = [([4, 5], [6]), ([7], [8, 9])]
    others = [pairs[::-1], [([4, 5], [6]), ([7], [8, 10])], [([4], [6]), ([5, 7], [8, 9])]]
    found = {checksum(in_memory(some), "") for some in (pairs, *others)}
    assert len(found) == 4
    assert checksum(in_memory(pairs), "") != checksum(in_memory(pairs), "another tokenizer")
    as_arrays = [(np.array(a), np.array(b)) for a, b in pairs]
    assert checksum(in_memory(as_arrays), "") == checksum(in_memory(pairs), "")
