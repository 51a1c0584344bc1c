"""Test the server under load, with hostile clients and with faults, and the tools of the benchmarks."""

import asyncio
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import Response
from starlette.types import Message, Receive, Scope, Send
from uvicorn.server import ServerState

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare_outputs  # noqa: E402
import serve_hostile  # noqa: E402
from served import Server, server  # noqa: E402
from vidrio.serve import connections, guards  # noqa: E402
from vidrio.serve import listener as listener_module  # noqa: E402
from vidrio.serve.app import configured, create_app, once_a_minute  # noqa: E402
from vidrio.serve.listener import Listener, listening  # noqa: E402
from vidrio.serve.settings import Settings  # noqa: E402
from waiting import wait_for  # noqa: E402


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


def posted(settings: Settings, *received: Message) -> list[Message]:
    """Return what the app sends to a client that sends these messages and then nothing."""
    messages, sent = iter(received), list[Message]()

    async def receive() -> Message:
        if (message := next(messages, None)) is None:
            await asyncio.sleep(60)
        return message or {}

    async def send(message: Message) -> None:
        sent.append(message | {"threads": [thread.name for thread in threading.enumerate()]})

    scope = {"type": "http", "path": "/translate", "method": "POST", "query_string": b""}
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    asyncio.run(create_app("lesson", settings)({**scope, "headers": headers}, receive, send))
    return sent


