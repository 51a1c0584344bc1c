"""Test that only one command at a time works in a run's folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from vidrio.data.lock import LOCK, only_one
from vidrio.errors import RunError

HOLD = """
import sys
from pathlib import Path
from vidrio.data.lock import only_one
with only_one(Path(sys.argv[1])):
    print("here", flush=True)
    sys.stdin.read()
"""


def test_a_second_command_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    home = tmp_path / "model" / "run"
    command = [sys.executable, "-c", HOLD, str(home)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "here\n"
    (home / "state").write_text("of the other")
    with pytest.raises(RunError, match="another command is working"), only_one(home):
        pass
    assert (home / "state").exists()
    other.kill()
    other.communicate()
    assert (home / LOCK).exists()
    with only_one(home):
        pass
    assert not (home / LOCK).exists()
