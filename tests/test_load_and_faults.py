"""Load, hostility and faults: the benchmarks of the server in small, and what they rest on."""

import asyncio
import socket
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


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    files = tmp_path_factory.mktemp("files")
    with server("--no-page", "--model", "en-es", "--files", str(files)) as there:
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
