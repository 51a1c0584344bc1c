"""Test the server: numbers come from the reference, and invalid, oversized and cross-site requests are rejected."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from safetensors.numpy import load

from vidrio.errors import ConfigError
from vidrio.glass.receipts import locate, receipt
from vidrio.glass.trace import parse_address
from vidrio.look.run import look, open_model, target_ids
from vidrio.serve.app import create_app, serve
from vidrio.serve.guards import HEADERS, LARGEST_BODY
from vidrio.serve.looking import Looking
from vidrio.serve.questions import ANSWERS
from vidrio.serve.queue import Queue
from vidrio.serve.settings import Settings
from vidrio.serve.translating import Question
from vidrio.serve.views import SEARCHES, lane_of
from vidrio.translate.translator import Translator
from waiting import within_a_minute

TEXT = "I bought a new car."
HOSTILE = '<img src=x onerror="alert(1)"> </script> \u202e & \x00 {{7*7}}'


@cache
def client() -> TestClient:
    return TestClient(create_app("lesson"), base_url="http://localhost")


@cache
def packaged() -> TestClient:
    return TestClient(create_app(), base_url="http://localhost")


def ask(where: str, on: TestClient | None = None, **what: Any) -> Any:
    answer = (on or client()).post(f"/api/{where}", json=what)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_run_is_what_translating_and_looking_tell() -> None:
    told = ask("run", packaged(), text=TEXT)
    assert told["translation"] == Translator.load().translate(TEXT).text
    model = open_model()
    seen = look(model, TEXT, target=target_ids(model, told["translation"]))
    assert [step["id"] for step in told["steps"]] == seen.chosen_ids
    assert [token["id"] for token in told["source"]] == list(seen.source_ids)
    for step, row in zip(told["steps"], seen.trace.values["out.prob"], strict=True):
        best = [candidate["p"] for candidate in step["best"]]
        assert best[:5] == sorted(row.tolist(), reverse=True)[:5]
        assert all(c["p"] == seen.trace.number(parse_address(c["address"])) for c in step["best"])


def test_every_tensor_is_the_glass_s_own_to_the_last_bit() -> None:
    model = open_model("lesson")
    told = ask("run", text="hello world")
    trace = look(model, "hello world", target=[step["id"] for step in told["steps"]]).trace
    names = [stage["address"] for stage in ask("machine")["stages"]]
    tensors = load(client().post("/api/tensors", json={"text": "hello world", "addresses": names[:500]}).content)
    tensors |= load(client().post("/api/tensors", json={"text": "hello world", "addresses": names[500:]}).content)
    assert set(tensors) == set(names)
    for name, array in tensors.items():
        assert np.array_equal(array, trace.array(name)), name


@pytest.mark.parametrize(
    "address",
    [
        *("enc.0.self.Q.h0[1,2]", "enc.0.self.scores.h1[0,1]", "dec.2.cross.weights.h0[1,0]", "out.prob[0,3]"),
        *("enc.1.ffn.active[0,3]", "enc.0.self.norm.var[1]", "enc.in[1,1]", "out.score[1]", "src.positions[1,2]"),
    ],
)
def test_the_terms_of_a_receipt_add_up_and_its_links_lead_somewhere(address: str) -> None:
    told = ask("receipt", text="hello world", address=address)
    assert told["agrees"]
    if told["terms"]:
        rows = told["terms"]["rows"]
        assert rows[-1]["so_far"] == pytest.approx(told["terms"]["sum"], rel=1e-12)
        if told["terms"]["kind"] == "product":
            assert all(row["value"] == row["factors"][0]["value"] * row["factors"][1]["value"] for row in rows)
    for source in told["made_from"]:
        assert ask("receipt", text="hello world", address=source["address"])["value"] == source["value"]


def test_a_parameter_s_receipt_names_its_bytes_and_what_it_is_copied_as() -> None:
    told = ask("receipt", text="hello world", address="enc.0.self.WQ.h0[0,1]")
    assert told["stored"]["file"] == "model.safetensors"
    assert told["terms"] is None
    spec = {"text": "hello world", "address": "enc.0.self.scores.h0[0,0]", "kind": "spreadsheet"}
    line = client().post("/api/copy", json=spec).text
    trace = look(open_model("lesson"), "hello world").trace
    assert line == receipt(trace, locate(trace, parse_address("enc.0.self.scores.h0[0,0]"))).copy("spreadsheet")


# --- what-ifs and searches --------------------------------------------------------------------------------------------


def test_a_change_travels_with_the_request_and_is_compared() -> None:
    told = ask("run", text="hello world", changes=[["without", "positions"], ["heads-off", "enc.0.self.h0"]])
    assert told["changed"]["changes"][0]["option"] == "--without positions"
    assert told["changed"]["before"] == "hola mundo"
    assert any(layer["largest"] for layer in told["changed"]["layers"])
    assert ask("run", text="hello world")["changed"] is None


def test_nan_is_told_in_words() -> None:
    told = ask("run", text="hello world", changes=[["set", "enc.0.self.scores.h0[0,0]=nan"]])
    assert told["changed"]["first_nan"] == "enc.0.self.scores.h0[0,0]"
    assert ask("receipt", text="hello world", address="enc.0.self.scores.h0[0,0]")["value"] != "NaN"


def test_the_search_tells_every_hypothesis_and_greedy_beside_it() -> None:
    told = ask("search", packaged(), text=TEXT)
    place, words = told["best"], []
    while place >= 0:
        words.insert(0, told["nodes"][place]["word"])
        place = told["nodes"][place]["parent"]
    assert words == [step["token"] for step in ask("run", packaged(), text=TEXT)["steps"]]
    assert told["beam"] == 4
    assert {node["fate"] for node in told["nodes"]} >= {"kept", "dropped", "finished"}
    assert all(node["why"] for node in told["nodes"] if node["fate"] == "dropped")
    assert told["greedy"]["score"] <= told["found"]["score"]


def test_the_loss_of_an_answer_needs_no_run_and_no_copy_of_the_model() -> None:
    looking = Looking()
    question = Question(text=TEXT, answer="Compré un coche nuevo.", changes=(("without", "ffn"),))
    told = ANSWERS["forced"](looking, question)
    asked = question.request(looking.default)
    assert told["tokens"][-1]["should_say"] == "</s>"
    assert not looking.is_kept(asked)
    assert not looking.is_kept(replace(asked, changes=()))
    model = looking.loaded(asked.model)
    floating = model.in_floating_point().machine
    assert model.machine.whole
    assert not floating.whole
    assert all(floating.parameters[name] is array for name, array in model.machine.parameters.items())


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("name", SEARCHES)
def test_one_search_is_computed_at_a_time_even_if_its_run_is_kept(name: str, is_kept: bool) -> None:
    queue = Queue(threads=4, most=1000)
    assert lane_of(queue, name, is_kept=is_kept, is_slow=False) is queue.glass
    assert lane_of(queue, "receipt", is_kept=is_kept, is_slow=True) is (queue.short if is_kept else queue.glass)
    assert lane_of(queue, "run", is_kept=False, is_slow=False) is queue.runs


# --- rejected requests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "what", "said"),
    [
        ("run", {"text": "hello", "model": "../../etc"}, "this server has no model"),
        ("run", {"text": "hello", "changes": [["without", "sense"]]}, "these changes cannot be made"),
        ("run", {"text": "hello", "sentence": 7}, "the text does not have a sentence 7"),
        ("receipt", {"text": "hello", "address": "enc.9.self"}, "there is no"),
        ("receipt", {"text": "", "address": "enc.in[0,0]"}, "the text is empty"),
        ("tensors", {"text": "hello", "addresses": ["enc.in[0,0]"]}, "is one number"),
        ("copy", {"text": "hello", "address": "enc.in[0,0]", "kind": "poem"}, "there is no copy"),
        ("choose", {"text": "hello", "step": 99}, "there is no decoding step 99"),
        ("receipt", {"text": "hello", "address": "enc.\ud800"}, "is not"),
    ],
)
def test_what_cannot_be_is_refused_in_words(where: str, what: dict[str, Any], said: str) -> None:
    headers = {"content-type": "application/json"}
    answer = client().post(f"/api/{where}", content=json.dumps(what), headers=headers)
    assert answer.status_code == 400
    assert said in answer.json()["what"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"text": 3}', 422),
        (b'{"text": "a", "unheard": 1}', 422),
        (b'{"text": "' + b"a" * 4001 + b'"}', 422),
        (b"\xff\xfe", 400),
        (b"[1]", 400),
        (b"[" * 30_000, 400),
        (b" " * (LARGEST_BODY + 1), 413),
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes, status: int) -> None:
    answer = client().post("/api/run", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["what"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_body_that_another_site_can_send_without_asking_is_not_read(kind: str | None) -> None:
    headers = {"content-type": kind} if kind else {}
    for where in ("run", "translate", "search"):
        answer = client().post(f"/api/{where}", content=b'{"text": "a"}', headers=headers)
        assert answer.status_code == 415


def test_a_question_needs_the_key_that_a_translation_needs(tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text("alice s3cret 20 15\n", encoding="utf-8")
    settings = Settings(keys=tmp_path / "keys.txt", key_required=True)
    on = TestClient(create_app("lesson", settings), base_url="http://localhost")
    for name in ANSWERS:
        refused = on.post(f"/api/{name}", json={"text": "hello"})
        assert (refused.status_code, list(refused.json())) == (401, ["what"]), name
        assert refused.headers["www-authenticate"] == "Bearer"
        wrong = on.post(f"/api/{name}", json={"text": "hello"}, headers={"Authorization": "Bearer wrong"})
        assert (wrong.status_code, wrong.json()) == (403, {"what": "Invalid API key"}), name
    key = {"Authorization": "Bearer s3cret"}
    assert on.post("/api/translate", json={"text": "hello"}, headers=key).json()["translation"] == "hola"
    long = on.post("/api/translate", json={"text": "hello hello world"}, headers=key)
    assert (long.status_code, long.json()["what"]) == (400, "Invalid request: request (17) exceeds text limit (15)")
    hello = {"q": "hello", "source": "en", "target": "es"}
    assert on.post("/translate", json=hello, headers=key).status_code == 200
    within_a_minute()
    for _ in range(100):
        if on.post("/api/translate", json={"text": "hello"}, headers=key).status_code == 429:
            break
    assert on.post("/translate", json=hello, headers=key).status_code == 429
    assert on.get("/api/models").status_code == on.get("/").status_code == 200  # the page must load to ask for a key


@pytest.mark.parametrize("host", ["evil.example", "testserver", "127.0.0.1.evil.example:5000", ""])
def test_another_name_for_this_machine_is_not_answered(host: str) -> None:
    assert client().get("/", headers={"host": host}).status_code == 421


def test_every_answer_has_the_headers_that_keep_strangers_out() -> None:
    answers = [client().get("/"), client().get("/nothing"), client().post("/api/run", json={"text": 1})]
    answers += [client().post("/api/run", json={"text": "hello"}), client().get("/", headers={"host": "evil.example"})]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_hostile_text_stays_text() -> None:
    answer = client().post("/api/run", json={"text": HOSTILE})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["text"] == HOSTILE
    half = client().post("/api/run", content=b'{"text": "\\ud83d"}', headers={"content-type": "application/json"})
    assert half.status_code == 400
    assert ask("run", text="")["empty"]


def test_nothing_outside_the_page_s_folder_is_served() -> None:
    for path in ("/assets/../app.py", "/assets/%2e%2e/app.py", "/assets/..%2f..%2fapp.py", "/assets//etc/passwd"):
        assert client().get(path).status_code == 404


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_told() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}") as caught:
            serve("lesson", "127.0.0.1", port, print)
    assert "--port" in caught.value.do


def test_a_model_that_is_not_there_is_told(call_vidrio: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = call_vidrio("serve", "--model", "nowhere")
    assert done.returncode == 1
    assert "nowhere is not a model" in done.stderr


def test_tokens_are_compared_by_their_learned_rows() -> None:
    alike = ask("tokens", text="hello world")["alike"]
    assert np.allclose(np.diag(alike["cosines"]), 1)
    assert [one["token"] for one in alike["nearest"]] == ["hello", "world"]
