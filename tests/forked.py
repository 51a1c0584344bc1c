"""Start `vidrio` quickly in a process of its own, forked from one that has already imported the libraries and the parts
of Vidrio that most commands need. Each command has its own streams, folder, environment and exit code.

    run_vidrio("translate", "Hello world")           in tests, like subprocess.run
    run_python("script.py", "an argument")           runs a script instead
    python fork_client.py SOCKET vidrio translate …  in a shell, with the shell's streams

Each test worker starts its forking process on first use, and the process ends with the worker. Tests of startup itself
(signals, memory, threads, imports) start Python instead.
"""

import atexit
import gc
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from fork_client import ask

CLIENT = Path(__file__).parent / "fork_client.py"
LIBRARIES = ("click", "numpy", "safetensors.numpy", "tokenizers", "sacrebleu", "torch")
ROOMS = (
    "cli",
    "commands.run_request",
    "translate.translator",
    "look.translated",
    "look.overview",
    "look.quantities",
    "look.changed",
)


def run_vidrio(
    *arguments: str,
    stdin: str | bytes = "",
    cwd: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
    text: bool = True,
) -> "subprocess.CompletedProcess[Any]":
    """Run a command with additional environment variables. Its output is text, or bytes if `text` is false."""
    return _run("vidrio", arguments, stdin, cwd, environment, timeout, text)


def run_python(
    *arguments: str,
    cwd: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> "subprocess.CompletedProcess[str]":
    """Run a script in the same way."""
    return _run("python", arguments, "", cwd, environment, timeout, True)


def _run(
    program: str, arguments: tuple[str, ...], stdin: str | bytes, cwd: str | Path | None,
    environment: Mapping[str, str] | None, timeout: float, text: bool,
) -> "subprocess.CompletedProcess[Any]":  # fmt: skip
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode() if isinstance(stdin, str) else stdin)
        given.seek(0)
        request = [program, list(arguments), str(cwd or Path.cwd()), {**os.environ, **(environment or {})}]
        try:
            code = ask(socket_path(), request, [file.fileno() for file in (given, out, err)], timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired(arguments, timeout) from None
        printed: list[Any] = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode() if text else file.read())
    return subprocess.CompletedProcess(arguments, code, *printed)


@cache
def socket_path() -> str:
    """Start the forking process, and return the path of its socket."""
    path = f"{tempfile.mkdtemp(prefix='vidrio-')}/socket"
    process = subprocess.Popen([sys.executable, __file__, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(process.communicate, timeout=60)  # it ends when its stdin closes, even if this process is killed
    return path


# --- the forking process ----------------------------------------------------------------------------------------------


def serve(path: str) -> None:
    for library in (*LIBRARIES, *(f"vidrio.{room}" for room in ROOMS)):
        with suppress(ModuleNotFoundError):  # not part of a light installation
            __import__(library)
    from vidrio.glass.declaration import stages_of
    from vidrio.look.run import open_model
    from vidrio.model.find import packaged

    for name in packaged():
        stages_of(open_model(name).machine)  # cached, so commands don't recompute it
    gc.freeze()  # keeps garbage collectors from writing to shared memory pages
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for the processes that answer
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listening, 0], [], [])
            if 0 in ready:
                os.unlink(path)
                os.rmdir(os.path.dirname(path))
                return
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                answer(connection)
                os._exit(0)
            connection.close()


def answer(connection: socket.socket) -> None:
    """Run a command, and kill it if the client disconnects."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    request = b""
    while len(request) < int.from_bytes(length, "little"):
        part = connection.recv(1 << 16)
        if not part:
            return  # the client has ended
        request += part
    ended, held = os.pipe()  # the command keeps `held` open until it ends
    child = os.fork()
    if child == 0:
        connection.close()
        run(*marshal.loads(request), streams)
    os.close(held)
    ready, _, _ = select.select([connection, ended], [], [])
    if connection in ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if connection not in ready:
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def run(program: str, arguments: list[str], cwd: str, environment: dict[str, str], streams: list[int]) -> None:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for entry in reversed(environment.get("PYTHONPATH", "").split(os.pathsep)):
        if entry and entry not in sys.path:
            sys.path.insert(0, entry)
    code: Any = 1
    try:
        code = run_script(arguments) if program == "python" else run_command(arguments)
        sys.stdout.flush()
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        ended_as_python_does()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # a command may have closed or replaced it
                stream.flush()
        os._exit(code if isinstance(code, int) else 1 if code else 0)


def run_command(arguments: list[str]) -> int:
    sys.argv = ["vidrio", *arguments]
    from vidrio.cli import main

    return main()


def run_script(arguments: list[str]) -> int:
    import runpy

    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


def ended_as_python_does() -> None:
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


if __name__ == "__main__":
    serve(sys.argv[1])
