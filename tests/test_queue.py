"""Many clients at once: turns, bounds; who leaves is forgotten, who is slow holds nobody up."""

import asyncio
import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from serving import Server, server
from vidrio.documents.formats import PIECE, pieces
from vidrio.serve.requests import Refusal
from vidrio.serve.service import Queue
from vidrio.translate.translator import Translator


def run(work: Callable[[Queue], Any], *, threads: int = 2, most: int = 100_000) -> Any:
    async def main() -> Any:
        return await work(Queue(threads=threads, most=most))

    return asyncio.run(main())


def held(go: threading.Event, texts: list[str]) -> Callable[[Callable[[], bool]], list[str]]:
    """Work that waits until it may go on, or nobody wants it."""

    def work(stopped: Callable[[], bool]) -> list[str]:
        while not go.wait(0.01):
            if stopped():
                raise CancelledError
        return [text.upper() for text in texts]

    return work


def test_a_full_queue_refuses_and_says_when_to_come_again() -> None:
    go = threading.Event()

    async def ask(queue: Queue) -> Refusal:
        tasks = [asyncio.create_task(queue.run(["a" * 900], held(go, ["a"]))) for _ in range(2)]
        await asyncio.sleep(0)
        assert (queue.waiting, queue.is_full) == (1800, True)
        with pytest.raises(Refusal) as refused:
            await queue.run(["b" * 900], held(go, ["b"]))
        go.set()
        assert await asyncio.gather(*tasks) == [["A"], ["A"]]
        assert (queue.waiting, queue.is_full) == (0, False)
        assert await queue.run(["c" * 9000], held(go, ["c"])) == ["C"]  # alone, however long it is
        return refused.value

    refused = run(ask, most=1800)
    assert refused.status_code == 503
    assert int((refused.headers or {})["Retry-After"]) > 0


def test_who_leaves_ends_the_work_and_what_waited_is_not_begun() -> None:
    go, begun = threading.Event(), list[str]()

    def work(name: str) -> Callable[[Callable[[], bool]], list[str]]:
        inner = held(go, [name])
        return lambda stopped: (begun.append(name), inner(stopped))[1]

    async def ask(queue: Queue) -> None:
        first, never = (asyncio.create_task(queue.run([name], work(name))) for name in ("first", "never"))
        await asyncio.sleep(0.05)
        never.cancel()
        first.cancel()  # though it is at work: its thread is free again
        go_on = asyncio.create_task(queue.run(["stays"], lambda stopped: begun.append("stays")))
        await asyncio.wait_for(go_on, 10)
        assert queue.waiting == 0

    run(ask, threads=1)
    assert begun == ["first", "stays"]


def test_a_long_text_is_cut_at_empty_lines_and_comes_out_the_same() -> None:
    paragraph = "The house is red. We live in it, and it is old.\nTom lives there, too.\n \n"
    text = "\n\n" + paragraph * 60 + "x" * 2 * PIECE + "\r\n\r\n\n" + paragraph * 30
    cut = pieces(text)
    assert "".join(cut) == text
    assert len(cut) > 5
    assert all(len(piece) <= PIECE + 2 * PIECE + len(paragraph) + 10 for piece in cut)
    assert pieces("") == [""]
    translator = Translator.load("lesson")
    whole = "hello world\n\ngood world\n \nhello\n" * 60
    assert "".join(one.text for one in translator.translate(pieces(whole))) == translator.translate(whole).text


# --- a server of its own ----------------------------------------------------------------------------------------------

SENTENCES = [
    "The house is red.",
    "I bought a new car.",
    "Where is my book?",
    "Good morning.",
    "We have been waiting for you since yesterday, and nobody told us why.",
]


HEAD = "POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def post(address: str, text: str, timeout: float = 60) -> tuple[int, Any]:
    where = urlsplit(address)
    body = json.dumps({"q": text, "source": "en", "target": "es"})
    with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=timeout)) as connection:
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def get(address: str) -> str:
    with urlopen(address, timeout=20) as answer:
        return str(answer.read().decode())


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with server(model="en-es") as ready:
        yield ready


def test_many_clients_get_what_each_would_get_alone(running: Server) -> None:
    texts = [f"{SENTENCES[n % 5]} {SENTENCES[n % 3]} Number {n}." for n in range(60)]
    alone = [translation.text for translation in Translator.load().translate(texts)]
    with ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(lambda text: post(running.address, text), texts))
    assert [(status, told["translatedText"]) for status, told in answers] == [(200, text) for text in alone]


def test_who_is_slow_or_leaves_holds_nobody_up(running: Server) -> None:
    where = urlsplit(running.address)
    place = (where.hostname or "", where.port or 0)
    slow = [socket.create_connection(place) for _ in range(50)]
    for client in slow:
        client.sendall(f"{HEAD}Content-Length: 1000\r\n\r\n{{".encode())
    book = "\n\n".join(f"{SENTENCES[n % 5]} That was sentence {n}." for n in range(2000))
    body = json.dumps({"q": book, "source": "en", "target": "es"})
    leaves = socket.create_connection(place)
    leaves.sendall(f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    time.sleep(0.3)
    began = time.monotonic()
    assert post(running.address, "The house is red.")[1] == {"translatedText": "La casa es roja."}
    assert json.loads(get(f"{running.address}health"))["waiting"], "the book is still at work: clients take turns"
    leaves.close()
    for _ in range(100):
        waiting = json.loads(get(f"{running.address}health"))["waiting"]
        if not waiting:
            break
        time.sleep(0.1)
    assert waiting == 0
    assert time.monotonic() - began < 20
    for client in slow:
        client.close()


def test_what_has_been_begun_is_finished() -> None:
    with server(model="en-es") as ready, ThreadPoolExecutor(1) as clients:
        assert post(ready.address, "Good morning.")[0] == 200
        answer = clients.submit(post, ready.address, "\n\n".join(SENTENCES * 20))
        while not (answer.done() or json.loads(get(f"{ready.address}health"))["waiting"]):
            time.sleep(0.01)
        ready.process.send_signal(signal.SIGTERM)
        status, told = answer.result()
        assert status == 200
        assert told["translatedText"].count("La casa es roja.") == 20
        ready.process.wait(30)


def test_the_log_has_no_text(capfd: pytest.CaptureFixture[str]) -> None:
    with server("--log") as ready:
        post(ready.address, "hello world")
    said = "".join(capfd.readouterr())
    assert "POST /translate" in said
    assert "hello world" not in said
