"""The page in Firefox and in WebKit: it loads, translates, opens a layer and a number, and keeps a picture."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from other_browsers import FIREFOX, WEBKIT, Driven, firefox, webkit

pytestmark = pytest.mark.slow

BROWSERS = [
    pytest.param(firefox, id="firefox", marks=pytest.mark.skipif(
        not any(map(shutil.which, FIREFOX)), reason="there is no Firefox: apt install firefox-esr")),
    pytest.param(webkit, id="webkit", marks=pytest.mark.skipif(
        not (WEBKIT and shutil.which("WebKitWebDriver") and shutil.which("Xvfb")),
        reason="there is no WebKit: apt install webkit2gtk-driver xvfb")),
]  # fmt: skip
# What goes wrong in a page, collected in it: not every browser writes it down.
LISTEN = """
if (!window.wrong) {
  window.wrong = [];
  addEventListener("error", (event) => wrong.push(String(event.message)));
  addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
}
return true;
"""


@pytest.mark.parametrize("open_browser", BROWSERS)
def test_from_a_sentence_to_a_number(
    open_browser: Callable[[], AbstractContextManager[Driven]], server: str, tmp_path: Path
) -> None:
    with open_browser() as browser:
        browser.visit(f"{server}#{urlencode({'text': 'Hello world', 'open': 'enc.0'})}")
        browser.run(LISTEN)
        text = "return document.querySelector('#translation')?.textContent"
        assert browser.until(text) == "Hola mundo"
        browser.until("return document.querySelectorAll('.inside [data-address*=\"[\"]').length > 20")
        browser.run("document.querySelector('[data-address=\"enc.0.self.scores.h0[0,1]\"]').click()")
        value = browser.until("return document.querySelector('aside .value')?.textContent")
        assert value == browser.run("return document.querySelector('aside [data-address]').textContent")
        assert browser.until("return document.querySelectorAll('aside .terms tbody tr').length") == 32
        browser.until("return document.querySelectorAll('.katex').length > 10")  # they are typeset in idle time
        browser.run(
            "const box = document.querySelector('#text'); box.value = 'Where is the station?';"
            "box.dispatchEvent(new Event('input', { bubbles: true }))"
        )
        browser.until("return document.querySelector('#translation').textContent === '¿Dónde está la estación?'")
        browser.picture(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 20_000
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        assert browser.run("return document.fonts.check('16px \"Inter Variable\"')")
        assert browser.run("return window.wrong") == []
        assert browser.errors() == []
