"""The end of the lesson of docs/teaching.md, offline, as a teacher would give it; test_page.py has the rest."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import stay_at

pytestmark = pytest.mark.slow


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


def test_the_explosion_and_the_way_down_to_a_byte(page: Page) -> None:
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
