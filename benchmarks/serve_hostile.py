"""Hostile requests against `vidrio serve`: no answer of 5xx but 503, and the memory comes back.

    python benchmarks/serve_hostile.py --requests 10000

Random bytes, broken UTF-8, deep and damaged JSON, forms and uploads that are none, archives that grow, pages of tags,
huge and unfinished bodies, drawn from a seed; a good request is asked between them, and must be answered.
"""

import argparse
import io
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from urllib.parse import urlsplit

from serve_load import resident

PATHS = ("/translate", "/detect", "/languages", "/suggest", "/translate_file", "/stream", "/download_file/x", "/health")
KINDS = (
    *(
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
    ),
    *("text/plain", "", "application/json; charset=utf-16"),
)
TAGS = ("<b>", "</i>", "<p>", "<table>", "<script>", "<!--", "<a href='", "&#x110000;", "<svg>", "]]>", "<template>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000)
    given = parser.parse_args()
    draw, statuses = random.Random(1), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "vidrio", "serve", "--port", "0", "--no-page", "--model", "en-es"]
        with subprocess.Popen([*command, "--files", folder], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                found = re.search(r"http://\S+", process.stdout.readline())
                assert found
                where = urlsplit(found[0])
                place = (where.hostname or "", where.port or 0)
                for number in range(given.requests):  # as many before, so that what is loaded and kept is there
                    ask(place, draw, good=number % 20 == 0)
                before = resident(process.pid)
                for number in range(given.requests):
                    statuses[ask(place, draw)] += 1
                    if number % 100 == 0:
                        assert ask(place, draw, good=True) == "200", "a good request was not answered"
                after = resident(process.pid)
            finally:
                process.terminate()
    print(f"{given.requests} requests: {dict(sorted(statuses.items()))}")
    print(f"memory {before:.0f} MB, then {after:.0f} MB: {100 * (after / before - 1):+.0f} %")
    assert not [status for status in statuses if status.startswith("5") and status != "503"], "an error of the server"


def ask(place: tuple[str, int], draw: random.Random, *, good: bool = False) -> str:
    """The status of one request; empty if there was no answer."""
    path, kind, body = draw.choice(PATHS), draw.choice(KINDS), bad_body(draw)
    if good:
        path, kind, body = "/translate", KINDS[0], b'{"q": "Hello.", "source": "en", "target": "es"}'
    length = len(body) if good or draw.random() < 0.9 else draw.choice((0, len(body) * 2, 10**12, -1))
    method = "POST" if good or draw.random() < 0.9 else draw.choice(("GET", "PUT", "DELETE", "OPTIONS", "X" * 50))
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    with socket.create_connection(place, timeout=60 if length == len(body) else 0.3) as client:
        try:
            client.sendall(head.encode() + f"Content-Length: {length}\r\n\r\n".encode() + body)
            answer = client.recv(64)
        except OSError:
            return ""
    return answer[9:12].decode("latin-1")


def bad_body(draw: random.Random) -> bytes:
    """A body as bad as they come."""
    noise = draw.randbytes(draw.choice((0, 1, 30, 3000)))
    page = "".join(draw.choices(TAGS, k=draw.choice((3, 300))))
    fields = {
        "q": draw.choice(
            (page, noise.decode("utf-8", "replace"), "\ud800", 3, None, [[]], {}, "a" * 3000, "\u0301" * 900)
        ),
        "source": draw.choice(("en", "auto", "zz", None, 7, "\x00")),
        "target": draw.choice(("es", "en", "", ["es"], "../..")),
        "format": draw.choice(("text", "html", "markdown", "x", None, 1)),
        "alternatives": draw.choice((0, 3, -1, "x", 1e300, 10**30, None, True)),
        "glossary": draw.choice(({}, {"a": "b"}, {"": ""}, [1], "{", {"x" * 500: "y"})),
        "api_key": draw.choice(("", "x", 3, None, "\ud800")),
    }
    whole = json.dumps(fields).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(draw.choice(("word/document.xml", "../x", "content.xml")), draw.choice((page, "0" * 10**7)))
    name = draw.choice(("a.docx", "a.odt", "a.epub", "a.html", "a.txt", "../a.md", "a.po", "a", "a.srt", '"; x="'))
    upload = b'--x\r\nContent-Disposition: form-data; name="file"; filename="' + name.encode() + b'"\r\n\r\n'
    upload += draw.choice((packed.getvalue(), noise, page.encode())) + b"\r\n"
    for field in ("source", "target"):
        upload += f'--x\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{fields[field]}\r\n'.encode()
    damaged = bytearray(whole)
    damaged[draw.randrange(len(damaged))] ^= 0xFF
    deep = b'{"q":' * 20_000
    others = (upload + b"--x--\r\n", upload, bytes(damaged), noise, deep, b"[" * 10**5, b"q=%zz&" * 200)
    return draw.choice((whole, whole, whole, *others))


if __name__ == "__main__":
    main()
