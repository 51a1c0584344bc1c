"""Run the examples in the help text of every command."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from vidrio import cli
from vidrio.model.find import LESSON, find

Call = Callable[..., subprocess.CompletedProcess[str]]

# The files that the examples read.
FILES = {
    "english.txt": "Hello world\nGood morning\n",
    "big.txt": "Hello world\n" * 30,
    "page.html": "<p>Hello</p>",
    "keys.txt": "alice s3cret 60\n",
}


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the command and all of its subcommands, each with its full name."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, f"{path} {name}")


def examples(command: click.Command) -> list[str]:
    """Return the example commands in the help text. An example ends at two spaces or at the end of the line."""
    text = "\n".join([command.help or "", command.epilog or ""])
    return [re.split(r" {2,}", match)[0] for match in re.findall(r"^ *(vidrio .*)$", text, re.MULTILINE)]


EXAMPLES = [(name, line) for name, command in commands(cli.vidrio, "vidrio") for line in examples(command)]


def test_the_examples_are_found() -> None:
    assert ("vidrio lesson", "vidrio lesson nan all --code") in EXAMPLES
    assert ("vidrio look", 'vidrio look "Hello world" --at enc.0') in EXAMPLES
    assert ("vidrio translate", "vidrio translate -i big.txt -o big.es.txt") in EXAMPLES
    assert len(EXAMPLES) >= 20
    assert not [line for name, line in EXAMPLES if f"{line} ".split(f"{name} ")[0]], "an example of another command"


@pytest.mark.parametrize("line", [line for _, line in EXAMPLES])
def test_an_example_does_what_it_promises(line: str, folder: Path, call_vidrio: Call) -> None:
    os.chdir(folder)
    if line.startswith("vidrio serve"):
        assert_serves(shlex.split(line)[1:])
        return
    if set(line) & set("<>|;&"):
        vidrio = f'vidrio() {{ {shlex.quote(sys.executable)} -m vidrio "$@"; }}'
        done = subprocess.run(["sh", "-c", f"{vidrio}\n{line}"], capture_output=True, text=True, timeout=120)
    else:
        done = call_vidrio(*shlex.split(line)[1:])
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr


def assert_serves(arguments: list[str]) -> None:
    """Check that the server prints its address when it is ready and runs until Ctrl-C.

    The server uses any free port because the default one may be taken.
    """
    command = [sys.executable, "-m", "vidrio", *arguments, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"BROWSER": "true"}
    ) as process:
        assert process.stdout
        told = []
        for text in process.stdout:
            told.append(text)
            if "http://" in text:
                process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130), told
    assert "http://127.0.0.1:" in "".join(told)
    assert "Traceback" not in "".join(told)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder where the examples run. No example reads what another one wrote."""
    folder = tmp_path_factory.mktemp("examples")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copytree(find(LESSON), folder / "my-model")
    return folder
