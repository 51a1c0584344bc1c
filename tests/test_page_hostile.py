"""Test that hostile names and vocabularies appear as text, never as markup, and do not break the page."""

from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import PENDING, quiet
from serving import server
from small_models import write_model
from vidrio.look.changed import look_changed
from vidrio.look.page import run_page
from vidrio.look.run import open_model
from vidrio.look.writing import CommandLine
from vidrio.search import Tree

NAME = "<img src=x onerror='hacked=1'> \"quoted\" &amp; \u202eleft {{1}} ${1}"
WORDS = [
    "<img/src=x/onerror=hacked=1>", "\"><script>hacked=1</script>", "</script><script>hacked=1</script>", "<!--", "-->",
    "'\"`", "&lt;b&gt;bold", "<b>bold</b>", "${hacked=1}", "{@html}", "{{hacked}}", "javascript:hacked=1", "<style>*{}",
    "\u202egnorw", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "\u2066\u2067",
    "\x1b[31m", "e" * 400, "\u0301" * 60,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "<svg/onload=hacked=1>", "]]>", "<unk>2",
]  # fmt: skip
TEXT = WORDS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / NAME
    write_model(path, words=WORDS)
    return path


def all_is_text(page: Page) -> None:
    for button in page.locator(".unfold:visible").all():
        button.click()
    page.locator("#block-out h4 button").click()
    quiet(page)
    page.locator("#block-dec\\.0 h4 button").click()
    page.locator(".inside canvas, .inside table").first.wait_for()
    for width in (1440, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "a long word is in the way"
    assert page.locator("img, iframe, main script, [onerror], [onload], [href^='javascript']").count() == 0
    assert page.evaluate("typeof hacked") == "undefined"
    words = page.locator("body").inner_text()
    assert any(word in words for word in WORDS if "<" in word or "{" in word)


def test_served(folder: Path, browser: Browser) -> None:
    with server(model=folder, page=True) as there:
        page = browser.new_page()
        page.add_init_script(PENDING)
        page.goto(f"{there.address}#{urlencode({'text': TEXT})}")
        page.locator(".towers canvas").first.wait_for(state="attached")
        expect(page.locator("header select").first).to_contain_text("onerror")
        all_is_text(page)
        assert page.title().endswith(" · Vidrio")
        assert "\u202e" not in page.title()
        page.close()


def test_as_one_file(folder: Path, browser: Browser, tmp_path: Path) -> None:
    tried = look_changed(open_model(folder), TEXT, [], tree=Tree())
    (tmp_path / "page.html").write_text(run_page(tried, CommandLine(TEXT)), "utf-8")
    page = browser.new_page()
    page.add_init_script(PENDING)
    page.goto((tmp_path / "page.html").as_uri())
    page.locator(".towers canvas").first.wait_for(state="attached", timeout=60_000)
    all_is_text(page)
    assert "\u202e" not in page.title()
    page.close()