def part(body: bytes, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_that_comes_too_slowly_is_refused() -> None:
    assert posted(Settings(page=False, body_seconds=0.1), *[part(b"{")] * 3)[0]["status"] == 408


def test_a_refusal_starts_no_thread() -> None:
    sent = posted(Settings(page=False), part(b"[]", more=False))
    assert sent[0]["status"] == 400
    assert not [name for name in sent[0]["threads"] if "AnyIO" in name]


@pytest.mark.parametrize("body", [part(b"{"), part(b'{"q": "hello", "source": "en", "target": "es"}', more=False)])
def test_who_has_left_is_not_answered(body: Message) -> None:
    assert not posted(Settings(page=False), body, {"type": "http.disconnect"})


# --- connections ------------------------------------------------------------------------------------------------------

LARGE = 30 << 20  # bytes
GET = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Run a server in this process, with short timeouts and at most eight connections. Yield its address."""
    monkeypatch.setattr(listener_module, "SILENT", 1)
    for module in (connections, listener_module):
        monkeypatch.setattr(module, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(connections, "SEND_SECONDS", 0.5)
    settings = Settings(connections=8)
    with listening("127.0.0.1", 0, 8) as listener:
        app = create_app("lesson", settings)
        app.add_api_route("/large", lambda: Response(bytes(LARGE)))
        there = uvicorn.Server(configured(app, settings))
        thread = threading.Thread(target=there.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()
        there.should_exit = True
        thread.join(30)


def ended(client: socket.socket, seconds: float = 60) -> bool:
    """Return whether the server closes the connection in time. Its output is discarded."""
    client.settimeout(seconds)
    try:
        while client.recv(65_536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


@pytest.mark.parametrize("sent", [b"", b"GET /health HT", GET + GET[:20]])
def test_half_a_head_and_silence_are_not_waited_for(short: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(short) as client:
        client.sendall(sent)
        assert ended(client)


def test_a_byte_a_time_does_not_keep_a_connection_open(short: tuple[str, int]) -> None:
    with socket.create_connection(short) as client:
        deadline = time.monotonic() + 60
        while not ended(client, 0.05):
            assert time.monotonic() < deadline
            with suppress(OSError):
                client.sendall(b"G")


def test_there_is_room_for_a_request_however_many_send_none(short: tuple[str, int]) -> None:
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection(short)).sendall(GET[:20])
            with socket.create_connection(short, timeout=60) as client:
                client.sendall(GET)
                assert client.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("most", [64 << 20, 1 << 20])
def test_an_answer_that_is_not_taken_is_given_up(
    short: tuple[str, int], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The server gives up after a while, or at once if too many bytes are unsent."""
    monkeypatch.setattr(connections, "SLOWEST", 10**9)
    monkeypatch.setattr(connections, "MAX_UNSENT", most)
    assert any(taken_after(seconds, short) < LARGE for seconds in (1, 4, 16))  # on a busy machine, the server is late


def taken_after(seconds: float, server: tuple[str, int]) -> int:
    """Return how many bytes of a large answer a client still receives if it waits before reading."""
    with socket.create_connection(server, timeout=60) as client:
        client.sendall(GET.replace(b"/health", b"/large"))
        assert client.recv(12) == b"HTTP/1.1 200"
        time.sleep(seconds)
        taken = 0
        with suppress(ConnectionError):
            while part := client.recv(1 << 20):
                taken += len(part)
        return taken


def test_one_of_several_requests_at_once_is_answered_and_the_connection_closed(short: tuple[str, int]) -> None:
    body = b'{"q": "hello world", "source": "en", "target": "es"}'
    head = (
        b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    )
    with socket.create_connection(short, timeout=60) as client:
        client.sendall((head % len(body) + body) * 50)
        found = b""
        while part := client.recv(65_536):
            found += part
    assert found.count(b"HTTP/1.1 200") == 1
    assert found.endswith(b'{"translatedText": "hola mundo"}')


def test_few_open_files_are_enough_and_the_log_stays_short(tmp_path: Path) -> None:
    options = ("--no-page", "--model", "lesson")
    with ExitStack() as stack, (tmp_path / "log").open("wb") as log, server(*options, stderr=log, files=80) as there:
        for _ in range(200):
            stack.enter_context(socket.create_connection((there.host, there.port))).sendall(GET[:20])
        for _ in range(5):
            assert serve_hostile.ask(there, GET) == "200"
    assert (tmp_path / "log").stat().st_size < 1000


def test_the_same_trouble_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    report = once_a_minute(lambda: now)
    loop = asyncio.new_event_loop()
    for second in range(120):
        now = float(second)
        for _ in range(50):
            report(loop, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many")})
    loop.close()
    assert len(caplog.records) == 2


def test_bodies_that_arrive_are_bounded_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "LARGEST_BODIES", 5000)
    app = create_app("lesson", Settings(page=False))
    statuses = list[int]()

    async def upload(number: int) -> None:
        parts = iter([b"{", *[b" " * 1000] * 3])

        async def receive() -> Message:
            if (part := next(parts, None)) is None:
                await asyncio.sleep(2 if number < 9 else 0)
                return {"type": "http.request", "body": b"}", "more_body": False}
            return {"type": "http.request", "body": part, "more_body": True}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        scope = {"type": "http", "path": "/translate", "method": "POST", "query_string": b""}
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        await app({**scope, "headers": headers}, receive, send)

    async def all_of_them() -> None:
        await asyncio.gather(*map(upload, range(10)))

    asyncio.run(all_of_them())
    assert statuses.count(408) == 9, "those that began first are given up"
    assert statuses.count(400) == 1, "and there is room for the last one"


def next_of(listener: Listener) -> tuple[socket.socket, Any]:
    """Return the next connection once its request has arrived."""
    accepted = list[tuple[socket.socket, Any]]()

    def accepts() -> bool:
        with suppress(BlockingIOError):
            accepted.append(listener.accept())
        return bool(accepted)

    wait_for(accepts)
    return accepted[0]


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="Linux only")
def test_a_connection_is_accepted_once_the_head_of_its_request_has_arrived() -> None:
    async def accepting() -> None:
        with listening("127.0.0.1", 0, 8) as listener, socket.create_connection(listener.getsockname()) as client:
            client.sendall(GET[:20])

            def arrives() -> bool:
                with suppress(BlockingIOError):
                    assert not listener.accept(), "half a head"
                return bool(listener.arriving)

            wait_for(arrives)
            client.sendall(GET[20:])
            accepted, address = next_of(listener)
            with accepted:
                assert (address, accepted.recv(1000)) == (client.getsockname(), GET)
            assert not listener.arriving

    asyncio.run(accepting())


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="Linux only")
def test_of_many_connections_without_a_request_the_oldest_are_closed() -> None:
    async def accepting() -> None:
        with listening("127.0.0.1", 0, 8) as listener, ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(12)]
            for client in clients:
                client.sendall(GET[:20])
                name = client.getsockname()

                def arrives(name: object = name) -> bool:
                    with suppress(BlockingIOError):
                        listener.accept()
                    return name in [address for _, address, _ in listener.arriving.values()]

                wait_for(arrives)
            assert [address for _, address, _ in listener.arriving.values()] == [
                one.getsockname() for one in clients[4:]
            ]
            assert all(ended(client) for client in clients[:4])

    asyncio.run(accepting())


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="Linux only")
def test_short_requests_overtake_long_ones() -> None:
    long = b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\n%b\r\n"

    async def accepting() -> None:
        with listening("127.0.0.1", 0, 8) as listener, ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(5)]
            requests = [long % b"content-length:9000\r\n", long % b"Transfer-Encoding: chunked\r\n", GET]
            for client, request in zip(clients, [*requests, long % b"Content-Length: 9000\r\n", GET], strict=True):
                client.sendall(request)
            names = [client.getsockname() for client in clients]
            accepted = dict[int, float]()
            end = time.monotonic() + 60
            while len(accepted) < 5 and time.monotonic() < end:
                with suppress(BlockingIOError):
                    client, address = listener.accept()
                    client.close()
                    accepted[names.index(address)] = time.monotonic()
                await asyncio.sleep(0)
            assert list(accepted) == [2, 4, 0, 1, 3]
            assert accepted[3] - accepted[1] >= 0.9 * listener_module.LARGE_BODY / listener_module.RATE
            assert not listener.arriving
            with pytest.raises(BlockingIOError):
                listener.accept()

    asyncio.run(accepting())


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="Linux only")
def test_long_requests_that_wait_keep_the_listener_readable() -> None:
    async def accepting() -> None:
        with listening("127.0.0.1", 0, 8) as listener, socket.create_connection(listener.getsockname()) as client:
            client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9000\r\n\r\n")
            readable = select.poll()
            readable.register(listener.fileno(), select.POLLIN)
            assert readable.poll(5000)
            with next_of(listener)[0]:
                with suppress(BlockingIOError):
                    listener.accept()
                assert not readable.poll(0)

    asyncio.run(accepting())


