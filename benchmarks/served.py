"""Helpers for the benchmarks of `vidrio serve`: a server in a separate process, clients, and measurements."""

import http.client
import json
import random
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from shared import memory

LENGTHS = (1, 1, 1, 2, 3, 5, 12)  # sentences per text


class Server(NamedTuple):
    process: subprocess.Popen[str]
    host: str
    port: int

    def memory(self) -> float:
        """Return the current memory use in megabytes, on Linux."""
        return memory("VmRSS", self.process.pid) / 2**20

    def processor_seconds(self) -> float:
        """Return the CPU time of all threads in seconds, on Linux."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def client(self) -> "Client":
        return Client(self.host, self.port)


class Client:
    """A client that keeps its connection open."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=300)

    def ask(self, path: str, fields: dict[str, Any] | None = None) -> tuple[int, Any]:
        """Send a POST request, or a GET request if there are no fields, and return the status and the response."""
        method, body = ("GET", None) if fields is None else ("POST", json.dumps(fields))
        self._connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = self._connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if answer.headers.get_content_subtype() == "json" else data


@contextmanager
def server(*options: str, stderr: IO[bytes] | None = None, files: int | None = None) -> Iterator[Server]:
    """Run `vidrio serve` within a block, by default on a free port, optionally with a limit on open files."""

    def limit() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    port = () if "--port" in options else ("--port", "0")
    command = [sys.executable, "-m", "vidrio", "serve", *port, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, preexec_fn=limit) as process:
        try:
            assert process.stdout
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address, "the server did not start"
            where = urlsplit(address[0])
            yield Server(process, where.hostname or "", where.port or 0)
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


@contextmanager
def peer(*command: str, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """Run another server, with the port as the last argument of its command, and wait until it lists its languages."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = (*command, str(port))
    with subprocess.Popen(command, env=environment, text=True, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in until(time.perf_counter() + 120):
                with suppress(OSError):
                    Client("127.0.0.1", port).ask("/languages")
                    break
                time.sleep(0.2)
            yield Server(process, "127.0.0.1", port)
        finally:
            process.terminate()


def texts(file: Path, count: int, seed: int = 1, lengths: Sequence[int] = LENGTHS) -> list[str]:
    """Combine randomly chosen sentences from a file into texts."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    draw = random.Random(seed)
    return [" ".join(draw.sample(lines, draw.choice(lengths))) for _ in range(count)]


def quantile(seconds: Sequence[float], share: float) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))]


def report(**figures: Any) -> None:
    """Print the figures as one line of JSON, for benchmarks/README.md."""
    print(json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in figures.items()}))


def until(end: float) -> Iterator[int]:
    """Yield 0, 1, 2, … until the given time."""
    number = 0
    while time.perf_counter() < end:
        yield number
        number += 1
