"""Test the server with requests, key files and folders at the edge of what is allowed."""

import json
import os
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from sample_documents import PO
from small_models import write_model
from vidrio.errors import ConfigError
from vidrio.serve.app import create_app
from vidrio.serve.files import forget_old
from vidrio.serve.looking import folders_of
from vidrio.serve.settings import Settings
from vidrio.site.answering import answering
from vidrio.site.writing import write_site

HELLO = {"q": "hello world", "source": "en", "target": "es"}


def client_of(model: str | None = "lesson", **given: object) -> TestClient:
    return TestClient(create_app(model, settings=Settings(**given)), base_url="http://localhost")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("charset", "status"), [("punycode", 400), ("utf-16", 400), ("latin-1", 400), ("UTF-8", 200), ("utf8", 200)]
)
def test_a_form_is_utf_8(charset: str, status: int) -> None:
    """Starlette would decode it with any codec of Python, and punycode takes quadratic time."""
    fields = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in HELLO.items()
    )
    headers = {"Content-Type": f"multipart/form-data; boundary=x; charset={charset}"}
    answer = client_of(page=False).post("/translate", content=f"{fields}--x--\r\n", headers=headers)
    assert answer.status_code == status, answer.text


def test_a_glossary_holds_through_two_models_in_every_format(tmp_path: Path) -> None:
    write_model(tmp_path / "es-fr")
    client = chained(tmp_path)
    asked = {"q": "My dog Rex sleeps.", "source": "en", "target": "fr", "glossary": {"Rex": "Médor"}}
    for form in ("text", "html", "markdown"):
        answer = client.post("/translate", json={**asked, "format": form})
        assert answer.status_code == 200, answer.text
        assert "Médor" in answer.json()["translatedText"]


def chained(folder: Path) -> TestClient:
    """Return a client of a server that translates from English to Spanish, and from Spanish to French."""
    path = folder / "es-fr/config.json"
    data = json.loads(path.read_text())
    data["about"] |= {"source_language": "es", "target_language": "fr"}
    path.write_text(json.dumps(data))
    return client_of("en-es", models=(str(folder / "es-fr"),), page=False, files=folder / "files")


def test_a_po_file_is_not_translated_through_another_language(tmp_path: Path) -> None:
    write_model(tmp_path / "es-fr")
    client = chained(tmp_path)
    answer = client.post("/translate_file", files={"file": ("a.po", PO)}, data={"source": "en", "target": "fr"})
    assert answer.status_code == 400
    assert "one model" in answer.json()["error"]


def test_auto_without_a_translator_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path / "classes", shape="encoder", n_classes=3, target_vocabulary=0, tying="none")
    answer = client_of(str(tmp_path / "classes")).post("/translate", json={**HELLO, "source": "auto"})
    assert answer.status_code == 400


def test_a_key_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("\ufeff# keys\nalice secret\n", encoding="utf-8")
    client = client_of(keys=keys, key_required=True, page=False)
    assert client.post("/translate", json={**HELLO, "api_key": "keys"}).status_code == 403
    assert client.post("/translate", json={**HELLO, "api_key": "secret"}).status_code == 200


@pytest.mark.parametrize("path", ["/translate", "/api/translate"])
def test_a_damaged_key_file_is_not_shown_to_clients(path: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("alice secret\n", encoding="utf-8")
    client = client_of(keys=keys, key_required=True)
    keys.write_text("alice my secret\n", encoding="utf-8")
    answer = client.post(path, json=HELLO if path == "/translate" else {}, headers={"Authorization": "Bearer x"})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "keys.txt" not in answer.text


def test_old_files_are_deleted_after_the_folder_was_missing(tmp_path: Path) -> None:
    forget_old(tmp_path / "files", 1)
    (tmp_path / "files").mkdir()
    old = tmp_path / "files" / ("0" * 32)
    old.touch()
    os.utime(old, (time.time() - 9, time.time() - 9))
    forget_old(tmp_path / "files", 1)
    assert not old.exists()


def test_the_page_has_every_given_model(tmp_path: Path) -> None:
    write_model(tmp_path / "one")
    write_model(tmp_path / "two")
    assert list(folders_of(str(tmp_path / "one"), str(tmp_path / "two")))[:2] == ["one", "two"]


def test_two_models_of_one_name_are_not_written_to_a_site(tmp_path: Path) -> None:
    for place in ("a", "b"):
        write_model(tmp_path / place / "same")
        config = tmp_path / place / "same/config.json"
        data = json.loads(config.read_text())
        data["about"] |= {"source_language": "en", "target_language": "es"}
        config.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match="two models have the name same"):
        write_site(tmp_path / "site", [str(tmp_path / "a/same"), str(tmp_path / "b/same")], lambda what: None)


@pytest.mark.parametrize("body", ['{"txt": "Hello"}', '{"text": 3}', '{"changes": null}'])
def test_the_page_alone_refuses_what_the_server_refuses(body: str) -> None:
    status, reason = answering(["lesson"])("translate", body)
    assert status == "refused"
    assert "Traceback" not in reason
