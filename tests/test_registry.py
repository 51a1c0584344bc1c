"""Test downloading models by language pair from an in-process server with the layout of Mozilla's registry."""

import gzip
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vidrio.cli import main
from vidrio.errors import ModelError
from vidrio.interop import registry
from vidrio.interop.convert import import_model
from vidrio.model import find
from vidrio.model.folder import read_config

GOLDEN = Path(__file__).parent / "golden/marian"
PLACE = "models/en-es/retrain_tiny_AbC-123/exported"
KINDS = {
    "model": "model.enes.intgemm.alphas.bin",
    "lexicalShortlist": "lex.50.50.enes.s2t.bin",
    "vocab": "vocab.enes.spm",
}


class Registry:
    """Hold the served files and record the requests."""

    def __init__(self) -> None:
        self.files = {f"/{PLACE}/{name}.gz": gzip.compress((GOLDEN / name).read_bytes()) for name in KINDS.values()}
        model = (GOLDEN / KINDS["model"]).read_bytes()
        files: dict[str, Any] = {kind: {"path": f"{PLACE}/{name}.gz"} for kind, name in KINDS.items()}
        files["model"] |= {"uncompressedSize": len(model), "uncompressedHash": hashlib.sha256(model).hexdigest()}
        self.entry: dict[str, Any] = {
            "architecture": "tiny",
            "releaseStatus": "Release",
            "sourceLanguage": "en",
            "targetLanguage": "es",
            "files": files,
            "modelStatistics": {"parameters": 16_000_000},
            "metrics": {"flores200-plus": {"bleu": 26.2, "comet22": 0.8401}},
        }
        other = {**self.entry, "architecture": "base", "releaseStatus": "Nightly"}
        worse = {**self.entry, "architecture": "worse", "metrics": {}}
        self.models: Any = {"en-es": [other, worse, self.entry], "en-xx": [other]}
        self.breaks: list[int] = []  # lengths at which to cut off the next answers
        self.asked: list[tuple[str, str]] = []  # requested paths and their Range headers
        self.address = ""

    def answer(self, path: str) -> bytes | None:
        if path == "/db/models.json":
            base = "https://storage.googleapis.com/elsewhere"  # ignored: a mirror serves its own files
            return json.dumps({"generated": "2026-11-09T00:00:00Z", "baseUrl": base, "models": self.models}).encode()
        return self.files.get(path)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    state = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data, told = state.answer(self.path), self.headers.get("Range", "")
            state.asked.append((self.path, told))
            first = int(told.removeprefix("bytes=").removesuffix("-")) if told else 0
            if data is None or first >= len(data) > 0:
                self.send_error(404 if data is None else 416)
                return
            rest = data[first:]
            self.send_response(206 if told else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            most = state.breaks.pop(0) if state.breaks and self.path.endswith(".gz") else len(rest)
            self.wfile.write(rest[:most])

        def log_message(self, *told: object) -> None:
            pass

    monkeypatch.setenv("VIDRIO_MODELS", str(tmp_path / "own"))
    monkeypatch.setattr(registry, "PATIENCE", 5.0)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        state.address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("VIDRIO_MIRROR", state.address)
        yield state
        server.shutdown()


def test_a_pair_is_fetched_and_its_name_works(served: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "en-es"]) == 0
    out = capsys.readouterr().out
    assert all(part in out for part in ("en → es", "MPL-2.0", "-m en-es"))
    folder = find.own_folder() / "en-es"
    assert find.find("en-es") == folder, "the imported one takes the packaged one's place"
    _, about = read_config(folder)
    assert about.provenance["imported"] == f"{served.address}/{PLACE}/{KINDS['model']}.gz"
    assert {"test": "FLORES-200+", "metric": "bleu", "value": 26.2} in about.scores
    card = (folder / "README.md").read_text("utf-8")
    assert all(part in card for part in ("retrain_tiny_AbC-123", "| comet22 | 0.8401 |", "Mozilla Public License"))
    assert [path.name for path in find.own_folder().iterdir()] == ["en-es"], "nothing is left of the fetching"
    assert main(["translate", "-m", "en-es", "--max-length", "9", "The old house."]) == 0
    assert main(["import", "en-es"]) == 1
    assert "already exists" in capsys.readouterr().err


