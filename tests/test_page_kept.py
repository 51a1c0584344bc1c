"""What a reader takes along from the page: whole matrices as CSV, and paper."""

import csv
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import serving
from vidrio.look.blocks import Numbers, Section, Table
from vidrio.look.blocks import Page as Sheet
from vidrio.look.curves import panels
from vidrio.look.page import blocks_page


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving.server(page=True) as there:
        yield there.address


@pytest.fixture
def dark(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme="dark")
    yield context.new_page()
    context.close()


def test_paper_is_light_and_has_the_open_layer_whole(dark: Page, server: str) -> None:
    at = "enc.0.self.scores.h0[0,1]"
    dark.goto(f"{server}#{urlencode({'text': 'hello world', 'open': 'enc.0', 'at': at})}")
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
    )  # those that are left are numbers and names
    hidden = "all => all.filter(one => !one.getBoundingClientRect().height).map(one => one.id)"
    assert not dark.locator("#machine article, .tower.dec .block").evaluate_all(hidden)
    cut = "all => all.filter(one => one.scrollHeight > one.clientHeight + 1).length"
    assert dark.locator("aside, .terms").evaluate_all(cut) == 0
    dark.evaluate("dispatchEvent(new Event('afterprint'))")
    dark.emulate_media(media="screen")
    assert dark.evaluate(colour) == on_screen


def test_a_part_of_a_matrix_is_kept_whole(browser: Browser, tmp_path: Path) -> None:
    """Every digit of every number, also of those that a report leaves out."""
    matrix = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    steps = [{"kind": "validation", "step": n, "seconds": n, "loss": 1 / (n + 1)} for n in range(300)]
    small = Table([["1", "2"]], ["a", "b, c"], name="small")
    sheet = Sheet("kept", [], [Section("a", "all", [Numbers(matrix, "m"), *panels(steps), small])], [])
    (tmp_path / "page.html").write_text(blocks_page(sheet), "utf-8")
    page = browser.new_context(offline=True).new_page()
    page.goto((tmp_path / "page.html").as_uri())

    def saved(name: str) -> list[list[str]]:
        with page.expect_download() as download:
            page.get_by_role("button", name=f"{name}: CSV").click()
        return list(csv.reader(download.value.path().read_text("utf-8").splitlines()))

    rows = saved("m")
    assert np.array_equal(np.array([row[1:] for row in rows[1:]], np.float32), matrix)
    page.locator("summary").first.click()
    assert page.locator("details table tbody tr").count() < 100
    assert [row[0] for row in saved("validations")[1:]] == [str(n) for n in range(300)]
    assert saved("small") == [["a", "b, c"], ["1", "2"]]
    page.context.close()
