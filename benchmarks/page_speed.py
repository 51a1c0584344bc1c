"""Measure the speed of the page in Chromium: first paint, latency after a key press, and frame rate.

    python benchmarks/page_speed.py [--rounds 5] [--keys 16]

First paint and transferred bytes are measured on a first visit. The latency of a key press is the time from the
browser's event to the new translation, and to the last frame of the redrawn overview. Frames per second (at most 60)
and the longest time between two frames are taken from browser traces recorded while blocks open.
"""

import argparse
import shutil
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from served import server

TYPED = "I bought a new car yesterday and"
BLOCKS = ("enc.0", "enc.3", "dec.0", "dec.1", "src", "out")
WATCH = """() => {
window.told = { key: 0, asked: 0, text: 0, drawn: 0 };
window.waits = 0;
const ask = window.fetch;
window.fetch = (...given) => {
  told.asked = performance.now();
  waits++;
  return ask(...given).finally(() => { waits--; });
};
addEventListener("keydown", () => Object.assign(told, { key: performance.now(), asked: 0, text: 0, drawn: 0 }), true);
new MutationObserver(() => { told.text = performance.now(); }).observe(
  document.querySelector("#translation"), { childList: true, characterData: true, subtree: true });
const draw = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...given) {
  draw.apply(this, given);
  told.drawn = performance.now();
};
}"""


DOT = """() => {
const dot = document.body.appendChild(document.createElement("div"));
Object.assign(dot.style, { position: "fixed", top: 0, left: 0, width: "2px", height: "2px", background: "red" });
let n = 0;
const move = () => {
  dot.style.transform = `translateX(${n++ % 200}px)`;
  if (busy) requestAnimationFrame(move);
  else dot.remove();
};
window.busy = true;
move();
}"""


