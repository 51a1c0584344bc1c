"""Run misbehaving clients of one kind against a server, for benchmarks/serve_hostile.py --minutes.

python benchmarks/serve_attacks.py leaving 127.0.0.1 5000 30
"""

import json
import os
import random
import resource
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count

SENTENCE = "The old man who lives in house number {} has bought a red car, and nobody knows why he did it. "
HEAD = "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
WHAT_IFS = (
    [["without", "ffn"]],
    [["without", "layer-norm"]],
    [["mask", "off"]],
    [["without", "positions"]],
    [["draw", "temperature=3 seed={}"]],
)
Place = tuple[str, int]


def post(path: str, **fields: object) -> bytes:
    body = json.dumps(fields).encode()
    return HEAD.format(path, len(body)).encode() + body


def text(number: int, sentences: int) -> str:
    return "".join(SENTENCE.format(1000 * number + n) for n in range(sentences))


def asked(place: Place, data: bytes, wait: float) -> None:
    """Send data, and disconnect when the response begins or after `wait` seconds."""
    with closing(socket.create_connection(place, timeout=wait)) as client:
        client.sendall(data)
        client.recv(1000)


def leaving(place: Place, number: int) -> None:
    """Request a long translation and hang up after 20 ms."""
    asked(place, post("/translate", q=text(number, 40), source="en", target="es"), 0.02)


def slow(place: Place, number: int) -> None:
    """Send one byte per second, in the headers for half of the clients and in the body for the others."""
    data = post("/translate", q=text(number, 1), source="en", target="es")
    with closing(socket.create_connection(place, timeout=60)) as client:
        start = 0 if number % 2 else data.index(b"\r\n\r\n") + 4
        client.sendall(data[:start])
        for byte in data[start:]:
            client.sendall(bytes([byte]))
            time.sleep(1)


def pipelining(place: Place, number: int) -> None:
    """Send fifty requests at once, without reading a response."""
    data = b"".join(post("/translate", q=text(50 * number + n, 2), source="en", target="es") for n in range(50))
    with closing(socket.create_connection(place, timeout=5)) as client:
        client.sendall(data)
        time.sleep(2)


def half_heads(place: Place, number: int) -> None:
    """Send half of the headers, then nothing."""
    with closing(socket.create_connection(place, timeout=60)) as client:
        client.sendall(b"POST /translate HTTP/1.1\r\nHost: 127.0")
        client.recv(1)


def idle(place: Place, number: int) -> None:
    """Connect without sending anything."""
    with closing(socket.create_connection(place, timeout=60)) as client:
        client.recv(1)


def many_texts(place: Place, number: int) -> None:
    """Send a small body that requires a lot of work."""
    asked(place, post("/translate", q=[f"a{n}" for n in range(30_000)], source="auto", target="es"), 3)


def full(place: Place, number: int) -> None:
    """Send the most expensive request that is allowed, and disconnect after three seconds."""
    asked(place, post("/translate", q=text(number, 2000)[:190_000], source="auto", target="es", alternatives=16), 3)


def nested(place: Place, number: int) -> None:
    """Send markup that is nested as deeply as possible."""
    draw = random.Random(number)
    tag = draw.choice(("<b>", "<p>", "<span>", "<table>", "<ul><li>", "<a href='x'>", "> ", "* ", "[", "<!--"))
    page = tag * draw.choice((1000, 20_000, 60_000))
    kind = "markdown" if tag[0] != "<" else "html"
    asked(place, post("/translate", q=page[:190_000] + "word", source="en", target="es", format=kind), 3)


def dear(place: Place, number: int) -> None:
    """Request expensive what-ifs of long sentences, all different."""
    changes = json.loads(json.dumps(WHAT_IFS[number % len(WHAT_IFS)]).replace("{}", str(number)))
    path = random.Random(number).choice(("/api/run", "/api/run", "/api/search", "/api/learning", "/api/forced"))
    question = {"text": text(number, 3).replace(".", ","), "changes": changes, "answer": "sí"}
    asked(place, post(path, **question), 3)


def unread(place: Place, number: int) -> None:
    """Request many numbers without reading the response."""
    addresses = ["out.logits", "out.prob", "out.score", *(f"enc.{layer}.self.weights.h0" for layer in range(6))]
    data = post("/api/tensors", text=text(number, 1), addresses=addresses, if_there=True)
    with closing(socket.create_connection(place, timeout=5)) as client:
        client.sendall(data)
        time.sleep(20)


CLIENTS: dict[Callable[[Place, int], None], int] = {  # concurrent clients per attack
    **{leaving: 32, slow: 200, pipelining: 16, half_heads: 1100, idle: 900},
    **{many_texts: 8, full: 8, nested: 8, dear: 8, unread: 32},
}
ATTACKS = {attack.__name__: attack for attack in CLIENTS}


def main() -> None:
    name, host, port, seconds = sys.argv[1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    attack, numbers, end = ATTACKS[name], count(), time.monotonic() + float(seconds)

    def client(_: int) -> None:
        while time.monotonic() < end:
            with suppress(OSError):
                attack((host, int(port)), next(numbers))
            time.sleep(0.01)

    pool = ThreadPoolExecutor(CLIENTS[attack])
    for number in range(CLIENTS[attack]):
        pool.submit(client, number)
    time.sleep(float(seconds))
    os._exit(0)  # exit without cleaning up the connections


if __name__ == "__main__":
    main()
