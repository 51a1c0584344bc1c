"""`vidrio data`, as its user meets it: real files, and a real server on this machine that stands in for the network."""

import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from vidrio.data.download import fetch
from vidrio.data.sources import origin_of, origin_path

from vidrio.cli import main
from vidrio.data import download
from vidrio.data.progress import Progress
from vidrio.errors import DataError

PAIRS = [
    ("Hello world!", "¡Hola mundo!"),
    ("Hello world!", "¡Hola mundo!"),
    ("It costs 25 dollars.", "Cuesta 52 dólares."),
    ("Good morning.", "Buenos días."),
    ("Red\x1b[31m is red.", "Rojo."),
    ("How are you?", "¿Qué tal?"),
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), encoding="utf-8")
    return path


def run(*arguments: object) -> int:
    return main(["data", *map(str, arguments)])


# --- clean ------------------------------------------------------------------------------------------------------------


def test_clean_shows_what_is_left_out_and_writes_the_rest(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("clean", pairs.name) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "source, target\n6 pairs read, 3 kept\n" in text
    for told in ("1 left out: duplicate (", "1 left out: numbers differ (", "1 left out: control characters ("):
        assert told in text
    assert "      It costs 25 dollars.\n    → Cuesta 52 dólares.\n" in text
    assert "\x1b" not in text, "nothing that moves a terminal's cursor"
    assert list(tmp_path.iterdir()) == [pairs]
    assert run("clean", pairs, "--to", tmp_path / "clean.tsv") == 0
    written = (tmp_path / "clean.tsv").read_text(encoding="utf-8")
    assert written.splitlines() == [f"{s}\t{t}" for s, t in (PAIRS[0], PAIRS[3], PAIRS[5])]
    assert f"3 pairs in {tmp_path / 'clean.tsv'}\n" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clean.tsv", "pairs.tsv"]


def test_clean_obeys_the_options(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test.tsv").write_text("good morning\tx\n", encoding="utf-8")
    (tmp_path / "same.tsv").write_text("ceci est une phrase\tceci est une phrase\n", encoding="utf-8")

    def skipped(*arguments: object) -> Any:
        assert run("clean", "--json", *arguments) == 0
        return json.loads(capsys.readouterr().out)["skipped"]

    assert skipped(pairs, "--languages", "en,es") == {"control characters": 1, "numbers differ": 1, "duplicate": 1}
    options = ("--keep-duplicates", "--keep-numbers", "--longest", "13", "--columns", "1,2")
    assert skipped(pairs, *options, "--apart", tmp_path / "test.tsv") == {"too long": 2, "stands in a held-out set": 1}
    assert skipped(tmp_path / "same.tsv") == {"identical sides": 1}
    assert skipped(tmp_path / "same.tsv", "--keep-identical") == {}
    for wrong, code in (([tmp_path / "missing.tsv"], 1), ([pairs, "--columns", "one"], 2), ([], 2)):
        assert run("clean", *wrong) == code


def test_clean_holds_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, to, held = tmp_path / "p.tsv", tmp_path / "clean.tsv", tmp_path / "held.tsv"
    path.write_text("".join(f"word{chr(97 + i)}\tpalabra{chr(97 + i)}\n" for i in range(20)), encoding="utf-8")
    assert run("clean", path, "--to", to, "--held-out", 2, "--held-out-to", held, "--json") == 0
    assert json.loads(capsys.readouterr().out)["written"] == {str(to): 18, str(held): 2}
    both = to.read_text(encoding="utf-8").splitlines() + held.read_text(encoding="utf-8").splitlines()
    assert sorted(both) == path.read_text(encoding="utf-8").splitlines()


def test_clean_refuses_what_would_lose_data(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pairs.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert run("clean", pairs, "--to", "pairs.tsv") == 2
    assert "are the same file" in capsys.readouterr().err
    assert run("clean", pairs, "--to", "c.tsv", "--held-out", 5) == 2
    assert run("clean", pairs, "--to", tmp_path / "no" / "c.tsv") == 1
    assert "cannot be written" in capsys.readouterr().err
    empty = tmp_path / "empty.tsv"
    empty.write_text("a\t\n", encoding="utf-8")
    assert run("clean", empty, "--to", "c.tsv") == 1
    assert "1 pairs read, 0 left (1 empty)" in capsys.readouterr().err
    assert not Path("c.tsv").exists()
    assert pairs.read_bytes() == before


def test_clean_leaves_devices_and_links_what_they_are(pairs: Path, tmp_path: Path) -> None:
    assert run("clean", pairs, "--to", os.devnull) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert not Path(f"{os.devnull}.lock").exists()
    (tmp_path / "link").symlink_to("real.tsv")
    assert run("clean", pairs, "--to", tmp_path / "link") == 0
    assert (tmp_path / "link").is_symlink()
    assert len((tmp_path / "real.tsv").read_text(encoding="utf-8").splitlines()) == 3
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    assert run("clean", pairs, "--to", tmp_path / "pipe") == 0
    reader.join(20)
    assert read == [(tmp_path / "real.tsv").read_bytes()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pairs.tsv", "pipe", "real.tsv"]


# --- get --------------------------------------------------------------------------------------------------------------


def zipped(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "."), text)
    return buffer.getvalue()


class Server:
    """What stands in for the network: files by path, with faults."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.break_after: list[int] = []  # bytes after which the next answers break off
        self.fail: list[int] = []  # status codes of the next answers
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, request: Any) -> None:
        data = self.files.get(request.path)
        if self.fail or data is None:
            request.send_error(self.fail.pop(0) if self.fail else 404)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data[: self.break_after.pop(0)] if self.break_after else data)


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    yield served
    served.http.shutdown()
    served.http.server_close()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)


ANKI = "Go.\tVe.\tCC-BY 2.0 (France) Attribution: tatoeba.org #1 (a)\nHi.\tHola.\tCC-BY 2.0 (France)\n"


def test_tatoeba(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = server.files["/www.manythings.org/anki/spa-eng.zip"] = zipped(spa__txt=ANKI, _about__txt="x")
    to = tmp_path / "t.tsv"
    assert run("get", "tatoeba:spa-eng", "--to", to, "--mirror", server.url, "--json") == 0
    rows = [line.split("\t") for line in to.read_text(encoding="utf-8").splitlines()]
    assert [row[:2] for row in rows] == [["Ve.", "Go."], ["Hola.", "Hi."]]
    assert all("CC-BY" in row[2] for row in rows), "every sentence keeps its attribution"
    told = json.loads(capsys.readouterr().out)
    origin = origin_of(to)
    assert origin
    assert told["licence"] == origin.licence == "CC BY 2.0 FR"
    assert origin.checksum == hashlib.sha256(to.read_bytes()).hexdigest()
    assert origin.fetched_checksums == [hashlib.sha256(archive).hexdigest()]
    assert (origin.pairs, origin.languages) == (2, ["spa", "eng"])
    assert origin.addresses == ["https://www.manythings.org/anki/spa-eng.zip"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.tsv", "t.tsv.origin.json"]


def opus(server: Server, **files: str) -> None:
    place = "https://object.pouta.csc.fi/OPUS-Books/v1/moses/en-es.txt.zip"
    query = "corpus=Books&source=en&target=es&preprocessing=moses&version=latest"
    server.files[f"/opus.nlpl.eu/opusapi/?{query}"] = json.dumps({"corpora": [{"url": place}]}).encode()
    server.files["/object.pouta.csc.fi/OPUS-Books/v1/moses/en-es.txt.zip"] = zipped(**files)


def test_opus(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIDRIO_MIRROR", server.url)
    files = {"Books.en-es.en": "One.\nT\two.\n", "Books.en-es.es": "Uno.\nDos.\n", "LICENSE": "Public domain.\n"}
    opus(server, **files, README="read me")
    assert run("get", "opus:Books:en-es") == 0
    path = Path("opus.Books.en-es.tsv")
    assert path.read_text(encoding="utf-8") == "One.\tUno.\nT wo.\tDos.\n"
    origin = origin_of(path)
    assert origin
    assert (origin.licence, origin.homepage) == ("Public domain.", "https://opus.nlpl.eu/Books")
    assert "2 pairs in opus.Books.en-es.tsv" in capsys.readouterr().out
    opus(server, **{**files, "Books.en-es.es": "Uno.\n"})
    assert run("get", "opus:Books:en-es", "--to", "other.tsv") == 1
    assert "one ends after 1 lines" in capsys.readouterr().err
    opus(server, **{"Books.en-es.en": "One.\n"})
    assert run("get", "opus:Books:en-es", "--to", "other.tsv") == 1
    assert "does not hold one file that ends in .es" in capsys.readouterr().err
    assert not Path("other.tsv").exists()
    server.files[next(name for name in server.files if "opusapi" in name)] = b'{"corpora": []}'
    assert run("get", "opus:Books:en-es", "--to", "other.tsv") == 1
    assert "OPUS has no corpus Books" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tatoeba", "names no data to fetch"),
        ("kaggle:en-es", "use a name like these: tatoeba:eng-spa"),
        ("tatoeba:en-es", "names no two languages"),
        ("tatoeba:deu-spa", "opus:Tatoeba:de-sp"),
        ("opus:Books:en", "names no two languages"),
        ("tatoeba:eng-tlh", "404"),
    ],
)
def test_names_that_cannot_be_had(
    server: Server, tmp_path: Path, name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("get", name, "--to", tmp_path / "x.tsv", "--mirror", server.url) == 1
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_archive(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.files["/www.manythings.org/anki/spa-eng.zip"] = b"<html>Please log in</html>"
    assert run("get", "tatoeba:eng-spa", "--to", tmp_path / "x.tsv", "--mirror", server.url) == 1
    assert "is no zip archive" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_fetch_that_breaks_off_is_begun_again(server: Server, tmp_path: Path, at_once: None) -> None:
    data = server.files["/host/f.bin"] = bytes(range(256)) * 4000
    server.break_after, server.fail = [300_000, 200_000], [503]
    fetch("https://host/f.bin", tmp_path / "f.bin", Progress(), mirror=server.url)
    assert (tmp_path / "f.bin").read_bytes() == data
    server.break_after = [100_000] * 4
    with pytest.raises(DataError, match="check the network"):
        fetch("https://host/f.bin", tmp_path / "g.bin", Progress(), mirror=server.url)
    server.fail = [503] * 10
    with pytest.raises(DataError, match="503"):
        fetch("https://host/f.bin", tmp_path / "g.bin", Progress(), mirror=server.url)
    with pytest.raises(DataError, match=r"cannot be fetched(.|\n)*refused"):
        fetch("https://host/f", tmp_path / "g.bin", Progress(), mirror="http://127.0.0.1:9")
    for url, mirror in (("file:///etc/passwd", ""), ("https://host/f", "file:///etc")):
        with pytest.raises(DataError, match="is no address"):
            fetch(url, tmp_path / "g.bin", Progress(), mirror=mirror)
    assert [path.name for path in tmp_path.iterdir()] == ["f.bin"]


def test_origins_that_are_none(tmp_path: Path) -> None:
    assert origin_of(tmp_path / "p.tsv") is None
    for text in ("{", "[]", '{"name": "x"}'):
        origin_path(tmp_path / "p.tsv").write_text(text)
        assert origin_of(tmp_path / "p.tsv") is None


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from vidrio.cli import main; main(['data', 'clean', '--help'])\n"
    code += "sys.exit(bool({'numpy', 'torch', 'tokenizers', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "--columns" in done.stdout


def test_clean_works_without_torch(pairs: Path) -> None:
    code = "import sys; sys.modules['torch'] = None\nfrom vidrio.cli import main\n"
    code += f"sys.exit(main(['data', 'clean', {str(pairs)!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
