"""What the benchmarks of `vidrio serve` share: a server in a process of its own, clients, and what it takes."""

import http.client
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

LENGTHS = (1, 1, 1, 2, 3, 5, 12)  # sentences of a text
SENTENCES = Path("shared/data/en-es/test/tatoeba-test-v2020-07-28.en")


class Server(NamedTuple):
    process: subprocess.Popen[str]
    host: str
    port: int

    def memory(self) -> float:
        """Megabytes, on Linux."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    def processor_seconds(self) -> float:
        """Of all its threads, on Linux."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def client(self) -> "Client":
        return Client(self.host, self.port)


class Client:
    """One client, who keeps the connection."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=300)

    def ask(self, path: str, fields: dict[str, Any] | None = None) -> tuple[int, Any]:
        """The status and the answer; without fields it is a GET."""
        kind = {"Content-Type": "application/json"} if fields is not None else {}
        self._connection.request(
            "GET" if fields is None else "POST", path, None if fields is None else json.dumps(fields), kind
        )
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


@contextmanager
def server(*options: str, command: Sequence[str] = ("-m", "vidrio", "serve", "--no-page")) -> Iterator[Server]:
    """A server on a free port; it prints its address when it is ready, and is ended with the block."""
    whole = [sys.executable, *command, "--port", "0", *options]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address, "the server did not begin"
            where = urlsplit(address[0])
            yield Server(process, where.hostname or "", where.port or 0)
        finally:
            process.terminate()


def texts(file: Path, count: int, seed: int = 1) -> list[str]:
    """Texts of one to twelve sentences of a file."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    draw = random.Random(seed)
    return [" ".join(draw.sample(lines, draw.choice(LENGTHS))) for _ in range(count)]


def quantile(seconds: Sequence[float], share: float) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))]


def report(**figures: Any) -> None:
    """One line of JSON, for docs/benchmarks.md."""
    print(json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in figures.items()}))


def until(end: float) -> Iterator[int]:
    """0, 1, 2 … until then."""
    number = 0
    while time.perf_counter() < end:
        yield number
        number += 1
