"""Test `vidrio site`: its files, its errors, and that the standalone page in Chromium computes what Python does."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import violations
from site_texts import texts
from vidrio.errors import ConfigError, ModelError
from vidrio.model.find import find
from vidrio.serve.looking import Looking, Run
from vidrio.serve.questions import ANSWERS
from vidrio.serve.translating import MAX_TENSORS, Question, RunRequest
from vidrio.site.browser.safetensors.numpy import save
from vidrio.site.first import TEXT as TEXT_FIRST
from vidrio.site.writing import RUNTIME, write_site

TEXT = "The old man and his dog walked slowly along the river every morning."
NOW = 240_000  # timeout in milliseconds for starting Python on a busy machine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("site") / "site"
    write_site(to, (), lambda what: None)
    return to


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    """Serve the folder with Python's http.server and yield its address."""
    command = [sys.executable, "-u", "-m", "http.server", "--directory", str(folder), "--bind", "127.0.0.1", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        port = process.stdout.readline().split(" port ")[1].split()[0]
        yield f"http://127.0.0.1:{port}/"
        process.terminate()


@pytest.fixture(scope="module")
def page(site: str, browser: Browser) -> Iterator[Page]:
    """Yield the page after its first translation. Afterwards, check that the console stayed empty."""
    said: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{site}#{urlencode({'text': TEXT})}")
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.locator(".towers canvas").first.wait_for(timeout=NOW)
    yield page
    context.close()
    assert not said


def asked(page: Page, name: str, **question: Any) -> Any:
    """Return the answer of Python in the browser."""
    told = page.evaluate("([name, body]) => vidrio.ask(name, body).then(answer => answer.text())", [name, question])
    return json.loads(told)


def digests(page: Page, run: RunRequest, addresses: list[str]) -> list[str]:
    """Return checksums of a run's quantities, as computed in the browser."""
    ask = """async ([name, body]) => {
        const bytes = await (await vidrio.ask(name, body)).arrayBuffer();
        const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
        return [...found].map(byte => byte.toString(16).padStart(2, "0")).join("");
    }"""
    body = {"text": run.text, "model": run.model, "changes": run.changes}
    parts = [addresses[at : at + MAX_TENSORS] for at in range(0, len(addresses), MAX_TENSORS)]
    return [page.evaluate(ask, ["tensors", {**body, "addresses": part}]) for part in parts]


def digests_here(run: Run, addresses: list[str]) -> list[str]:
    parts = [addresses[at : at + MAX_TENSORS] for at in range(0, len(addresses), MAX_TENSORS)]
    arrays = ({name: run.trace.values[name] for name in part} for part in parts)
    return [hashlib.sha256(save(some)).hexdigest() for some in arrays]


def assert_same(page: Page, looking: Looking, run: RunRequest) -> None:
    """Check that the browser's translation equals Python's, and so does every quantity, bit for bit."""
    here = looking.run(run)
    told = asked(page, "run", text=run.text, model=run.model, changes=run.changes)
    assert told["translation"] == here.translation, run.text
    addresses = [name for name, value in here.trace.values.items() if value.dtype.name != "int64"]
    assert digests(page, run, addresses) == digests_here(here, addresses), run.text


# --- the files written ------------------------------------------------------------------------------------------------


def test_the_folder_holds_all_that_it_names(folder: Path) -> None:
    told = json.loads((folder / "site.json").read_text("utf-8"))
    assert (told["default"], list(told["models"])) == ("en-es", ["en-es", "es-en"])
    assert set(told["sizes"]) == {path.relative_to(folder).as_posix() for path in (folder / "files").iterdir()}
    for path, size in told["sizes"].items():
        data = (folder / path).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()[:12]) == (size, path.split(".")[-2])
    html = (folder / "index.html").read_text("utf-8")
    assert "manifest.webmanifest" in html
    assert "data-site" in html
    assert json.loads((folder / "manifest.webmanifest").read_text("utf-8"))["icons"]
    assert max(size for path, size in told["sizes"].items() if path in told["models"].values()) < 12_000_000


