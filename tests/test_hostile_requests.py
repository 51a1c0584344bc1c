"""Test requests that a grammar derives from valid ones. None may cause a server error or a traceback."""

import json
import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from vidrio.serve.app import create_app
from vidrio.serve.questions import ANSWERS
from vidrio.serve.settings import Settings

MANY = int(os.environ.get("VIDRIO_REQUESTS", "100000"))
TIMES = (1, 1, 1, 2, 30, 400)  # numbers of repetitions to choose from

GOOD: dict[str, dict[str, Any]] = {
    "/translate": {"q": "hello world", "source": "en", "target": "es", "format": "text", "alternatives": 1},
    "/detect": {"q": "hello world"},
    "/suggest": {"q": "hello", "s": "hola", "source": "en", "target": "es"},
    "/translate_file": {"source": "en", "target": "es"},
    **{
        f"/api/{name}": {
            "text": "hello world",
            "model": "lesson",
            "other": "hello hello",
            "address": "enc.0.self.scores.h0[0,1]",
            "step": 1,
        }
        for name in ANSWERS
    },
}
FIELDS: dict[str, Any] = {
    "glossary": {"world": "planeta"},
    "api_key": "s3cret",
    "changes": [["without", "positions"]],
    "addresses": ["out.prob", "enc.0.self.Q.h1"],
    "kind": "numpy",
    "numbers": "float64",
    "beam": 3,
    "sentence": 0,
    "temperature": 0.5,
    "top_k": 2,
    "top_p": 0.5,
    "if_there": True,
    "answer": "hola mundo",
    "rival": "mundo",
    "other": "hello hello",
}
WORDS = (
    *(
        "hello",
        "world",
        "good",
        "<b>",
        "</b>",
        "<p>",
        "<script>",
        "<!--",
        "-->",
        "&lt;",
        "](x)",
        "**",
        "`",
        "# ",
        "> ",
        "* ",
    ),
    *(
        "\n",
        "\n\n",
        "\t",
        "\x00",
        "\ud800",
        "\u202e",
        "\U0001f469\u200d",
        "e\u0301",
        "{0}",
        "%s",
        "https://a.b/c?d=e",
        "1,234.5",
    ),
    *("enc.", "dec.5", ".cross", "[0,1]", "[hello,world]", "[-1]", "..", "=", "=nan", "=1e999", "out.prob", "src.ids"),
)
CHANGES = ("without", "set", "scale", "mask", "softmax", "prefix", "pin", "draw", "heads-off", "positions", "")
TYPES = (
    *["application/json"] * 8,
    *("application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=x"),
    *("multipart/form-data; boundary=x; charset=punycode", "multipart/form-data; boundary=x; charset=x"),
    *("text/plain", "", "application/json; charset=utf-16", "application/JSON", "a" * 300),
)
NAMES = (
    "a.txt",
    "a.html",
    "a.md",
    "a.srt",
    "a.docx",
    "a.odt",
    "a.epub",
    "a.po",
    "../../a.txt",
    "a\x00.txt",
    "",
    "a.exe",
)


def text(draw: random.Random) -> str:
    return "".join(draw.choices(WORDS, k=draw.choice((0, 1, 3, 9, 40)))) * draw.choice(TIMES)


def value(draw: random.Random, depth: int = 3) -> Any:
    """Return any JSON value, or one that only Python accepts as JSON, such as NaN."""
    plain: tuple[Callable[[], Any], ...] = (
        lambda: text(draw),
        lambda: draw.choice((None, True, False, 0, 1, -1, 2**63, 10**400, 1e308, -0.0, float("nan"), float("inf"))),
        lambda: draw.randint(-3, 80),
    )
    if not depth:
        return draw.choice(plain)()
    times = TIMES if depth == 3 else (1, 2)  # repeating nested lists up to 400 times, too, would take gigabytes
    return draw.choice(
        (
            *plain,
            lambda: [value(draw, depth - 1) for _ in range(draw.choice((0, 1, 3)))] * draw.choice(times),
            lambda: {text(draw)[:300]: value(draw, depth - 1) for _ in range(draw.choice((0, 1, 3)))},
            lambda: [[draw.choice(CHANGES), text(draw)[:60]] for _ in range(draw.choice((1, 2, 70)))],
        )
    )()