@contextmanager
def served_page() -> Iterator[tuple[Browser, str]]:
    """Yield a browser and the URL of the page."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with server() as there, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser, f"http://{there.host}:{there.port}"
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=int, default=16)
    given = parser.parse_args()
    with served_page() as (browser, url):
        paints = [first_paint(browser, url) for _ in range(given.rounds + 1)][1:]  # the first round warms up the server
        tell("first paint", [paint for paint, _ in paints], "ms", 1000)
        tell("first view, compressed", [size / 1000 for _, size in paints], "kB", 300)
        page = opened(browser, url)
        texts, overviews = typed(page, given.keys)
        tell("key press → translation", texts, "ms", 150)
        tell("key press → overview", overviews, "ms", 300)
        rates, longest, tasks = expanded(page)
        tell("frames a second while expanding", rates, "", 60)
        tell("longest time without a frame", longest, "ms", 17)
        tell("longest task, processor time", tasks, "ms", 17)


def tell(what: str, values: list[float], unit: str, goal: float) -> None:
    values = sorted(values)
    low, high = values[len(values) // 4], values[3 * len(values) // 4]
    print(f"{what:34} {statistics.median(values):8.1f} {unit:3} ({low:.1f}–{high:.1f}, goal {goal:g})", flush=True)


def opened(browser: Browser, url: str) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{url}#text={quote('I bought a car')}")
    page.locator(".towers canvas").first.wait_for()
    page.wait_for_load_state("networkidle")
    return page


def first_paint(browser: Browser, url: str) -> tuple[float, int]:
    """Return the time to first paint in milliseconds, and the bytes transferred for the page, without API responses."""
    context = browser.new_context()
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    urls: dict[str, str] = {}
    sizes: list[int] = []
    session.on("Network.requestWillBeSent", lambda event: urls.update({event["requestId"]: event["request"]["url"]}))

    def finished(event: dict[str, Any]) -> None:
        if "/api/" not in urls.get(event["requestId"], ""):
            sizes.append(int(event["encodedDataLength"]))

    session.on("Network.loadingFinished", finished)
    page.goto(url)
    page.locator(".towers canvas").first.wait_for()
    page.wait_for_load_state("networkidle")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    context.close()
    return float(paint), sum(sizes)


def typed(page: Page, count: int) -> tuple[list[float], list[float]]:
    """Return the times from each key press to the new translation and to the last frame."""
    page.evaluate(WATCH)
    page.locator("#text").fill("")
    answered(page)
    texts, overviews, missing = [], [], 0
    for letter in TYPED[:count]:
        page.keyboard.type(letter)
        wait_until(page, "told.asked > 0")
        answered(page)
        told = page.evaluate("told")
        missing += not (told["text"] and told["drawn"])
        if told["text"]:
            texts.append(told["text"] - told["key"])
        if told["drawn"]:
            overviews.append(told["drawn"] - told["key"])
    if missing:
        print(f"{missing} of {count} keys did not change both the translation and the overview", flush=True)
    return texts, overviews


def wait_until(page: Page, expression: str) -> None:
    """Poll, because `page.wait_for_function` uses `eval`, which the page's Content-Security-Policy forbids."""
    for _ in range(1200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise TimeoutError(f"not true after a minute: {expression}")


def answered(page: Page) -> None:
    """Wait until all responses have arrived and are drawn. "networkidle" occurs only once, when a page is loaded."""
    page.wait_for_timeout(150)  # longer than the debounce delays
    wait_until(page, "!waits && !document.querySelector('.busy')")
    page.wait_for_timeout(250)


def expanded(page: Page) -> tuple[list[float], list[float], list[float]]:
    """Return frames per second, the longest time between frames and the longest task in the half second after a click.

    The clicks open blocks, select another head and open a number. A moving dot makes the browser draw every frame, even
    if nothing else has changed. Tasks are measured in CPU time, which other load affects little.
    """
    session = page.context.new_cdp_session(page)
    rates, longest, tasks = [], [], []

    def timed(click: Callable[[], None], again: Callable[[], None]) -> None:
        click()  # fetch the data first, so that only drawing is timed
        answered(page)
        again()
        page.wait_for_timeout(300)

        def expand() -> None:
            page.evaluate(DOT)
            click()
            page.wait_for_timeout(500)
            page.evaluate("window.busy = false")

        events = traced(session, expand)
        frames = sorted(event["ts"] / 1000 for event in events if event["name"] == "DrawFrame")
        gaps = [b - a for a, b in pairwise(frames)]
        rates.append(1000 * len(gaps) / (frames[-1] - frames[0]))
        longest.append(max(gaps))
        tasks.append(longest_task(events))
        page.wait_for_timeout(500)

    for block in BLOCKS:
        button = page.locator(f"[id='block-{block}'] h4 button")
        button.scroll_into_view_if_needed()
        timed(button.click, button.click)
    page.locator("[id='block-enc.0'] h4 button").click()
    heads = page.locator("[id='inside-enc.0'] button[aria-pressed]")
    timed(heads.nth(3).click, heads.nth(0).click)
    number = page.locator("[data-address='enc.0.self.scores.h3[0,1]']").first
    timed(number.click, lambda: page.keyboard.press("Escape"))
    return rates, longest, tasks


def longest_task(events: list[dict[str, Any]]) -> float:
    """Return the CPU time, in milliseconds, of the longest task on the page's main thread."""
    times: dict[tuple[int, int], list[float]] = {}
    for event in events:
        if event["name"] == "RunTask" and "tdur" in event:
            times.setdefault((event["pid"], event["tid"]), []).append(event["tdur"] / 1000)
    main = max(
        ((event["pid"], event["tid"]) for event in events if event.get("args", {}).get("name") == "CrRendererMain"),
        key=lambda thread: sum(times.get(thread, ())),
    )
    return max(times[main])


def traced(session: CDPSession, what: Callable[[], None]) -> list[dict[str, Any]]:
    """Call a function, and return the browser's trace of frames and tasks while it runs."""
    events: list[dict[str, Any]] = []
    done: list[bool] = []
    session.on("Tracing.dataCollected", lambda some: events.extend(some["value"]))
    session.on("Tracing.tracingComplete", lambda _: done.append(True))
    categories = [f"{kind}devtools.timeline{what}" for kind in ("", "disabled-by-default-") for what in ("", ".frame")]
    session.send("Tracing.start", {"traceConfig": {"includedCategories": categories}, "transferMode": "ReportEvents"})
    what()
    session.send("Tracing.end")
    while not done:
        session.send("Runtime.evaluate", {"expression": "0"})  # wait for pending events
    return events


if __name__ == "__main__":
    main()
