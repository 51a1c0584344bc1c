"""Send hostile requests to `vidrio serve`, which must not respond with 5xx except 503, and must release its memory.

    python benchmarks/serve_hostile.py --requests 10000 --schemathesis ENVIRONMENT/bin/schemathesis
    python benchmarks/serve_hostile.py --minutes 10

Sixteen concurrent clients send seeded random requests: random bytes, invalid UTF-8, deeply nested and damaged JSON,
malformed forms and uploads, archives that expand, pages full of tags, huge, endless, slow and incomplete bodies, and
requests that are not HTTP. Valid requests are sent in between and must be answered. If Schemathesis is given, it first
sends requests generated from the server's OpenAPI description.

With --minutes, misbehaving clients of each kind (serve_attacks.py) run in turn, for this long in total. Meanwhile, a
well-behaved client translates one sentence at a time, and its median latency must not exceed three times its latency
without an attack. The server's memory must stay below 400 MB and return to 250 MB or its initial value. Above 2 GB, the
server is killed.
"""

import argparse
import io
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from statistics import median

from serve_attacks import ATTACKS
from served import Server, quantile, report, server

CLIENTS = 16
WARM, QUIET = 50, 40  # requests
SETTLING = 90  # maximum seconds to wait for memory to be released
GOOD_EVERY = 50
PATHS = (
    *(*["/translate"] * 6, *["/translate_file"] * 4, "/detect", "/detect"),
    *("/suggest", "/languages", "/download_file/x", "/health"),
)
KINDS = (
    *("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"),
    *("multipart/form-data", "text/plain", "", "application/json; charset=utf-16"),
)
TAGS = ("<b>", "</i>", "<p>", "<table>", "<script>", "<!--", "<a href='", "&#x110000;", "<svg>", "]]>", "<template>")
NAMES = ("a.docx", "a.odt", "a.epub", "a.html", "a.txt", "../a.md", "a.po", "a", "a.srt", '"; x="')
NO_HTTP = (
    *(b"\x00" * 300, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/9.9\r\n\r\n"),
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /download_file/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\nContent-Length: 9\r\n\r\n{}",
    b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--schemathesis", metavar="COMMAND", help="path to the schemathesis command")
    parser.add_argument("--examples", type=int, default=300, help="Schemathesis examples per route")
    parser.add_argument("--minutes", type=float, help="total duration of the attacks by misbehaving clients")
    parser.add_argument("--attacks", nargs="+", default=list(ATTACKS), choices=ATTACKS)
    given = parser.parse_args()
    if given.minutes:
        sys.exit(beside(given.attacks, 60 * given.minutes / len(given.attacks)))
    with (
        tempfile.TemporaryDirectory() as folder,
        server("--no-page", "--model", "en-es", "--files", folder) as there,
    ):
        send(there, range(-max(1000, given.requests // 5), 0))  # warm up
        before, began = there.memory(), time.perf_counter()
        by_schema = schemathesis(there, given.schemathesis, given.examples) if given.schemathesis else True
        statuses = send(there, range(given.requests))
        still_answers = ask(there, GOOD) == "200"
        seconds, after = time.perf_counter() - began, there.memory()
    report(
        requests=given.requests,
        still_answers=still_answers,
        seconds=seconds,
        statuses=dict(sorted(statuses.items())),
        schemathesis=by_schema,
        memory_mb=[round(before), round(after)],
        grown_percent=100 * (after / before - 1),
    )
    faults = [status for status in statuses if status.startswith("5") and status != "503"]
    assert still_answers, "the last good request was not answered"
    assert not faults, f"errors of the server: {faults}"
    assert by_schema, "schemathesis found an error of the server"
    assert after < 1.1 * before, "the memory did not come back"


def beside(attacks: Sequence[str], seconds: float) -> int:
    """Run the attacks, print a line for each, and return the number that exceed a limit."""
    failed = 0
    with tempfile.TemporaryFile() as log, server(stderr=log, files=1024) as there, kept_small(there) as largest:
        waits(there, WARM)
        before = there.memory()
        for name in attacks:
            quiet = median(waits(there, QUIET))
            largest[0] = 0
            command = [
                sys.executable,
                str(Path(__file__).with_name("serve_attacks.py")),
                name,
                there.host,
                str(there.port),
            ]
            with subprocess.Popen([*command, str(seconds)]) as attacker:
                time.sleep(min(2, seconds / 4))
                during = list[float]()
                while attacker.poll() is None:
                    during += waits(there, 1)
            most, settled = largest[0], settles(there, max(250, 1.1 * before))
            ratio, logged = median(during) / quiet, log.seek(0, 2)
            fine = ratio <= 3 and most <= 400 and settled <= max(250, 1.1 * before) and logged < 100_000
            failed += not fine
            report(
                attack=name,
                fine=fine,
                quiet_ms=1000 * quiet,
                beside_ms=1000 * median(during),
                ratio=ratio,
                p99_ms=1000 * quantile(during, 0.99),
                answers=len(during),
                memory_mb=[round(before), round(most), round(settled)],
                log_bytes=logged,
            )
    return failed


def waits(there: Server, number: int) -> list[float]:
    """Return the latencies of a well-behaved client that translates one sentence after another."""
    client, waited = there.client(), []
    for n in range(number):
        began = time.perf_counter()
        fields = {"q": f"The house is red, and the car is old. Number {n}.", "source": "en", "target": "es"}
        assert client.ask("/translate", fields)[0] == 200, "a good request was not answered"
        waited.append(time.perf_counter() - began)
    return waited


@contextmanager
def kept_small(there: Server) -> Iterator[list[float]]:
    """Record the server's peak memory, and kill the server if it exceeds a limit, to protect the machine."""
    largest, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            with suppress(OSError, LookupError):
                largest[0] = max(largest[0], there.memory())
            if largest[0] > 2000:
                there.process.kill()

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield largest
    finally:
        over.set()
        watching.join()


def settles(there: Server, most: float) -> float:
    """Wait until the server has released memory or a timeout expires, and return its memory use."""
    end = time.monotonic() + SETTLING
    while there.memory() > most and time.monotonic() < end:
        time.sleep(0.5)
    return there.memory()


def send(there: Server, numbers: Iterable[int]) -> Counter[str]:
    """Send one hostile request per number, and count the response statuses."""

    def one(number: int) -> str:
        draw = random.Random(number)
        if number % GOOD_EVERY == 0:
            assert ask(there, GOOD) == "200", "a good request was not answered"
        return draw.choice((whole, whole, whole, whole, whole, whole, unfinished, slow, endless, no_http))(there, draw)

    with ThreadPoolExecutor(CLIENTS) as pool:
        return Counter(pool.map(one, numbers))


def schemathesis(there: Server, command: str, examples: int) -> bool:
    """Run Schemathesis, and return whether it finds no server error."""
    with tempfile.TemporaryDirectory() as folder:  # for Schemathesis's findings
        done = subprocess.run(
            [
                *(command, "run", f"http://{there.host}:{there.port}/openapi.json", "--max-examples", str(examples)),
                *("--checks", "not_a_server_error", "--mode", "all", "--workers", "4", "--seed", "1", "--no-color"),
            ],
            capture_output=True,
            cwd=folder,
            text=True,
            timeout=600,
        )
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-1000:])
    return not done.returncode


# --- requests ---------------------------------------------------------------------------------------------------------


def request(path: str, kind: str, body: bytes, length: int | None = None, method: str = "POST") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


GOOD = request("/translate", KINDS[0], b'{"q": "Hello.", "source": "en", "target": "es"}')


def ask(there: Server, data: bytes, seconds: float = 120) -> str:
    """Return the status of the response, or an empty string if there is none."""
    return exchange(there, data, seconds)[9:12].decode("latin-1")


def exchange(there: Server, data: bytes, seconds: float = 120, most: int = 64) -> bytes:
    """Return the response, up to a maximum number of bytes."""
    answer = b""
    with socket.create_connection((there.host, there.port), timeout=seconds) as client:
        try:
            client.sendall(data)
            while len(answer) < most and (part := client.recv(most - len(answer))):
                answer += part
        except OSError:
            return answer
    return answer


def whole(there: Server, draw: random.Random) -> str:
    """Send an invalid body to any route, with any method."""
    method = "POST" if draw.random() < 0.9 else draw.choice(("GET", "PUT", "DELETE", "OPTIONS", "X" * 50))
    kind, body = bad_body(draw)
    return ask(there, request(draw.choice(PATHS), draw.choice((kind, kind, *KINDS[3:])), body, method=method))


def unfinished(there: Server, draw: random.Random) -> str:
    """Send a body whose length differs from the declared length."""
    kind, body = bad_body(draw)
    length = draw.choice((0, len(body) * 2 + 9, 10**12, -1))
    return ask(there, request(draw.choice(PATHS), kind, body, length), seconds=0.2)


def slow(there: Server, draw: random.Random) -> str:
    """Send a body byte by byte, then stop before it is complete."""
    with socket.create_connection((there.host, there.port), timeout=10) as client:
        try:
            for byte in request(draw.choice(PATHS), KINDS[0], b"{" * 30)[: draw.choice((20, 300))]:
                client.sendall(bytes([byte]))
            time.sleep(draw.random() / 4)
        except OSError:
            return ""
    return "left"


def endless(there: Server, draw: random.Random) -> str:
    """Send endless chunks, or more bytes than are accepted."""
    if draw.random() < 0.5:
        return ask(there, request("/translate", KINDS[0], b" " * draw.choice((3 << 20, 5 << 20))))
    head = b"POST /translate_file HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    return ask(there, head + (b"10000\r\n" + b"x" * 65_536 + b"\r\n") * draw.choice((10, 400)), seconds=2)


def no_http(there: Server, draw: random.Random) -> str:
    return ask(there, draw.choice((*NO_HTTP, draw.randbytes(3000))), seconds=0.5)


@cache
def packed(name: str, page: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, page)
    return data.getvalue()


def bad_body(draw: random.Random) -> tuple[str, bytes]:
    """Return a media type and an invalid body."""
    noise = draw.randbytes(draw.choice((0, 1, 30, 3000)))
    page = "".join(draw.choices(TAGS, k=draw.choice((3, 300))))
    texts = (page, noise.decode("utf-8", "replace"), "\ud800", 3, None, [[]], {}, "a" * 3000, "\u0301" * 900)
    fields = {
        "q": draw.choice(texts),
        "source": draw.choice(("en", "en", "en", "auto", "zz", None, 7, "\x00")),
        "target": draw.choice(("es", "es", "es", "en", "", ["es"], "../..")),
        "format": draw.choice(("text", "html", "html", "markdown", "x", None, 1)),
        "alternatives": draw.choice((0, 0, 0, 3, -1, "x", 1e300, 10**30, None, True)),
        "glossary": draw.choice(({}, {}, {"a": "b"}, {"": ""}, [1], "{", {"x" * 500: "y"})),
        "api_key": draw.choice(("", "", "", "x", 3, None, "\ud800")),
    }
    json_body = json.dumps(fields).encode()
    part = draw.choice(("word/document.xml", "../x", "content.xml"))
    grows = packed(part, draw.choice(("<p>", "0" * 10**7, "<a>" * 10**5)))
    upload = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{draw.choice(NAMES)}"\r\n\r\n'.encode()
    upload += draw.choice((grows, noise, page.encode())) + b"\r\n"
    for field in ("source", "target"):
        upload += f'--x\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{fields[field]}\r\n'.encode()
    damaged = bytearray(json_body)
    damaged[draw.randrange(len(damaged))] ^= 0xFF
    deep = b'{"q":' * 20_000
    of_json, form, parts = KINDS[:3]
    others = (
        *((parts, upload + b"--x--\r\n"), (parts, upload + b"--x--\r\n"), (parts, upload), (of_json, bytes(damaged))),
        *((draw.choice(KINDS), noise), (of_json, deep), (of_json, b"[" * 10**5), (form, b"q=%zz&" * 200)),
    )
    return draw.choice(((of_json, json_body),) * 4 + others)


if __name__ == "__main__":
    main()
