"""Test the page in print."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect


@pytest.fixture
def dark(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme="dark")
    yield context.new_page()
    context.close()


def test_paper_is_light_and_has_the_open_layer_whole(dark: Page, server: str) -> None:
    at = "enc.0.self.scores.h0[0,1]"
    dark.goto(f"{server}#{urlencode({'text': 'hello world', 'model': 'lesson', 'open': 'enc.0', 'at': at})}")
    expect(dark.locator("aside .terms tbody tr")).to_have_count(3, timeout=30_000)
    expect(dark.locator("[id='q-enc.0.ffn.norm.out'] td button").first).to_be_attached(timeout=30_000)
    colour = "getComputedStyle(document.querySelector('.card')).backgroundColor"
    on_screen = dark.evaluate(colour)
    dark.emulate_media(media="print")
    dark.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert dark.evaluate(colour) == "rgb(255, 255, 255)" != on_screen
    assert (
        dark.locator("button:visible, select:visible, input:visible").evaluate_all(
            "all => all.filter(one => !one.matches('.link, .plain, aside code')).map(one => one.outerHTML)"
        )
        == []
    )  # only numbers and names remain
    hidden = "all => all.filter(one => !one.getBoundingClientRect().height).map(one => one.id)"
    assert not dark.locator("#machine article, .tower.dec .block").evaluate_all(hidden)
    cut = "all => all.filter(one => one.scrollHeight > one.clientHeight + 1).length"
    assert dark.locator("aside, .terms").evaluate_all(cut) == 0
    dark.evaluate("dispatchEvent(new Event('afterprint'))")
    dark.emulate_media(media="screen")
    assert dark.evaluate(colour) == on_screen
