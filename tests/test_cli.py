"""Test the command line as a whole: its commands, its exit codes, and its response to errors and interruptions."""

import importlib
import importlib.util
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from keyword import iskeyword
from pathlib import Path

import pytest

from vidrio import __version__, cli

Run = Callable[..., subprocess.CompletedProcess[str]]

# Runs the real `main` in a separate process, with a command whose action is chosen by the test.
WITH_A_VERB = """
import sys, time, types
import click
from vidrio import cli, errors

@click.command()
def act() -> None:
    {body}

sys.modules["verb_for_a_test"] = types.SimpleNamespace(act=act)
cli.VERBS["act"] = ("verb_for_a_test", "A verb for a test.")
sys.argv = ["vidrio", "act"]
sys.exit(cli.main())
"""


def act(body: str) -> list[str]:
    return [sys.executable, "-c", WITH_A_VERB.format(body=body)]


def run_act(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(act(body), capture_output=True, text=True, timeout=60)


def test_help_lists_every_verb_on_one_line(run_vidrio: Run) -> None:
    done = run_vidrio("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for verb, (_, help_line) in cli.VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(help_line)}$", done.stdout, re.MULTILINE), verb
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_its_module_and_its_help(verb: str, call_vidrio: Run) -> None:
    module, _ = cli.VERBS[verb]
    assert module == f"vidrio.commands.{verb}" + "_" * iskeyword(verb)
    assert importlib.util.find_spec(module), f"{verb} is listed, but there is no {module}"
    done = call_vidrio(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: vidrio {verb} ")
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["transalte", "Hello"], "There is no command 'transalte'. Did you mean 'translate'?"),
        (["¿qué?"], "There is no command '¿qué?'."),
        ([""], "There is no command ''."),
        (["--hlep"], "--hlep"),
        ([], "Commands:"),
    ],
)
def test_a_mistyped_command(arguments: list[str], said: str, call_vidrio: Run) -> None:
    done = call_vidrio(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_vidrio_error_becomes_its_message_and_exit_code_1() -> None:
    done = run_act('raise errors.InputError("this text is empty", found="0 letters", do="give some")')
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "vidrio: this text is empty\n  found: 0 letters\n  do: give some\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full to stand for a full disk")
@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_full_disk_becomes_a_message(lines: int) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            act(f'print("x\\n" * {lines})'), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_traceback(closed: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m vidrio translate -m lesson {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=60)
    assert done.returncode in (0, 1)  # not 120, Python's code when it cannot flush at exit
    assert "Error" not in done.stderr


def test_a_missing_extra_is_named() -> None:
    done = run_act('sys.modules["torch"] = None; import torch')
    assert (done.returncode, done.stdout) == (1, "")
    assert "found: torch is not installed\n  do: in the repository, run: pip" in done.stderr


def test_a_programming_mistake_stays_a_python_error() -> None:
    done = run_act("import no_such_module_anywhere")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    "body",
    [
        '[print("x" * 70) for _ in range(100_000)]',
        'print("x\\n" * 100_000)',
    ],
)
def test_a_closed_pipe_ends_quietly(body: str) -> None:
    process = subprocess.Popen(act(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline().startswith("x")
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait(60) == 0


@pytest.mark.parametrize("at_work", ["", "__import__('threading').Thread(target=time.sleep, args=(600,)).start();"])
def test_ctrl_c_is_130_without_a_traceback_and_waits_for_no_thread(at_work: str) -> None:
    body = f'{at_work} print("ready", flush=True); time.sleep(60)'.strip()
    process = subprocess.Popen(act(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.strip() == "vidrio: interrupted"


def test_main_returns_the_exit_code_and_leaves_python_running(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert cli.main(["no-such-verb"]) == 2
    assert capsys.readouterr().out == f"vidrio, version {__version__}\n"
