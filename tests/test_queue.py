"""Test the queue with many clients: turns, limits, clients that disconnect, and slow clients."""

import asyncio
import http.client
import json
import random
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
from vidrio.documents import formats
from vidrio.documents.formats import pieces
from vidrio.serve.queue import MAX_REQUESTS, PIECE, Queue, Steps, in_one_step
from vidrio.serve.requests import Refusal
from vidrio.serve.service import WINDOW, Slice, groups, sliced
from vidrio.translate.translator import Translator
from waiting import wait_for


def run(work: Callable[[Queue], Any], *, threads: int = 2, most: int = 100_000) -> Any:
    async def main() -> Any:
        return await work(Queue(threads=threads, most=most))

    return asyncio.run(main())


def held(go: threading.Event, result: str) -> Callable[[Callable[[], bool]], str]:
    """Return work that blocks until `go` is set or its result is no longer wanted."""

    def work(stopped: Callable[[], bool]) -> str:
        while not go.wait(0.01):
            if stopped():
                raise CancelledError
        return result

    return work


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def ask(queue: Queue, characters: int, work: Callable[[Callable[[], bool]], Any]) -> Any:
    with queue.admitted(characters) as lane:
        return await lane.run(lambda stopped: in_one_step(lambda: work(stopped)))


def test_a_full_queue_refuses_and_says_when_to_come_again() -> None:
    go = threading.Event()

    async def asking(queue: Queue) -> Refusal:
        tasks = [asyncio.create_task(ask(queue, 900, held(go, "a"))) for _ in range(2)]
        await asyncio.sleep(0)
        assert (queue.waiting, queue.is_full) == (1800, True)
        with pytest.raises(Refusal) as refused:
            await ask(queue, 900, held(go, "b"))
        go.set()
        assert await asyncio.gather(*tasks) == ["a", "a"]
        assert (queue.waiting, queue.is_full) == (0, False)
        assert await ask(queue, 9000, held(go, "c")) == "c"  # an empty queue accepts any length
        return refused.value

    refused = run(asking, most=1800)
    assert refused.status_code == 503
    assert int((refused.headers or {})["Retry-After"]) > 0


def test_requests_are_bounded_in_number_however_short_they_are() -> None:
    go = threading.Event()

    async def asking(queue: Queue) -> None:
        tasks = [asyncio.create_task(ask(queue, 0, held(go, ""))) for _ in range(MAX_REQUESTS)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal):
            await ask(queue, 0, held(go, ""))
        go.set()
        await asyncio.gather(*tasks)

    run(asking)


def test_who_leaves_ends_the_work_and_what_waited_is_not_begun() -> None:
    go, begun = threading.Event(), list[str]()

    def work(name: str) -> Callable[[Callable[[], bool]], str]:
        inner = held(go, name)
        return lambda stopped: (begun.append(name), inner(stopped))[1]

    async def asking(queue: Queue) -> None:
        first, never = (asyncio.create_task(ask(queue, 1, work(name))) for name in ("first", "never"))
        await until(lambda: begun == ["first"])
        never.cancel()
        first.cancel()  # already running; cancelling it frees its thread
        await asyncio.wait_for(ask(queue, 1, lambda stopped: begun.append("stays")), 60)
        assert (queue.waiting, queue.requests) == (0, 0)

    run(asking, threads=1)
    assert begun == ["first", "stays"]


def test_a_thread_is_free_when_its_work_has_ended_and_not_when_the_client_leaves() -> None:
    go, at_once, most = threading.Event(), [0], [0]

    def deaf(stopped: Callable[[], bool]) -> None:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        go.wait(60)
        at_once[0] -= 1

    async def asking(queue: Queue) -> None:
        tasks = [asyncio.create_task(ask(queue, 1, deaf)) for _ in range(30)]
        await until(lambda: at_once[0] == 2)
        for task in tasks:
            task.cancel()
        last = asyncio.create_task(ask(queue, 1, deaf))
        await asyncio.sleep(0.05)
        assert at_once[0] == 2
        go.set()
        await last

    run(asking)
    assert most[0] == 2


def test_no_turn_is_lost_when_clients_leave_at_any_moment() -> None:
    async def asking(queue: Queue) -> None:
        draw = random.Random(1)
        tasks = [asyncio.create_task(ask(queue, 1, lambda stopped: time.sleep(0.001))) for _ in range(200)]
        while not all(task.done() for task in tasks):
            for task in draw.sample(tasks, 5):
                task.cancel()
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(one is None or isinstance(one, asyncio.CancelledError) for one in outcomes)
        assert await asyncio.gather(*(ask(queue, 1, lambda stopped: "done") for _ in range(4))) == ["done"] * 4

    run(asking)


def test_a_sentence_does_not_wait_for_a_book() -> None:
    order, go = list[str](), threading.Event()

    async def asking(queue: Queue) -> None:
        def steps(name: str, count: int) -> Steps[None]:
            for _ in range(count):
                order.append(name)
                yield PIECE
                go.wait(60)

        async def client(name: str, count: int) -> None:
            await queue.long.run(lambda stopped: steps(name, count))

        books = [asyncio.create_task(client(name, 9)) for name in "ab"]
        await until(lambda: bool(order))
        sentence = asyncio.create_task(client("sentence", 1))
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(sentence, *books)

    run(asking, threads=1)
    assert order.index("sentence") < 9
    assert sorted(order) == ["a"] * 9 + ["b"] * 9 + ["sentence"]


