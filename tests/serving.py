"""Start a server in a separate process, for tests that need sockets, signals, a kill or a browser."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Server(NamedTuple):
    process: subprocess.Popen[str]
    address: str  # with a trailing slash


@contextmanager
def server(*options: str, model: str | Path = "lesson", page: bool = False) -> Iterator[Server]:
    """Run `vidrio serve` on a free port until the `with` block ends."""
    command = [sys.executable, "-m", "vidrio", "serve", "--port", "0", *options]
    command += [] if page else ["--no-page"]
    command += ["--model", str(model)] if model else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            ready = re.fullmatch(r"Vidrio is ready: (http://127\.0\.0\.1:\d+/)\n", line)
            assert ready, line
            yield Server(process, ready[1])
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
