"""Test SIGKILL at random moments: nothing is lost or half-written, and the same command resumes or says what to do.

`make killed` kills each command 200 times, or as often as VIDRIO_KILLS specifies.
"""

import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from forked import run_vidrio
from serving import server
from small_models import WORDS, write_model
from small_run import PAIRS, SIZES, TAUGHT
from vidrio.model.folder import read_config, read_parameters

FEW, MANY = 2, int(os.environ.get("VIDRIO_KILLS", "200"))
LINES = "".join(f"{a} {b} {c}.\n" for a in WORDS for b in WORDS for c in WORDS[:4])
kills = pytest.mark.parametrize("kills", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])


def run(arguments: list[str], cwd: Path) -> Any:
    """Run the command to its end. Retry while a killed command still holds the lock."""
    for _ in range(1200):
        done = run_vidrio(*arguments, cwd=cwd)
        if "another command is" not in done.stderr:
            break
        time.sleep(0.05)
    return done


def run_killed(arguments: list[str], cwd: Path, seconds: float) -> Any:
    """Run the command and kill it after this many seconds. Return None if it was killed."""
    try:
        return run_vidrio(*arguments, cwd=cwd, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def moments(kills: int, arguments: list[str], cwd: Path) -> Iterator[float]:
    """Yield random moments within the duration of the command, which is measured first."""
    run(["--version"], cwd)  # starts the forking process now, so that its start is not measured
    begun = time.monotonic()
    done = run(arguments, cwd)
    assert done.returncode == 0, done.stderr
    whole, draw = time.monotonic() - begun, random.Random(kills)
    yield from (draw.uniform(0.01, whole) for _ in range(kills))


def files(folder: Path) -> dict[str, bytes]:
    """Return the files in a folder, with empty contents for those that record times."""
    timed = ("README.md", "config.json", "metrics.jsonl", "state.safetensors")
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: b"" if path.name in timed else path.read_bytes() for name, path in paths.items()}


@kills
def test_translate(tmp_path: Path, kills: int) -> None:
    """Kill `translate --output`, then the same command with --resume."""
    write_model(tmp_path / "model", seed=3, norm="pre", ends=True)
    command = f"translate --model {tmp_path}/model -i in -o out --workers 1 --beam 2".split()
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "in").write_text(LINES)
    left, seen = list(moments(kills, command, tmp_path / "whole")), list[str]()
    expected = (tmp_path / "whole" / "out").read_bytes()
    while left:
        here = tmp_path / str(len(left))
        here.mkdir()
        (here / "in").write_text(LINES)
        out, part = here / "out", here / "out.vidrio-part"
        for arguments in (command, [*command, "--resume"], [*command, "--resume"])[: len(left)]:
            done = run_killed(arguments, here, left.pop())
            assert done is None or done.returncode == 0 or "add --resume" in done.stderr, done.stderr
            assert (here / "in").read_text() == LINES
            assert not out.exists() or out.read_bytes() == expected
            assert not part.exists() or expected.startswith(part.read_bytes())
            lines = part.read_bytes().count(b"\n") if part.exists() else 0
            seen.append("complete" if out.exists() else "a part" if lines else "nothing")
        again = run(command, here)
        assert again.returncode == (1 if lines else 0), again.stderr
        assert not lines or f"found: {lines:,} finished line" in again.stderr
        assert run([*command, "--resume"], here).returncode == 0
        assert out.read_bytes() == expected
        assert sorted(os.listdir(here)) == ["in", "out"]
    print(f"after {kills} kills:", {state: seen.count(state) for state in sorted({*seen})})


@kills
def test_train(tmp_path: Path, kills: int) -> None:
    """Kill a training repeatedly until it finishes, then do the same while it continues to 60 steps."""
    text = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    usual = [part for name, value in {**SIZES, **TAUGHT}.items() for part in (f"--{name}", str(value))]
    command = ["train", "pairs.tsv", "--to", "model", *usual, "--validations", "8"]
    ends = (["--steps", "40"], ["--steps", "60"])
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "pairs.tsv").write_text(text)
    left = list(moments(kills, [*command, *ends[0]], tmp_path / "whole"))
    assert run([*command, *ends[1]], tmp_path / "whole").returncode == 0
    expected, runs = files(tmp_path / "whole"), 0
    while left:
        here = tmp_path / str(runs)
        here.mkdir()
        (here / "pairs.tsv").write_text(text)
        for end in ends:
            done = None
            while done is None:
                done = run_killed([*command, *end], here, left.pop()) if left else run([*command, *end], here)
                if done is not None and "another command is" in done.stderr:
                    done = None
                if (here / "model" / "config.json").exists():  # then the model must be complete
                    read_config(here / "model")
                    read_parameters(here / "model")
            assert done.returncode == 0, done.stderr
        assert files(here) == expected
        runs += 1
    print(f"{kills} kills in {runs} trainings")


@kills
def test_import(tmp_path: Path, kills: int) -> None:
    command = ["import", str(Path(__file__).parent / "golden" / "marian"), "--to", "ours"]
    (tmp_path / "whole").mkdir()
    complete = 0
    for n, seconds in enumerate(moments(kills, command, tmp_path / "whole")):
        here = tmp_path / str(n)
        here.mkdir()
        run_killed(command, here, seconds)
        again = run(command, here)
        assert again.returncode == 0 or "ours already exists" in again.stderr, again.stderr
        complete += again.returncode
        assert files(here) == files(tmp_path / "whole")
    print(f"{complete} of {kills} were complete")


@kills
def test_serve_files(tmp_path: Path, kills: int) -> None:
    """Kill the server while four clients upload files.

    Each translated file must be complete, and the next server must delete all files, including partial ones.
    """
    folder, draw, complete, parts = tmp_path / "files", random.Random(kills), 0, 0
    fields = {"source": "en", "target": "es", 'file"; filename="a.txt': "hello world\n" * 50}
    body = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    kind = {"Content-Type": "multipart/form-data; boundary=x"}

    def upload(address: str) -> None:
        urlopen(Request(f"{address}translate_file", f"{body}--x--\r\n".encode(), kind), timeout=60).close()

    def client(address: str) -> None:
        with suppress(OSError, HTTPException):
            while True:
                upload(address)

    for _ in range(kills):
        with server("--files", str(folder)) as there:
            upload(there.address)
            clients = [threading.Thread(target=client, args=(there.address,)) for _ in range(4)]
            for one in clients:
                one.start()
            time.sleep(draw.uniform(0, 0.5))
            there.process.kill()
            for one in clients:
                one.join()
        names = os.listdir(folder)
        whole = [name for name in names if not name.startswith(".")]
        assert all((folder / name).read_text() == "hola mundo\n" * 50 for name in whole)
        complete, parts = complete + len(whole), parts + len(names) - len(whole)
        with server("--files", str(folder), "--file-minutes", "0"):
            for _ in range(1200):
                if not os.listdir(folder):
                    break
                time.sleep(0.05)
            assert not os.listdir(folder)
    print(f"after {kills} kills: {complete} complete files, {parts} parts")
    assert complete >= kills
