"""The page and the server on an imported model."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

import serving
from marian_models import ENGLISH, write_marian
from test_page import Open, open_page  # noqa: F401  (a fixture)
from vidrio.cli import main

pytestmark = pytest.mark.slow
TEXT = ENGLISH[7]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    write_marian(place / "hf", bias=8, languages=("spa", "fra"), max_position_embeddings=512)
    search = place / "hf/generation_config.json"
    search.write_text(json.dumps({**json.loads(search.read_text()), "max_length": 12}), encoding="utf-8")
    target = ["--target", "spa", "--languages", "en,es"]
    assert main(["import", str(place / "hf"), "--to", str(place / "ours"), *target]) == 0
    return place / "ours"


@pytest.fixture(scope="module")
def server(imported: Path) -> Iterator[str]:
    with serving.server(model=imported, page=True) as there:
        yield there.address


def test_the_page_goes_down_to_one_multiplication(open_page: Open) -> None:  # noqa: F811
    page = open_page(text=TEXT, open="dec.1", at="dec.1.cross.scores.h1[1,0]", numbers="float64")
    panel = page.locator("aside")
    expect(panel.locator(".top code")).to_have_text("dec.1.cross.scores.h1[1,0]", timeout=60_000)
    expect(panel).to_contain_text(">>spa<<")  # the column's token
    expect(panel.locator(".terms tbody tr")).to_have_count(8)
    page.get_by_role("button", name="What if").click()
    page.get_by_role("button", name="Blind decoder").click()
    expect(page.locator(".columns tbody tr").first).to_be_visible(timeout=60_000)


def test_libre_translate_s_clients_are_answered(server: str) -> None:
    assert [of["code"] for of in httpx.get(f"{server}languages").json()] == ["en", "es"]
    for q, form in ((TEXT, "text"), ([TEXT, "The old house"], "text"), (f"<b>{TEXT}</b>", "html")):
        asked = {"q": q, "source": "en", "target": "es", "format": form}
        answer = httpx.post(f"{server}translate", json=asked, timeout=60)
        assert answer.status_code == 200, answer.text
        assert answer.json()["translatedText"]


def test_the_page_as_one_file(imported: Path, browser: Browser, tmp_path: Path) -> None:
    assert main(["look", "-m", str(imported), "--html", str(tmp_path / "look.html"), TEXT]) == 0
    page = browser.new_page()
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "look.html").as_uri())
    page.locator(".towers canvas").first.wait_for(state="attached")
    page.close()
    assert not said
