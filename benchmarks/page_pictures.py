"""Retake the screenshots of the page in docs/images, using Chromium.

python benchmarks/page_pictures.py [--to docs/images] [--only layer]
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Locator, Page

from page_speed import served_page

CAR = {"text": "I bought a new car yesterday."}
SEED = {"text": "hello world", "model": "lesson"}


def unfold(page: Page, title: str) -> Locator:
    button = page.locator(".unfold", has_text=title)
    if button.get_attribute("aria-expanded") == "false":
        button.click()
    return page.locator("section", has=button).last


def top_at(selector: str) -> Callable[[Page], Page]:
    def scrolled(page: Page) -> Page:
        page.locator(selector).wait_for()
        for _ in range(4):  # content that appears above the element moves it
            page.locator(selector).evaluate("there => there.scrollIntoView()")
            page.wait_for_timeout(1500)
        return page

    return scrolled


def choosing(page: Page) -> Locator:
    unfold(page, "Logits, temperature").wait_for()
    page.get_by_role("slider", name="temperature").fill("1.7")
    page.get_by_role("slider", name="top-k").fill("6")
    page.get_by_text("can be sampled").wait_for()
    return page.locator("main > .card").first


def why(page: Page) -> Locator:
    page.get_by_role("region", name="Activation patching").first.wait_for()
    return page.locator("section", has=page.locator("#steps-title"))


def search(page: Page) -> Locator:
    section = unfold(page, "Beam search")
    section.locator(".tree button.best").nth(2).click()
    return section


def learning(page: Page) -> Locator:
    section = unfold(page, "Training")
    section.locator(".says").wait_for()
    section.locator("input[type=range]").fill("6")
    section.get_by_text("use the model’s translation").click()
    section.get_by_text("Compute the loss", exact=True).click()
    section.locator(".forcing tbody tr").first.wait_for()
    return section


def waves(page: Page) -> Locator:
    page.locator(".waves").first.get_by_role("slider").fill("20")
    return page.locator("[id='q-src.positions']")


# The view and viewport size of each screenshot, and a function that prepares the page and returns the element to show.
PICTURES: dict[str, tuple[dict[str, Any], tuple[int, int], Callable[[Page], Page | Locator]]] = {
    "": ({**CAR, "step": 4}, (1280, 800), lambda page: page),
    "-layer": ({**CAR, "step": 4, "open": "dec.1"}, (1360, 900), top_at("[id='q-dec.1.cross.scores.h0']")),
    "-number": (
        {**CAR, "open": "enc.0", "at": "enc.0.self.scores.h0[1,2]", "numbers": "float64"},
        (1360, 900),
        top_at("[id='q-enc.0.self.scores.h0']"),
    ),
    "-choosing": (CAR, (1280, 900), choosing),
    "-why": (
        {**CAR, "step": 4, "rival": "▁una", "card": "rows", "other": "I bought a new house yesterday."},
        (1280, 900),
        why,
    ),
    "-search": ({**CAR, "step": 4}, (1360, 900), search),
    "-whatif": ({**CAR, "if": "without:cross"}, (1360, 1180), lambda page: page),
    "-learning": ({**SEED, "at": "enc.0.self.WQ.h0[0,1]"}, (1360, 1000), learning),
    "-waves": ({**CAR, "open": "src"}, (1280, 900), waves),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, default=Path("docs/images"))
    parser.add_argument("--only", default=None, help="page, layer, number, …")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    with served_page() as (browser, url):
        for name in PICTURES:
            if given.only in (None, name.removeprefix("-") or "page"):
                take(browser, url, name, given.to)


def take(browser: Browser, url: str, name: str, to: Path) -> None:
    view, (width, height), make = PICTURES[name]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{url}#{urlencode(view, doseq=True)}")
    page.locator(".towers canvas").first.wait_for(state="attached")
    page.wait_for_load_state("networkidle")
    shown = make(page)
    page.wait_for_timeout(2000)
    page.mouse.move(0, 0)
    path = to / f"page{name}.png"
    shown.screenshot(path=path)
    print(path, flush=True)
    context.close()


if __name__ == "__main__":
    main()
