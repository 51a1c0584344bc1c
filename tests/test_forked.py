"""A command that is forked (forked.py) does what one does that Python starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from forked import run_vidrio


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--version"], ""),
        (["transalte"], ""),
        (["translate", "-m", "lesson"], "hello world\nhow\n"),
        (["translate", "-m", "lesson", "-i", "hello.txt", "-o", "hola.txt"], ""),
        (["look", "-m", "nothing-of-that-name", "hello"], ""),
    ],
)
def test_the_same_streams_code_and_files(arguments: list[str], stdin: str, tmp_path: Path) -> None:
    said, left = [], []
    for name in ("forked", "started"):
        (folder := tmp_path / name).mkdir()
        (folder / "hello.txt").write_text("hello world\n")
        if name == "forked":
            done = run_vidrio(*arguments, stdin=stdin, cwd=folder)
        else:
            command = [sys.executable, "-m", "vidrio", *arguments]
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=folder, timeout=120)
        said.append((done.returncode, done.stdout, done.stderr.replace(str(folder), "")))
        left.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert said[0] == said[1]
    assert left[0] == left[1]


def test_its_environment_is_its_own_and_one_that_takes_too_long_is_told() -> None:
    done = run_vidrio("serve", environment={"VIDRIO_PORT": "nowhere"})
    assert (done.returncode, "'nowhere' is not a valid integer" in done.stderr) == (2, True)
    with pytest.raises(subprocess.TimeoutExpired):
        run_vidrio("lesson", "nan", "all", timeout=0.2)