def test_models_lists_what_is_there_and_what_is_offered(served: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "en-es", "--to", str(find.own_folder() / "mine")]) == 0
    capsys.readouterr()
    assert main(["models", "--available", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    by_place = {(row["name"], row["place"]): row for row in rows}
    assert {("en-es", "packaged"), ("mine", "imported"), ("en-es", "offered, tiny")} <= {*by_place}
    assert not [row for row in rows if row["name"] == "en-xx"], "it is not released"
    for place in (("mine", "imported"), ("en-es", "offered, tiny")):
        assert by_place[place]["licence"] == "MPL-2.0"
        assert by_place[place]["scores"]["bleu FLORES-200+"] == 26.2
        assert by_place[place]["megabytes"] == pytest.approx(0.1, abs=0.05)
    assert main(["models"]) == 0
    assert "mine        en → es  0.1 MB  bleu FLORES-200+ 26.2, comet22 FLORES-200+ 0.8401  MPL-2.0  imported" in (
        capsys.readouterr().out
    )
    (find.own_folder() / "mine/config.json").write_text("{")
    assert main(["models"]) == 0
    assert "imported, damaged" in capsys.readouterr().out


def fetch(served: Registry, to: Path) -> None:
    import_model("en-es", to, mirror=registry.Mirror(served.address))


def test_what_was_fetched_is_not_fetched_again(served: Registry, tmp_path: Path) -> None:
    model = f"/{PLACE}/{KINDS['model']}.gz"
    served.breaks = [5_000, 5_000]  # the first try and the retry
    with pytest.raises(ModelError, match="cannot be fetched"):
        fetch(served, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
    served.asked.clear()
    fetch(served, tmp_path / "ours")
    asked = [told for path, told in served.asked if path == model]
    assert asked == ["bytes=10000-"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours"]


def test_one_more_try_after_a_break(served: Registry, tmp_path: Path) -> None:
    served.breaks = [7_000]
    fetch(served, tmp_path / "ours")
    assert ("/" + PLACE + "/" + KINDS["model"] + ".gz", "bytes=7000-") in served.asked


def test_another_file_than_the_registry_says_is_refused(served: Registry, tmp_path: Path) -> None:
    served.entry["files"]["model"]["uncompressedHash"] = "0" * 64
    with pytest.raises(ModelError, match="not the file of the registry"):
        fetch(served, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_a_part_of_another_file_is_thrown_away(served: Registry, tmp_path: Path) -> None:
    """Check that the whole file is fetched again when it has changed since a part of it was fetched."""
    part = tmp_path / ".ours.fetched" / f"{KINDS['model']}.gz.part"
    part.parent.mkdir()
    part.write_bytes(b"something else")
    fetch(served, tmp_path / "ours")
    asked = [told for path, told in served.asked if path.endswith(f"{KINDS['model']}.gz")]
    assert asked == ["bytes=14-", ""]


def bomb(state: Registry) -> None:
    state.entry["files"]["model"]["uncompressedSize"] = 1000


BROKEN: dict[str, tuple[Callable[[Registry], object], str]] = {
    "no such pair": (lambda state: state.models.pop("en-es"), "no released model en-es"),
    "not released": (lambda state: [one.update(releaseStatus="Nightly") for one in state.models["en-es"]], "'Nightly'"),
    "a missing file": (lambda state: state.files.clear(), "404|Not Found"),
    "more than was said": (bomb, "not the file of the registry"),
    "another path": (lambda state: state.entry["files"]["vocab"].update(path="../../etc/passwd"), "a file"),
    "an absolute path": (lambda state: state.entry["files"]["vocab"].update(path="/etc/passwd"), "a file"),
    "a path of another kind": (lambda state: state.entry["files"]["vocab"].update(path=7), "registry of models"),
    "a size of another kind": (lambda state: state.entry["files"]["model"].update(uncompressedSize="1"), "a file"),
    "no files": (lambda state: state.entry.pop("files"), "registry of models"),
    "a list": (lambda state: setattr(state, "models", []), "registry of models"),
    "no registry": (lambda state: setattr(state, "models", None), "registry of models"),
    "not gzip": (lambda state: state.files.update(dict.fromkeys(state.files, b"plain")), "cannot be fetched"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_registry_that_is_wrong_is_refused(served: Registry, tmp_path: Path, case: str) -> None:
    change, says = BROKEN[case]
    change(served)
    with pytest.raises(ModelError, match=says):
        fetch(served, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
    assert not list(tmp_path.rglob("passwd"))


def test_without_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for mirror, says in (("http://127.0.0.1:9", "VIDRIO_MIRROR"), ("file:///etc", "not the address of a registry")):
        assert main(["import", "en-fr", "--to", str(tmp_path / "ours"), "--mirror", mirror]) == 1
        assert says in capsys.readouterr().err
        assert main(["models", "--available", "--mirror", mirror]) == 1
        assert says in capsys.readouterr().err
