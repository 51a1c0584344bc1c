"""Test the LibreTranslate API: its fields, defaults and errors, and that existing clients work."""

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from libretranslatepy import LibreTranslateAPI

from serving import Server, server
from vidrio.documents.aligned import as_source
from vidrio.errors import ConfigError, ModelError
from vidrio.model.find import packaged
from vidrio.serve import app
from vidrio.serve.access import RequestLimits, read_keys
from vidrio.serve.app import create_app
from vidrio.serve.languages import Detector, languages, route
from vidrio.serve.requests import Refusal
from vidrio.serve.settings import Settings
from vidrio.translate.translator import Translator
from waiting import wait_for, within_a_minute

HELLO = {"q": "hello world", "source": "en", "target": "es"}


def client_of(model: str | None = "lesson", **given: Any) -> TestClient:
    return TestClient(create_app(model, settings=Settings(page=False, **given)), base_url="http://localhost")


@cache
def client() -> TestClient:
    return client_of()


@cache
def both() -> TestClient:
    """Return a client of a server that translates from English to Spanish and back."""
    return client_of(None)


def translated(on: TestClient, **fields: Any) -> Any:
    answer = on.post("/translate", json={**HELLO, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


# --- responses --------------------------------------------------------------------------------------------------------


def test_a_text_and_a_list_of_them() -> None:
    assert translated(client()) == {"translatedText": "hola mundo"}
    assert translated(client(), q=["hello world", "", "good world"]) == {
        "translatedText": ["hola mundo", "", "buen mundo"]
    }


@pytest.mark.parametrize("kind", ["data", "files"])
def test_a_form_says_the_same(kind: str) -> None:
    fields = {**HELLO, "q": "hello world\r\n\r\ngood world"}
    if kind == "data":
        answer = client().post("/translate", data=fields)
    else:
        answer = client().post("/translate", files={name: (None, value) for name, value in fields.items()})
    assert answer.json() == {"translatedText": "hola mundo\n\nbuen mundo"}


def test_what_was_lost_is_reported_in_a_field_of_its_own() -> None:
    told = translated(client(), q=["hello world", "twelve"])
    assert told["warnings"] == [[], ["the translation lacks twelve"]]
    assert "warnings" not in translated(client())


def test_the_language_is_found() -> None:
    told = translated(both(), q="The house is red.", source="auto")
    assert told["translatedText"] == "La casa es roja."
    assert told["detectedLanguage"]["language"] == "en"
    assert 90 < told["detectedLanguage"]["confidence"] <= 100
    several = translated(both(), q=["The house is red.", "La casa es roja.", "👍"], source="auto")
    assert [one["language"] for one in several["detectedLanguage"]][:2] == ["en", "es"]
    assert several["detectedLanguage"][2]["confidence"] == 0
    assert several["translatedText"] == ["La casa es roja.", "La casa es roja.", "👍"]
    assert "detectedLanguage" not in translated(both())


def test_alternatives_are_others_and_only_where_asked_for() -> None:
    told = translated(both(), q="The house is red.", alternatives=3)
    assert 1 <= len(told["alternatives"]) <= 3
    assert told["translatedText"] not in told["alternatives"]
    assert len(set(told["alternatives"])) == len(told["alternatives"])
    several = translated(both(), q=["The house is red.", "Good morning."], alternatives="2")
    assert len(several["alternatives"]) == 2


def test_detect() -> None:
    answer = both().post("/detect", data={"q": "¿Dónde está mi libro?"}).json()
    assert answer[0]["language"] == "es"
    assert {one["language"] for one in answer} == {"en", "es"}


def test_languages_tell_their_targets_sorted_with_themselves() -> None:
    told = {one["code"]: one for one in both().get("/languages").json()}
    assert told["en"] == {"code": "en", "name": "English", "targets": ["en", "es"]}
    assert translated(both(), target="en") == {"translatedText": "hello world"}


def test_the_settings_of_a_page_around_it() -> None:
    told = client_of(char_limit=500).get("/frontend/settings").json()
    assert told["charLimit"] == 500
    assert told["language"]["source"] == {"code": "en", "name": "English"}
    assert not told["keyRequired"]


def test_suggestions_are_kept_where_they_are_wanted(tmp_path: Path) -> None:
    better = {"q": "hello", "s": "buenas", "source": "en", "target": "es"}
    assert client().post("/suggest", json=better).status_code == 403
    on = client_of(suggestions=tmp_path / "suggestions.jsonl")
    assert on.post("/suggest", data=better).json() == {"success": True}
    assert json.loads((tmp_path / "suggestions.jsonl").read_text()) == better


def test_health_tells_that_it_can_take_requests() -> None:
    assert client().get("/health").json() == {"status": "ok", "waiting": 0}


def with_languages(folder: Path, source: str, target: str) -> str:
    """Copy the lesson's model and declare these languages for it."""
    shutil.copytree(packaged()["lesson"], folder)
    config = json.loads((folder / "config.json").read_text())
    config["about"] |= {"source_language": source, "target_language": target}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def test_a_model_that_cannot_be_loaded_is_the_server_s_fault_and_told(tmp_path: Path) -> None:
    broken = with_languages(tmp_path / "broken", "en", "xx")
    on = client_of("lesson", models=(broken,))
    (tmp_path / "broken/model.safetensors").write_bytes(b"broken")
    with pytest.raises(ModelError, match="is damaged"):  # the first model is loaded at startup
        client_of(broken)
    answer = on.post("/translate", json={**HELLO, "target": "xx"})
    assert (answer.status_code, answer.json()) == (500, {"error": "The model cannot be loaded"})
    shutil.copy(packaged()["lesson"] / "model.safetensors", broken)
    assert translated(on, target="xx") == {"translatedText": "hola mundo"}  # loading is retried


def test_the_description_names_every_route() -> None:
    description = client().get("/openapi.json").json()
    paths = {"/translate", "/detect", "/languages", "/suggest", "/frontend/settings", "/health"}
    assert paths <= set(description["paths"])
    fields = description["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(fields["required"]) == {"q", "source", "target"}
    assert client().get("/spec").json() == description


# --- refused requests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": 3}, "Invalid request: q parameter is not a string or a list of strings"),
        ({"q": ["a", 3]}, "Invalid request: q parameter is not a string or a list of strings"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "zz"}, "zz is not supported"),
        ({"target": "zz"}, "zz is not supported"),
        ({"source": ["en"]}, "Invalid request: source parameter is not a string"),
        ({"source": "es", "target": "en"}, "Invalid request: English (en) is not available as a target language from"),
        ({"format": "\ud800"}, "Invalid request: \ud800 format is not supported"),
        ({"format": "pdf"}, "Invalid request: pdf format is not supported"),
        ({"alternatives": "many"}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": -1}, "Invalid request: alternatives parameter must be a positive number"),
        ({"alternatives": 100_000}, "Invalid request: alternatives (100000) exceeds limit (16)"),
        ({"glossary": ["world"]}, "Invalid request: glossary is not an object"),
        ({"q": "\ud800"}, "Invalid request: the text is not valid Unicode"),
    ],
)
def test_a_wrong_field_is_told_in_words(fields: dict[str, Any], error: str) -> None:
    body = json.dumps({**HELLO, **fields})
    answer = client().post("/translate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert answer.json()["error"].startswith(error)


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"q": "\\ud8', b"7"])
def test_what_is_no_json_is_told(body: bytes) -> None:
    answer = client().post("/translate", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid JSON format"})


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", None])
def test_a_body_that_does_not_say_that_it_is_json_is_refused(kind: str | None) -> None:
    """Any web page could send such a request without a CORS preflight."""
    headers = {"content-type": kind} if kind else {}
    answer = client().post("/translate", content=json.dumps(HELLO).encode(), headers=headers)
    assert (answer.status_code, answer.json()) == (415, {"error": "Send JSON, with Content-Type: application/json"})


def test_a_form_that_is_none_is_told() -> None:
    for kind in ("multipart/form-data", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"):
        answer = client().post("/translate", content=b"\xff%zz\r\n--", headers={"content-type": kind})
        assert answer.status_code == 400, kind
        assert "error" in answer.json()


def test_limits_of_characters_texts_and_bytes() -> None:
    on = client_of(char_limit=12, batch_limit=2, body_limit=300)
    assert on.post("/translate", json=HELLO).status_code == 200
    answer = on.post("/translate", json={**HELLO, "q": "hello hello world"})
    assert answer.json() == {"error": "Invalid request: request (17) exceeds text limit (12)"}
    answer = on.post("/translate", json={**HELLO, "q": ["a"] * 3})
    assert answer.json() == {"error": "Invalid request: request (3) exceeds batch limit (2)"}
    answer = on.post("/translate", json={**HELLO, "q": "a" * 300})
    assert answer.status_code == 413
    assert "300 bytes" in answer.json()["error"]


def test_a_method_or_a_path_that_is_not_there() -> None:
    assert client().get("/translate").json() == {"error": "Method Not Allowed"}
    assert client().get("/nothing").json() == {"error": "Not Found"}


SITE = "https://example.org"


@pytest.mark.parametrize("origin", [SITE, "http://localhost:8000", "http://127.0.0.1.example.org", "null"])
def test_no_other_site_s_page_may_ask_unless_it_is_allowed(origin: str) -> None:
    """Check requests with a CORS preflight, such as JSON, and without one, such as forms."""
    headers = {"origin": origin}
    assert client().options("/translate", headers=headers).status_code == 403
    for answer in (
        client().post("/translate", json=HELLO, headers=headers),
        client().post("/translate", data=HELLO, headers=headers),
        client().post("/translate", content=b"{}", headers={**headers, "content-type": "text/plain"}),
        client().get("/languages", headers=headers),
    ):
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
        assert "--cors" in answer.json()["error"]


def test_its_own_page_programs_and_extensions_may_ask() -> None:
    for origin in ("http://localhost", "https://localhost", "moz-extension://1b2c", "app://obsidian.md"):
        assert client().post("/translate", data=HELLO, headers={"origin": origin}).status_code == 200


@pytest.mark.parametrize("cors", [SITE, "*"])
def test_a_site_that_is_allowed_may_ask_but_not_for_the_page(cors: str) -> None:
    on, headers = client_of(cors=cors), {"origin": SITE}
    asked = on.options("/translate", headers=headers)
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == cors
    assert on.post("/translate", json=HELLO, headers=headers).headers["access-control-allow-origin"] == cors
    other = on.post("/translate", json=HELLO, headers={"origin": "https://other.example"})
    assert other.status_code == (200 if cors == "*" else 403)
    assert on.get("/openapi.json", headers=headers).status_code == 403


def test_a_small_request_for_much_work_is_refused_by_default() -> None:
    for texts in (["a"] * 30_000, [""] * 400_000, ["a" * 1000] * 400):
        answer = client().post("/translate", json={**HELLO, "q": texts})
        assert answer.status_code == 400
        assert "exceeds" in answer.json()["error"]
    terms = {f"term {n}": "x" for n in range(1000)}
    answer = client().post("/translate", json={**HELLO, "q": "a " * 50_000, "glossary": terms})
    assert answer.json()["error"] == "Invalid request: terms times characters (100000000) exceeds limit (10000000)"


def test_as_many_alternatives_as_the_engine_can_find() -> None:
    on = client_of(None, alternatives_limit=64)
    assert on.post("/translate", json={**HELLO, "alternatives": 63}).status_code == 200
    answer = on.post("/translate", json={**HELLO, "alternatives": 64})
    assert answer.json() == {"error": "Invalid request: alternatives (64) exceeds limit (63)"}


# --- keys and limits --------------------------------------------------------------------------------------------------


def test_a_key_is_needed_counts_and_can_be_taken_away(tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("# who, key, requests a minute, characters\nalice s3cret 3 20\nbob other\n", encoding="utf-8")
    on = client_of(keys=keys, key_required=True, char_limit=5)
    within_a_minute()
    assert on.post("/translate", json=HELLO).status_code == 403
    wrong = on.post("/translate", json={**HELLO, "api_key": "wrong"})
    assert (wrong.status_code, wrong.json()) == (403, {"error": "Invalid API key"})
    assert on.post("/translate", data={**HELLO, "api_key": "s3cret"}).status_code == 200
    assert on.post("/translate", json={**HELLO, "q": ["a", "b"], "api_key": "s3cret"}).status_code == 200
    slow = on.post("/detect", json={"q": "hello", "api_key": "s3cret"})
    assert slow.status_code == 429
    assert slow.json()["error"].startswith("Slowdown: ")
    assert 1 <= int(slow.headers["retry-after"]) <= 60
    keys.write_text("bob other\n", encoding="utf-8")
    assert on.post("/translate", json={**HELLO, "api_key": "s3cret"}).status_code == 403


@pytest.mark.parametrize("line", ["alice", "alice s3cret many", "alice s3cret 1 2 3"])
def test_a_file_of_keys_that_is_none_is_told(line: str, tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text(line, encoding="utf-8")
    with pytest.raises(ConfigError, match="is not a file of API keys"):
        read_keys(tmp_path / "keys.txt")


def test_who_asks_is_whom_the_connection_comes_from_unless_a_proxy_is_named() -> None:
    """Otherwise, a client could pose as a different one in every request by setting `X-Forwarded-For`."""
    for proxies, statuses in (((), [200, 200, 429]), (("127.0.0.1",), [200, 200, 200])):
        options = [word for proxy in proxies for word in ("--proxy", proxy)]
        with server("--req-limit", "2", *options) as there:
            found = []
            within_a_minute()
            for number in range(3):
                headers = {"Content-Type": "application/json", "X-Forwarded-For": f"192.0.2.{number}"}
                found.append(httpx.post(f"{there.address}translate", json=HELLO, headers=headers).status_code)
            assert found == statuses


def test_a_minute_later_there_is_room_again() -> None:
    now = 30.0
    limits = RequestLimits(lambda: now)
    limits.take("a", 2, 2)
    with pytest.raises(Refusal) as refused:
        limits.take("a", 1, 2)
    assert refused.value.headers == {"Retry-After": "30"}
    limits.take("b", 2, 2)
    now = 61.0
    limits.take("a", 2, 2)


# --- languages --------------------------------------------------------------------------------------------------------


def test_a_way_goes_through_as_few_languages_as_can_be() -> None:
    pairs = [("es", "en"), ("en", "es"), ("en", "de"), ("de", "fr"), ("en", "fr")]
    assert route("es", "de", pairs) == [("es", "en"), ("en", "de")]
    assert route("es", "fr", pairs) == [("es", "en"), ("en", "fr")]
    assert route("fr", "en", pairs) is None
    assert route("en", "en", pairs) == []
    assert {one.code: one.targets for one in languages(pairs)}["fr"] == ("fr",)


def test_a_text_goes_through_a_language_between(tmp_path: Path) -> None:
    first, second = with_languages(tmp_path / "first", "en", "es"), with_languages(tmp_path / "second", "es", "xx")
    on = client_of(first, models=(second,))
    twice = Translator.load(second).translate(Translator.load(first).translate("hello world").text).text
    assert translated(on, target="xx")["translatedText"].casefold() == twice.casefold()


@pytest.mark.parametrize(
    ("source", "translation", "wanted"),
    [
        ("Hello world", "Hola mundo.", "Hola mundo"),
        ("Hello world.", "Hola mundo", "Hola mundo."),
        ("hello", "Hola", "hola"),
        ("HELLO YOU", "Hola tú", "HOLA TÚ"),
        ("Is it?", "¿Lo es?", "¿Lo es?"),
        ("one, etc", "uno, etc...", "uno, etc..."),
        ("see NASA", "La NASA.", "La NASA"),
        ("nasa", "NASA", "NASA"),
        ("Hello \n", "Hola. \n", "Hola \n"),
        ("", "", ""),
    ],
)
def test_a_translation_looks_as_its_source_does(source: str, translation: str, wanted: str) -> None:
    assert as_source(source, translation) == wanted


def test_a_language_that_the_library_does_not_know_comes_last() -> None:
    detector = Detector(["xx", "en", "pt-BR"])
    assert [one.language for one in detector.ranked("Bom dia, onde está o meu livro?")] == ["pt-BR", "en", "xx"]
    assert {one.confidence for one in detector.ranked("12 👍")} == {0.0}
    assert [one.confidence for one in Detector(["xx"]).ranked("hello")] == [0.0]


# --- clients ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with server(model="") as ready:
        yield ready


def test_the_public_client_works_unchanged(running: Server) -> None:
    client = LibreTranslateAPI(running.address)
    assert client.translate("The house is red.", "en", "es") == "La casa es roja."
    assert client.detect("The house is red.")[0]["language"] == "en"
    assert {language["code"] for language in client.languages()} == {"en", "es"}


def test_options_are_environment_variables_too(run_vidrio: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LT_KEY_REQUIRED", "true")
    done = run_vidrio("serve", "--model", "lesson")
    assert done.returncode == 2
    assert "--key-required needs --keys" in done.stderr


# --- files ------------------------------------------------------------------------------------------------------------


def upload(on: TestClient, text: str = "hello world\n", **fields: str) -> Any:
    return on.post("/translate_file", files={"file": ("a.txt", text)}, data={"source": "en", "target": "es", **fields})


def test_a_translated_file_is_private_and_is_gone_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "TIDY_SECONDS", 0.05)
    folder = tmp_path / "files"
    with client_of(files=folder) as on:
        url = upload(on).json()["translatedFileUrl"]
        assert on.get(url).text == "hola mundo\n"
        (path,) = folder.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        half = folder / f".{path.name}.0123456789abcdef.part"  # left by a killed server
        half.touch()
        (folder / "notes.txt").touch()
        for old in (path, half, folder / "notes.txt"):
            os.utime(old, times=(0, 0))
        assert on.get(url).status_code == 404, "it is too old, though it may still be there"
        wait_for(lambda: not path.exists() and not half.exists())
        assert [left.name for left in folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("folder", ["/proc/x", "/dev/null/x"])
def test_a_folder_in_which_no_file_can_be_kept_is_told_at_the_start(folder: str) -> None:
    with pytest.raises(ConfigError, match="no files can be kept in"):
        client_of(files=Path(folder))


def test_a_file_with_too_much_text_is_refused(tmp_path: Path) -> None:
    on = client_of(files=tmp_path, file_char_limit=20)
    assert upload(on).status_code == 200
    assert upload(on, "hello world " * 10).json()["error"].endswith("exceeds text limit (20)")