def fields(draw: random.Random, path: str) -> dict[str, Any]:
    """Return the fields of a valid request, some of them changed."""
    made = dict(GOOD.get(path, GOOD["/translate"]))
    for name in draw.sample(list(FIELDS), draw.choice((0, 1, 2))):
        made[name] = FIELDS[name]
    for _ in range(draw.choice((0, 1, 1, 2))):
        name = draw.choice((*made, *FIELDS, "q", "unheard of"))
        change = draw.random()
        if change < 0.2:
            made.pop(name, None)
        elif change < 0.6 and isinstance(made.get(name), str):
            made[name] = text(draw) or made[name] * draw.choice(TIMES)
        else:
            made[name] = value(draw)
    return made


def body(draw: random.Random, path: str) -> dict[str, Any]:
    """Return the keyword arguments that define a request's body."""
    made = fields(draw, path)
    form = {name: each if isinstance(each, str) else json.dumps(each) for name, each in made.items()}
    form = {name: each.encode("utf-8", "replace").decode() for name, each in form.items()}
    way = draw.random()
    if path == "/translate_file" and way < 0.8:
        data = text(draw).encode("utf-8", "replace") if way < 0.6 else draw.randbytes(draw.choice((0, 100, 5000)))
        return {"data": form, "files": {"file": (draw.choice(NAMES), data)}}
    if way < 0.15:
        return {"data": form}
    data = json.dumps(made).encode()
    if way > 0.9:
        damaged = bytearray(data)
        for _ in range(draw.choice((1, 5))):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        data = bytes(damaged) * draw.choice((1, 1, 2))
    elif way > 0.85:
        data = draw.choice((b"[", b'{"q":', b'["', b"\xff")) * draw.choice((1, 100, 30_000))
    return {"content": data, "headers": {"content-type": draw.choice(TYPES)}}


def request(draw: random.Random) -> dict[str, Any]:
    """Return the keyword arguments of a request."""
    path = draw.choice((*GOOD, "/translate", "/translate", "/translate", "/api/run"))
    asked = body(draw, path)
    headers = asked.pop("headers", {})
    if draw.random() < 0.7:
        headers["authorization"] = "Bearer s3cret"
    for name, values in (
        ("host", ("127.0.0.1:5000", "localhost", "[::1]:80", "evil.example", "", ":", "localhost:" * 9)),
        ("origin", ("null", "http://localhost", "https://evil.example", "moz-extension://1", "://", "http://[")),
        ("authorization", ("Bearer wrong", "Bearer", "Basic eDp5", "bearer  s3cret ")),
        ("accept-encoding", ("gzip", "br;q=1.0, *;q=0", ",")),
        ("content-length", ("0", "7")),
    ):
        if draw.random() < 0.04:
            headers[name] = draw.choice(values)
    if draw.random() < 0.05:
        path = draw.choice(
            (path + "/", path + "?" + "a=b&" * 30, "/download_file/" + "0" * 32 + ".txt", "/api/lessons/nan/99")
        )
    method = "POST" if draw.random() < 0.95 else draw.choice(("GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"))
    return {"method": method, "url": path, "headers": headers, **asked}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "keys.txt").write_text("alice s3cret\n", encoding="utf-8")
    settings = Settings(
        keys=folder / "keys.txt",
        key_required=True,
        files=folder / "files",
        suggestions=folder / "suggestions.jsonl",
        char_limit=5000,
        file_char_limit=5000,
    )
    with TestClient(create_app("lesson", settings), base_url="http://localhost") as client:
        yield client
    assert {path.name for path in folder.iterdir()} <= {"keys.txt", "files", "suggestions.jsonl"}


def check(server: TestClient, numbers: range, caplog: pytest.LogCaptureFixture) -> Counter[int]:
    """Send the requests and count the status codes. An error names the seed that reproduces it."""
    statuses = Counter[int]()
    for number in numbers:
        asked = request(random.Random(number))
        try:
            answer = server.request(**asked)
        except Exception as error:
            raise AssertionError(f"request {number} is not answered: {str(asked)[:500]}") from error
        assert answer.status_code < 500, f"request {number}: {answer.status_code} {answer.text[:200]}"
        assert "Traceback" not in answer.text, f"request {number}"
        statuses[answer.status_code] += 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    return statuses


def test_some_hundred_hostile_requests(server: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    statuses = check(server, range(400), caplog)
    assert {200, 400, 401, 403, 415, 422} <= set(statuses), "the grammar reaches all of them"
    assert statuses[200] > 20


@pytest.mark.slow
def test_many_hostile_requests(server: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    statuses = check(server, range(1000, 1000 + MANY), caplog)
    print(f"{statuses.total()} hostile requests: {dict(sorted(statuses.items()))}")