def test_the_same_models_give_the_same_bytes_and_the_command_tells_what_they_weigh(
    call_vidrio: Callable[..., Any], tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_site(first, ("lesson",), lambda what: None)
    done = call_vidrio("site", "--to", str(second), "--model", "lesson")
    assert done.returncode == 0, done.stderr
    assert json.loads((second / "site.json").read_text("utf-8"))["default"] == "lesson"
    python = sum(path.stat().st_size for path in (second / "files").iterdir())
    assert f"{python:12,} bytes  Python and the engine\n" in done.stdout
    names = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    assert names == {path.relative_to(second) for path in second.rglob("*") if path.is_file()}
    assert not [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()]


def test_the_runtime_is_the_one_that_was_made(repository: Path) -> None:
    lines = (RUNTIME / "made-from.txt").read_text("utf-8").splitlines()
    locked = json.loads((repository / "page/runtime/package-lock.json").read_text("utf-8"))["packages"]
    packages = [f"{name}@{told['version']} {told['integrity']}" for name in ("pyodide", "@emscripten-forge/numpy")
                for told in [locked[f"node_modules/{name}"]]]  # fmt: skip
    assert lines[:2] == packages
    for line in lines[2:]:
        checksum, name = line.split()
        assert hashlib.sha256((RUNTIME / name).read_bytes()).hexdigest() == checksum
    assert sum(path.stat().st_size for path in RUNTIME.iterdir()) < 7_000_000


def test_folders_and_models_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(ConfigError, match="not an empty folder"):
        write_site(tmp_path / "full", (), lambda what: None)
    with pytest.raises(ModelError, match="is not a model"):
        write_site(tmp_path / "new", ("nowhere",), lambda what: None)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for path in find("lesson").iterdir():
        if path.is_file():
            (foreign / path.name).write_bytes(path.read_bytes())
    told = json.loads((foreign / "config.json").read_text("utf-8"))
    told["about"]["source_language"] = "de"
    (foreign / "config.json").write_text(json.dumps(told))
    with pytest.raises(ModelError, match="cannot be used in a browser"):
        write_site(tmp_path / "new", (str(foreign),), lambda what: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["foreign", "full"], "nothing is left behind"
    assert (tmp_path / "full" / "file").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_told(call_vidrio: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = call_vidrio("site", "--to", str(tmp_path / "file" / "site"), "--model", "lesson")
    assert (done.returncode, "is a file" in done.stderr) == (1, True)


# --- the standalone page ---------------------------------------------------------------------------------------------


def test_the_first_run_is_shown_while_python_is_loading(site: str, browser: Browser) -> None:
    page = browser.new_page()
    page.route("**/files/packages.*", lambda route: None)  # never arrives, so Python cannot start
    page.goto(site)
    looking = Looking("en-es")
    told = ANSWERS["run"](looking, Question(text=TEXT_FIRST))
    expect(page.locator("#translation")).to_have_text(told["translation"])
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.locator(".towers canvas").first).to_be_visible()
    expect(page.locator(".ribbons path").last).to_be_attached()
    expect(page.locator("#why h3")).to_be_visible()
    page.locator(".tokens button").nth(1).click()
    why = ANSWERS["why"](looking, Question(text=TEXT_FIRST, step=1))
    expect(page.locator("#why .sum b")).to_have_text(f"{why['difference']:.4f}")
    page.close()


def test_the_page_alone_has_python_s_numbers_and_needs_no_network(page: Page, site: str) -> None:
    looking = Looking("en-es")
    page.locator("#text").fill("I bought a new car yesterday.")
    expect(page.locator("#translation")).to_have_text(
        looking.run(RunRequest("I bought a new car yesterday.", "en-es")).translation
    )
    assert_same(page, looking, RunRequest("I bought a new car yesterday.", "en-es"))
    for change in (("mask", "off"), ("set", "enc.0.self.scores.h0[0,0]=3")):
        assert_same(page, looking, RunRequest("Hello.", "en-es", changes=(change,)))
    # In floating point, NumPy's exp and products differ in the last bits from one processor to the next.
    lesson = {"text": "hello world", "model": "lesson", "address": "dec.0.cross.weights.h0[0,1]"}
    there = asked(page, "receipt", **lesson)
    assert there["agrees"]
    assert there["value"] == pytest.approx(ANSWERS["receipt"](looking, Question(**lesson))["value"], rel=1e-12)
    own = Question(text=TEXT, model="en-es", address="dec.1.cross.scores.h1[0,1]", changes=(), answer="El viejo.")
    plain = {"text": own.text, "model": own.model, "address": own.address}
    here = json.loads(json.dumps(ANSWERS["receipt"](looking, own), default=lambda value: value.tolist()))
    assert asked(page, "receipt", **plain) == here
    refused = page.evaluate(
        "vidrio.ask('receipt', {text: 'a', address: 'nothing'}).catch(error => [error.what, error.found])"
    )
    assert refused[0] == "there is no 'nothing' in this run"

    app = page.evaluate("fetch('site.json').then(answer => answer.json()).then(site => site.app)")
    kept = f"caches.open('vidrio-unpacked').then(store => store.match('{app}?compiled')).then(Boolean)"
    page.wait_for_function(kept, timeout=NOW)  # the byte code of the imported modules
    page.wait_for_function("navigator.serviceWorker.ready.then(({ active }) => active?.state === 'activated')")
    page.context.set_offline(True)
    try:
        page.goto("about:blank")  # then follow a link that opens a small model first
        page.goto(f"{site}#{urlencode({'text': 'hello world', 'model': 'lesson'})}")
        expect(page.locator("#translation")).to_have_text("hola mundo", timeout=NOW)
        page.locator("header select").first.select_option("en-es")
        page.locator("#text").fill("Good morning.")
        expect(page.locator("#translation")).to_have_text("Buenos días.", timeout=NOW)
        page.get_by_role("button", name="Lessons").click()
        expect(page.get_by_role("region", name="Lesson").locator("article p").first).to_be_visible()
    finally:
        page.context.set_offline(False)


def test_a_word_is_explained_alike(page: Page) -> None:
    looking = Looking("en-es")
    car = {"text": "I bought a new car yesterday.", "model": "en-es", "step": 4}
    house = {"rival": "▁una", "other": "I bought a new house yesterday."}
    for name, more in (("why", {}), ("why_words", {}), ("why_heads", {}), ("why_rows", house)):
        there, here = asked(page, name, **car, **more), ANSWERS[name](looking, Question(**car, **more))
        told = [flat(json.loads(json.dumps(answer))) for answer in (there, here)]
        assert told[0][0] == told[1][0], name
        assert told[0][1] == pytest.approx(told[1][1], rel=1e-9, abs=1e-12), name


def flat(answer: Any) -> tuple[list[Any], list[float]]:
    """Flatten an answer into two lists: its other values, and its floats."""
    if isinstance(answer, dict | list):
        found = [flat(one) for one in (answer.values() if isinstance(answer, dict) else answer)]
        return [text for texts, _ in found for text in texts], [x for _, numbers in found for x in numbers]
    return ([], [answer]) if isinstance(answer, float) else ([answer], [])


def test_nothing_stands_in_the_way_of_a_screen_reader(page: Page) -> None:
    assert not violations(page)


def test_what_needs_a_computer_is_told(page: Page) -> None:
    expect(page.get_by_text("install Vidrio on your computer")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["en-es", "es-en"])
def test_two_hundred_sentences_have_python_s_numbers(page: Page, direction: str) -> None:
    looking = Looking(direction)
    for text in [text for text in texts(400, direction) if any(map(str.isalpha, text))][:200]:
        assert_same(page, looking, RunRequest(text, direction))


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["en-es", "es-en"])
def test_two_thousand_texts_are_read_and_translated_alike(page: Page, direction: str) -> None:
    looking = Looking(direction)
    for text in texts(2_000, direction):
        own = Question(text=text, model=direction)
        told = asked(page, "translate", text=text, model=direction)
        assert told == ANSWERS["translate"](looking, own), text
