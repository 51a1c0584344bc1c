"""Test the page as a standalone file: its numbers equal the run's bit for bit, and nothing is loaded or injected."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import violations
from small_models import write_model
from vidrio.glass.trace import Trace, parse_address
from vidrio.look.changed import BeforeAfter, look_changed
from vidrio.look.page import run_page
from vidrio.look.run import LoadedModel, default_options, look, open_model
from vidrio.look.writing import CommandLine
from vidrio.search import Tree

EVIL = "<script>alert(1)</script> \"'><img src=x onerror=alert(1)> hello \u202e </script"

Open = Callable[[str], Page]


@contextmanager
def opener(browser: Browser, folder: Path) -> Iterator[Open]:
    """Yield a function that opens a page from disk, offline. Fail if a page reports a problem on the console."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, offline=True)
    said: list[str] = []

    def opened(source: str) -> Page:
        (folder / "page.html").write_text(source, encoding="utf-8")
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((folder / "page.html").as_uri())
        page.locator(".towers canvas, section.card").first.wait_for(state="attached", timeout=60_000)
        return page

    yield opened
    context.close()
    assert not said


@pytest.fixture
def open_file(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    with opener(browser, tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def lesson() -> LoadedModel:
    return open_model("lesson")


def run_of(model: LoadedModel, text: str, *asked: tuple[str, str]) -> BeforeAfter:
    return look_changed(model, text, list(asked), tree=Tree())


def page_of(tried: BeforeAfter) -> str:
    return run_page(tried, CommandLine(tried.after.text))


def tensors(page: Page, names: list[str]) -> dict[str, np.ndarray]:
    """Return the page's copies of these tensors, bit for bit."""
    found = page.evaluate(
        """async (names) => [...await vidrio.tensors(names)].map(([name, { data }]) => {
            const bytes = new Uint8Array(Float64Array.from(data).buffer);
            const parts = [];
            for (let at = 0; at < bytes.length; at += 9999)
                parts.push(String.fromCharCode(...bytes.subarray(at, at + 9999)));
            return [name, btoa(parts.join(""))];
        })""",
        names,
    )
    return {name: np.frombuffer(b64decode(bits), np.float64) for name, bits in found}


def same(told: np.ndarray, array: np.ndarray) -> bool:
    return np.array_equal(told, np.ravel(array).astype(np.float64), equal_nan=True)


def every_number_is_the_runs(page: Page, trace: Trace) -> None:
    names = list(trace.values)
    found = tensors(page, names)
    assert set(found) == set(names)
    for name in names:
        assert same(found[name], trace.array(name)), name
    parameters = [name for name in trace.addresses() if trace.stages[name].of_the_model]
    for name, told in tensors(page, parameters).items():
        assert same(told, trace.array(name)), name


def shapes(tmp_path: Path) -> Iterator[BeforeAfter]:
    text = "bala core xyz fula !"
    for shape, more in (
        ("encoder", {"n_classes": 3, "target_vocabulary": 0, "tying": "none"}),
        ("decoder", {"source_vocabulary": 0, "norm": "pre"}),
        ("encoder-decoder", {"norm": "pre", "positions": "learned", "attention_bias": True, "activation": "swish"}),
    ):
        write_model(tmp_path / shape, shape=shape, **more)
        yield BeforeAfter.of_one(look(open_model(tmp_path / shape), text))
    model = open_model(tmp_path / "encoder-decoder")
    yield run_of(model, text, ("mask", "off"))
    yield run_of(model, text, ("without", "layer-norm"), ("softmax", "naive"), ("set", "enc.0.ffn.out[0,0]=3"))


def test_every_number_of_a_small_model_is_there(open_file: Open, lesson: LoadedModel) -> None:
    tried = run_of(lesson, "Hello world")
    page = open_file(page_of(tried))
    every_number_is_the_runs(page, tried.after.trace)
    told = tensors(page, tried.after.trace.addresses())
    assert set(told) == set(tried.after.trace.addresses()), "parameters too: there is room"


def test_machines_of_every_shape_and_changed_ones(open_file: Open, tmp_path: Path) -> None:
    for tried in shapes(tmp_path):
        page = open_file(page_of(tried))
        every_number_is_the_runs(page, tried.after.trace)


@pytest.fixture(scope="module")
def packaged() -> BeforeAfter:
    model = open_model()
    seen = look(model, "I bought a new car yesterday.", options=default_options(model.config), tree=Tree())
    return BeforeAfter.of_one(seen)


@pytest.fixture(scope="module")
def packaged_page(packaged: BeforeAfter, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The file is large, so it is opened only once. The test that navigates in it comes last."""
    source = page_of(packaged)
    assert len(source) < 5_000_000
    with opener(browser, tmp_path_factory.mktemp("packaged")) as opened:
        yield opened(source)


def test_of_the_packaged_model_too(packaged: BeforeAfter, packaged_page: Page) -> None:
    every_number_is_the_runs(packaged_page, packaged.after.trace)
    assert not tensors(packaged_page, ["enc.0.self.WQ.h0"]), "there is no room for parameters"


def test_a_number_has_its_formula_and_the_command_that_works_it_out(packaged: BeforeAfter, packaged_page: Page) -> None:
    told = packaged_page.evaluate("(address) => vidrio.answer('receipt', { address })", "enc.0.self.scores.h1[0,2]")
    trace = packaged.after.trace
    assert told["value"] == trace.number(parse_address("enc.0.self.scores.h1[0,2]"))
    assert (told["formula"], told["code"]) == ("Q Kᵀ", "scores = in_order(Q, K.T)")
    assert told["inputs"] == ["enc.0.self.Q.h1", "enc.0.self.K.h1"]
    assert told["why"].startswith('vidrio why "enc.0.self.scores.h1[0,2]" "I bought a new car yesterday."')


def test_down_to_the_inputs_of_a_number_from_a_file(packaged_page: Page) -> None:
    page = packaged_page
    page.locator("#block-enc\\.0 h4 button").click()
    page.get_by_role("button", name="Show all steps").click()
    page.locator("#q-enc\\.0\\.self\\.Q\\.product\\.h0 .frame").focus()
    page.keyboard.press("Enter")
    panel = page.locator("aside")
    expect(panel).to_contain_text("vidrio why")
    panel.get_by_role("button", name="enc.0.self.x.whole").click()
    expect(page.locator("#q-enc\\.0\\.self\\.x\\.whole")).to_be_visible()
    page.locator(".unfold", has_text="What if").click()
    expect(page.locator(".presets button").first).to_be_disabled()
    expect(page.locator(".why")).to_contain_text("vidrio serve")
    page.locator(".unfold", has_text="Logits, temperature").click()
    expect(page.locator(".settings input").first).to_be_disabled()
    expect(page.locator("[data-address^='out.logits']")).to_have_count(12)
    page.locator(".unfold", has_text="Beam search").click()
    expect(page.locator(".tree button").first).to_be_visible()
    page.locator(".unfold", has_text="From text to tokens").click()
    expect(page.locator(".word").first).to_be_visible()
    assert not violations(page)


def test_a_file_asks_for_nothing_and_its_text_is_text(open_file: Open, lesson: LoadedModel) -> None:
    source = page_of(run_of(lesson, EVIL))
    assert "default-src 'none'" in source
    assert "<script>alert" not in source
    assert not re.search(r"(?:src|href)=", re.sub(r"<(script|title).*?</\1>", "", source, flags=re.DOTALL))
    page = open_file(source)
    assert page.locator("#text").input_value() == EVIL
    assert page.locator("img").count() == 0
    assert "\u202e" not in page.title()


def test_the_same_bytes_every_time_also_for_no_text(lesson: LoadedModel) -> None:
    assert page_of(run_of(lesson, "Hello world")) == page_of(run_of(lesson, "Hello world"))
    assert "<title>(an empty text) → (nothing)</title>" in page_of(run_of(lesson, ""))