def test_the_end_of_an_answer_does_not_wait_for_its_beginning_to_be_confirmed() -> None:
    with listening("127.0.0.1", 0, 8) as listener, socket.create_connection(listener.getsockname()) as client:
        client.sendall(GET)
        accepted, _ = next_of(listener)
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_clients_who_left_are_skipped_before_they_are_accepted() -> None:
    with listening("127.0.0.1", 0, 8) as listener:
        for _ in range(5):
            with socket.create_connection(listener.getsockname()) as left:
                left.sendall(GET)
        with socket.create_connection(listener.getsockname()) as stays:
            stays.sendall(GET)
            accepted, address = next_of(listener)
            with accepted:
                assert address == stays.getsockname()


@pytest.mark.skipif(not hasattr(socket, "TCP_DEFER_ACCEPT"), reason="Linux only")
def test_clients_who_send_nothing_are_not_accepted() -> None:
    with listening("127.0.0.1", 0, 8) as listener, ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        sends = stack.enter_context(socket.create_connection(listener.getsockname()))
        sends.sendall(GET)
        accepted, address = next_of(listener)
        with accepted:
            assert address == sends.getsockname()


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="Linux only")
@pytest.mark.parametrize("leaves", [True, False])
def test_a_request_whose_client_has_left_is_not_read(leaves: bool) -> None:
    asked = list[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])

    async def serving_one() -> None:
        config = uvicorn.Config(app, log_level="critical")
        config.load()

        def protocol() -> asyncio.Protocol:
            given = {"config": config, "server_state": ServerState(), "app_state": {}}
            return connections.Connection(most=8, idle=({}, {}), **given)

        with listening("127.0.0.1", 0, 8) as listener, socket.create_connection(listener.getsockname()) as client:
            client.sendall(GET)
            accepted, _ = next_of(listener)
            if leaves:
                client.close()
            accepted.setblocking(False)
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(protocol, accepted)
            for _ in range(2 if leaves else 600):
                await asyncio.sleep(0 if asked else 0.1)
            transport.abort()

    asyncio.run(serving_one())
    assert asked == [] if leaves else asked == ["/health"]


def test_asyncio_accepts_one_connection_at_a_time_and_many_may_wait() -> None:
    with listening("127.0.0.1", 0, 8) as listener, ExitStack() as stack:
        listener.listen(configured(create_app("lesson"), Settings()).backlog)
        for _ in range(200):
            stack.enter_context(socket.create_connection(listener.getsockname(), timeout=10))


def test_every_command_line_of_the_comparison_of_outputs_can_be_made() -> None:
    runs = list(compare_outputs.runs())
    assert {run.arguments[0] for run in runs} == {"translate", "look", "why", "check"}
    assert len(runs) > 100