def test_the_smallest_of_those_that_wait_begins() -> None:
    order = list[int]()

    async def asking(queue: Queue) -> None:
        def client(size: int) -> Any:
            return queue.short.run(lambda stopped: in_one_step(lambda: (time.sleep(0.05), order.append(size))), size)

        await asyncio.gather(*map(client, (500, 400, 90, 300, 10)))

    run(asking, threads=1)
    assert order == [500, 10, 90, 300, 400]


def test_texts_are_cut_between_sentences_and_come_out_the_same() -> None:
    translator = Translator.load("lesson")
    long = "The house is red. We live in it, and it is old! Where is Mr. Smith? He said: `a. b. c`. " * 20
    protected = f"{long[: WINDOW // 2 - 50]} <!-- {long[:900]} --> {long}"
    for text in (
        long,
        protected,
        long.replace("! ", "!\n"),
        "hello world\n\ngood world\n \nhello\n" * 60,
        "",
        " \n",
        "x" * 3000,
    ):
        cut = list(sliced([text, text], "en", lambda: False))
        for number in (0, 1):
            mine = [one for one in cut if one.number == number]
            assert "".join(one.text for one in mine) == text
            assert all(text.startswith(one.text, one.start) for one in mine)
            assert not [one for one in mine if "`a." in one.text and "c`" not in one.text]
            assert not [one for one in mine if "<!--" in one.text and "-->" not in one.text]
            together = "".join(one.text for one in translator.translate([one.text for one in mine]))
            assert together == translator.translate(text).text
    assert max(len(one.text) for one in sliced([long], "en", lambda: False)) < 3 * PIECE
    sizes = [sum(len(one.text) for one in group) for group in groups(list(sliced([long] * 9, "en", lambda: False)))]
    assert max(sizes) < 3 * PIECE


def test_a_long_paragraph_is_cut_as_it_is_translated_and_no_further_once_the_client_leaves() -> None:
    text, taken = "The house is red. We live in it, and it is old! " * 4000, list[Slice]()

    def taking() -> Iterator[Slice]:
        for one in sliced([text], "en", lambda: len(taken) > 20):
            taken.append(one)
            yield one

    cut = groups(taking())
    assert len(next(cut)) < 3
    assert len(taken) < 3
    with pytest.raises(CancelledError):
        list(cut)
    assert len(taken) < 40


def test_a_long_text_is_cut_at_empty_lines_and_comes_out_the_same() -> None:
    paragraph = "The house is red. We live in it, and it is old.\nTom lives there, too.\n \n"
    text = "\n\n" + paragraph * 60 + "x" * 2 * formats.PIECE + "\r\n\r\n\n" + paragraph * 30
    cut = pieces(text)
    assert "".join(cut) == text
    assert len(cut) > 5
    assert all(len(piece) <= 3 * formats.PIECE + len(paragraph) + 10 for piece in cut)
    assert pieces("") == [""]
    translator = Translator.load("lesson")
    whole = "hello world\n\ngood world\n \nhello\n" * 60
    assert "".join(one.text for one in translator.translate(pieces(whole))) == translator.translate(whole).text


# --- over HTTP --------------------------------------------------------------------------------------------------------

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
    with urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def waiting(address: str) -> int:
    """Return the number of characters that the server has yet to translate."""
    return int(json.loads(get(f"{address}health"))["waiting"])


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
    wait_for(lambda: waiting(running.address) > 0)
    assert post(running.address, "The house is red.")[1] == {"translatedText": "La casa es roja."}
    assert waiting(running.address), "the book is still at work: clients take turns"
    leaves.close()
    wait_for(lambda: not waiting(running.address))
    for client in slow:
        client.close()


def test_a_what_if_that_nobody_waits_for_ends(request: pytest.FixtureRequest) -> None:
    """Otherwise the next what-if on the page would wait for minutes."""
    where = urlsplit(request.getfixturevalue("server"))  # of all tests, with the page

    def finished(text: str) -> Any:
        short = json.dumps({"text": text, "changes": [["without", "positions"]]})
        with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)) as client:
            client.request("POST", "/api/run", short, {"Content-Type": "application/json"})
            return json.loads(client.getresponse().read())

    assert finished("Good morning.")["changed"], "the model is loaded"
    long = {"text": "the old man, " * 30, "changes": [["without", "positions"], ["draw", "temperature=9"]]}
    for number in range(3):
        body = json.dumps({**long, "step": number, "beam": number + 1})
        with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=0.5)) as client:
            client.request("POST", "/api/run", body, {"Content-Type": "application/json"})
            with pytest.raises(TimeoutError):
                client.getresponse()
    assert finished("Hello.")["changed"]  # another text, because runs are cached


def test_what_has_been_begun_is_finished() -> None:
    with server(model="en-es") as ready, ThreadPoolExecutor(1) as clients:
        assert post(ready.address, "Good morning.")[0] == 200
        answer = clients.submit(post, ready.address, "\n\n".join(SENTENCES * 20))
        wait_for(lambda: answer.done() or waiting(ready.address) > 0)
        ready.process.send_signal(signal.SIGTERM)
        status, told = answer.result()
        assert status == 200
        assert told["translatedText"].count("La casa es roja.") == 20
        ready.process.wait(60)


def test_the_log_has_no_text(capfd: pytest.CaptureFixture[str]) -> None:
    with server("--log") as ready:
        post(ready.address, "hello world")
    said = "".join(capfd.readouterr())
    assert "POST /translate" in said
    assert "hello world" not in said
