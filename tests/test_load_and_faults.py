"""Load, hostility and faults: the benchmarks of the server in small, and what they rest on."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import Message

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import serve_hostile  # noqa: E402
from served import Server, server  # noqa: E402
from vidrio.serve.app import create_app, listening  # noqa: E402
from vidrio.serve.settings import Settings  # noqa: E402

SENTENCES = ["The house is red.", "I bought a new car.", "Where is my book?", "We have been waiting for you."] * 5


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    files = tmp_path_factory.mktemp("files")
    with server("--no-page", "--model", "en-es", "--metrics", "--files", str(files)) as there:
        yield there


def test_hostile_requests_are_refused_and_nothing_else_suffers(running: Server) -> None:
    statuses = serve_hostile.send(running, range(300))
    assert statuses.total() == 300
    assert {status for status in statuses if status.startswith("5")} <= {"503"}
    assert statuses["400"] > 50
    assert statuses["413"] > 0
    assert serve_hostile.ask(running, serve_hostile.request("/health", "", b"", method="GET")) == "200"


def test_a_body_that_comes_too_slowly_is_refused() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"{", "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/translate", "method": "POST", "query_string": b""}
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    app = create_app("lesson", Settings(page=False, body_seconds=0.1))
    asyncio.run(app({**scope, "headers": headers}, receive, send))
    assert sent[0]["status"] == 408


def test_the_end_of_an_answer_does_not_wait_for_its_beginning_to_be_confirmed() -> None:
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("serve_load.py", "--seconds", "8", "--texts", "20"),
        ("serve_hostile.py", "--requests", "2000"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_benchmark_runs(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Each of them checks what it is answered, and fails if that is wrong."""
    name, *rest = arguments
    if name != "serve_hostile.py":
        (tmp_path / "sentences").write_text("\n".join(SENTENCES), encoding="utf-8")
        rest += ["--file", str(tmp_path / "sentences")]
    command = [sys.executable, str(BENCHMARKS / name), *rest]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
