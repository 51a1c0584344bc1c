"""Test that the Spanish page contains no English, from the overview to numbers, what-ifs, training and lessons."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from chromium import PENDING, quiet

LESSON = {"text": "hello world", "model": "lesson"}
VIEWS = [
    {"text": "Compré un coche.", "model": "es-en", "open": "src"},
    {**LESSON, "open": "enc.0", "at": "enc.0.self.weights.h0[0,1]"},
    {**LESSON, "open": "dec.0", "at": "dec.0.ffn.norm.var[0]"},
    {**LESSON, "open": "out", "at": "enc.0.self.WQ.h0[0,0]"},
    {**LESSON, "open": "src", "if": ["positions:sinusoidal-marian", "divisor:30", "softmax:naive", "prefix:mundo"]},
    {**LESSON, "lesson": "nan/2", "if": ["without:layer-norm", "softmax:naive", "scale:src.scaled=1000"]},
    {**LESSON, "at": "enc.77.in[0,0]"},
]
# All text on the page, including text for screen readers, but not code, formulas or the text to translate.
READ = """() => {
const not = "code, script, style, .katex, .symbol, textarea, .language";
const said = [...document.querySelectorAll("[aria-label], [title], [placeholder], [aria-valuetext]")];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const texts = [];
while (walk.nextNode()) if (!walk.currentNode.parentElement.closest(not)) texts.push(walk.currentNode.data.trim());
for (const one of said)
    for (const name of ["aria-label", "title", "placeholder", "aria-valuetext"])
        texts.push(one.getAttribute(name) ?? "");
return [...new Set(texts)].filter(Boolean);
}"""


@pytest.fixture(scope="module")
def english(repository: Path) -> re.Pattern[str]:
    """Return a pattern for all English strings of the page and of Python whose Spanish translation differs."""
    lib = repository / "page" / "src" / "lib"
    strings: list[list[str]] = [[], []]
    for name in ("messages", "tour"):
        for told, language in zip(strings, ("en", "es"), strict=True):
            told += re.findall(r'"((?:[^"\\]|\\.)+)"', (lib / f"{name}.{language}.ts").read_text("utf-8"))
    words = (lib / "words.es.ts").read_text("utf-8")
    both = re.findall(r'^  (?:"(.+?)"|(\w+)):\s+"(.+?)",$', words, re.MULTILINE)
    said = (set(strings[0]) - set(strings[1])) | {a or b for a, b, spanish in both if (a or b) != spanish}
    templates = sorted(text for text in said if len(re.sub(r"\{\w*\}|\W", "", text)) > 2)
    assert len(templates) > 300
    return re.compile("|".join(".+?".join(map(re.escape, re.split(r"\{\w*\}", text))) for text in templates))


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="es-ES")
    context.add_init_script(PENDING)
    yield context.new_page()
    context.close()


def test_no_english_is_left(server: str, page: Page, english: re.Pattern[str]) -> None:
    for view in VIEWS:
        page.goto("about:blank")
        page.goto(f"{server}#{urlencode(view, doseq=True)}")
        page.locator(".towers canvas, .refused").first.wait_for(state="attached", timeout=60_000)
        quiet(page)
        page.locator(".unfold[aria-expanded=false]").evaluate_all("all => all.forEach(one => one.click())")
        quiet(page)
        read = page.evaluate(READ)
        assert "Idioma" in read
        assert not [text for text in read if english.fullmatch(text)], view
        if "lesson" in view:
            assert "La causa: puntuaciones demasiado grandes para exp" in read
