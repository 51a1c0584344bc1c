"""The lesson of docs/teaching.md, minute by minute, offline, as a teacher would give it."""

import math
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from chromium import stay_at

pytestmark = pytest.mark.slow
TEXT = "I bought a new car yesterday."


@pytest.fixture
def page(server: str, browser: Browser) -> Iterator[Page]:
    """A projector's page; whatever it asks of another machine fails the test."""
    elsewhere: list[str] = []

    context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(60_000)
    stay_at(server, page, elsewhere)
    page.goto(server)
    page.locator(".towers canvas").first.wait_for()
    yield page
    context.close()
    assert not elsewhere


def type_in(page: Page, text: str, translation: str | re.Pattern[str]) -> None:
    page.locator("#text").fill(text)
    expect(page.locator("#translation")).to_have_text(translation)
    settled(page)


def settled(page: Page) -> None:
    page.wait_for_timeout(150)  # the text is asked for when no key follows
    expect(page.locator(".out.busy")).to_have_count(0)


def undo(page: Page) -> None:
    page.get_by_role("button", name="Back to the model as it is").click()
    expect(page.locator(".chips")).to_have_count(0)


def choose(page: Page, what: str, value: str) -> None:
    page.get_by_role("combobox", name=what, exact=True).select_option(value)
    settled(page)


def block(page: Page, name: str) -> Locator:
    button = page.locator(f"[id='block-{name}'] h4 button")
    if button.get_attribute("aria-expanded") == "false":
        button.click()
    return page.locator(f"[id='inside-{name}']")


def test_the_second_hour(page: Page) -> None:
    # 60–85: one head of the encoder's first layer, by hand
    type_in(page, TEXT, "Ayer compré un coche nuevo.")
    choose(page, "Numbers", "float64")
    inside = block(page, "enc.0")
    for name in ("Q", "K", "scores", "scaled", "weights"):
        expect(inside.locator(f"[id='q-enc.0.self.{name}.h0']")).to_be_attached()
    inside.locator("[data-address='enc.0.self.scores.h0[1,2]']").click()
    expect(page.locator("aside .full")).to_contain_text("float64")
    rows = page.locator("aside .terms tbody tr")
    expect(rows).to_have_count(32)
    factors = [[number(cell) for cell in rows.nth(k).locator("td").all_text_contents()] for k in range(3)]
    so_far = 0.0
    for q, k, product, total in factors:  # with a calculator
        so_far += q * k
        assert product == pytest.approx(q * k, abs=2e-4)
        assert total == pytest.approx(so_far, abs=5e-4)
    score = page.locator("aside form input")
    before = weight(page)
    score.fill(str(float(score.input_value()) + 5))
    page.locator("aside form button").click()
    expect(page.locator("aside .mark")).to_be_visible()
    settled(page)
    grown = before * math.exp(5 / math.sqrt(32))  # of a score that is divided before the softmax
    assert weight(page) == pytest.approx(grown / (1 - before + grown), abs=1e-3)
    page.keyboard.press("Escape")
    undo(page)

    # 85–100: what if
    for name, change in [
        ("No positions", "without:positions"),
        ("Blind decoder", "without:cross"),
        ("Cheating decoder", "mask:off"),
    ]:
        page.get_by_role("button", name=name).click()
        expect(page.locator(".bar dl dd").last).to_be_visible()
        assert f"if={change.replace(':', '%3A')}" in page.url
        settled(page)
        undo(page)

    # 100–115: explosion to NaN, and which change alone saves the run
    choose(page, "Model", "lesson")
    type_in(page, "hello world", "hola mundo")
    saved = set()
    for n, name in enumerate(("layer norm", "softmax", "scale")):
        page.get_by_role("button", name="Explosion to NaN").click()
        page.locator(".nan button").first.click()
        expect(page.locator("aside .value")).to_have_text("NaN")
        page.keyboard.press("Escape")
        page.locator(".chips button.plain").nth(n).click()
        expect(page.locator(".chips button.plain")).to_have_count(2)
        settled(page)
        if not page.locator(".nan").count():
            saved.add(name)
        undo(page)
    assert saved == {"softmax", "scale"}  # layer norm comes after the first attention, too late

    # 115–120: from a probability down to a byte of the file
    page.locator("tr.taken button").click()
    for _ in range(60):
        expect(page.locator("aside .links").first).to_be_visible()
        if "In the model’s file" in page.locator("aside").inner_text():
            break
        links = page.locator("aside h3:has-text('Made from') + ul button")
        parameters = links.filter(has_text=re.compile(r"embed|\.W|\.b[12QKVO]?\[|gain|bias"))
        here = page.locator("aside .top code").inner_text()
        (parameters if parameters.count() else links).first.click()
        expect(page.locator("aside .top code")).not_to_have_text(here)
    expect(page.locator("aside")).to_contain_text("model.safetensors")


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def weight(page: Page) -> float:
    return number(page.locator("[data-address='enc.0.self.weights.h0[1,2]']").first.text_content() or "")
