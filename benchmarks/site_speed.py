"""Measure the speed of a page made by `vidrio site`, served by Python's built-in web server, in Chromium.

    python benchmarks/site_speed.py                # the packaged models
    python benchmarks/site_speed.py --slower 4     # slow down the page by a factor of four, but not Python's worker

The script prints medians over several visits and key presses. For the page's own files, which web hosts may compress,
it gives both the original and the compressed size.
"""

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from chromium import program
from vidrio.site.writing import write_site

TWENTY = "The old man and his dog walked slowly along the river every morning and they never spoke to anybody there"
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
NOW = 300_000  # timeout in milliseconds
# Simulate a key press, and measure the time until the translation and the overview of the new text are shown.
TYPE = """text => new Promise(resolve => {
    const area = document.querySelector('#text'), out = document.querySelector('#translation');
    const start = performance.now();
    let translated = 0;
    const before = out.textContent;
    new MutationObserver(() => { translated ||= out.textContent !== before && performance.now() - start; })
        .observe(out, {childList: true, characterData: true, subtree: true});
    area.value = text;
    area.dispatchEvent(new Event('input', {bubbles: true}));
    const wait = () => {
        if (document.querySelector('.out.busy') || !translated) requestAnimationFrame(wait);
        else requestAnimationFrame(() => resolve([translated, performance.now() - start]));
    };
    wait();
})"""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "http.server", "--directory", str(folder), "--bind", "127.0.0.1", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().split(' port ')[1].split()[0]}/"
        process.terminate()


def first_view(folder: Path, requested: list[str]) -> list[Path]:
    """Return the page's files that are loaded on a first visit, without Python and the models."""
    paths = {folder / (name or "index.html") for name in requested if not name.startswith("files/")}
    return sorted(path for path in paths if path.is_file())


def visit(context: BrowserContext, address: str, slower: float) -> tuple[Page, float, float]:
    """Open the page, and return it with the seconds to first paint and to the first translation."""
    page = context.new_page()
    if slower > 1:
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_function("document.querySelector('#translation')?.textContent", timeout=NOW)
    there = time.perf_counter() - start
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    page.locator(".towers canvas").first.wait_for(timeout=NOW)
    return page, paint / 1000, there


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--slower", type=float, default=1)
    options.add_argument("--visits", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place) / "site"
        _, sizes = write_site(folder, (), lambda what: None)
        browser = playwright.chromium.launch(executable_path=program(), args=SWITCHES)
        first, again, paints, keys, overviews, requested = [], [], [], [], [], []
        with served(folder) as address:
            for _ in range(given.visits):
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                asked: list[str] = []
                context.on("request", lambda one, asked=asked: one.service_worker or asked.append(one.url))
                page, paint, there = visit(context, address, given.slower)
                requested = requested or [url.removeprefix(address).partition("#")[0] for url in asked]
                paints.append(paint), first.append(there)
                page.close()
                page, _, there = visit(context, address, given.slower)
                again.append(there)
                for n in range(10):
                    key, overview = page.evaluate(TYPE, f"{TWENTY}{'.' * (n % 2)}{' ' * n}")
                    if n > 1:  # the first key presses warm up the page
                        keys.append(key), overviews.append(overview)
                context.close()
        shell = first_view(folder, [*requested, "site.json"])
        raw = sum(path.stat().st_size for path in shell)
        packed = sum(len(gzip.compress(path.read_bytes())) for path in shell)
        rows = {
            "page, first view": f"{raw / 1e3:,.0f} kB as it is, {packed / 1e3:,.0f} kB compressed",
            **{name: f"{size / 1e6:.1f} MB" for name, size in sizes.items() if name != "page"},
            "first paint": f"{statistics.median(paints):.2f} s",
            "first translation, first visit": f"{statistics.median(first):.1f} s",
            "first translation, later visits": f"{statistics.median(again):.1f} s",
            "key press to translation, 20 words": f"{statistics.median(keys):.0f} ms",
            "key press to redrawn overview": f"{statistics.median(overviews):.0f} ms",
        }
        print("\n".join(f"{name:38} {value}" for name, value in rows.items()))
        print(json.dumps({"slower": given.slower, "visits": given.visits, "chromium": browser.version}))


if __name__ == "__main__":
    main()
