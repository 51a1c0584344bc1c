"""Test that the page's explanation of a word shows the sums, parts, removed words and layers that Python computes."""

import csv
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from playwright.sync_api import Page, expect

from chromium import violations
from serving import server as serving
from small_models import write_model

CAR = "I bought a new car yesterday."
WITHOUT_DELETED = """one => {
    const copy = one.cloneNode(true);
    copy.querySelectorAll("del, .muted").forEach((gone) => gone.remove());
    return copy.textContent;
}"""
COCHE = 5  # the step that produces "coche"

Open = Callable[..., Page]


def ask(server: str, name: str, **more: Any) -> Any:
    answer = httpx.post(f"{server}api/{name}", json={"text": CAR, **more}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def written(value: float, decimals: int = 2) -> str:
    return f"{value:.{decimals}f}".replace("-", "−")


def test_the_words_read_add_up_to_the_difference_of_two_logits(open_page: Open, server: str) -> None:
    page = open_page(step=COCHE)
    told = ask(server, "why", step=COCHE)
    why = page.locator("#why")
    expect(why.locator("h3")).to_have_text("Why “coche” and not “auto”?")
    shown = [text.replace("−", "-").lstrip("+") for text in why.locator("li .number").all_text_contents()]
    assert sorted(map(float, shown)) == pytest.approx(sorted(one["value"] for one in told["origins"]), abs=0.0051)
    assert math.fsum(one["value"] for one in told["origins"]) == pytest.approx(told["difference"], rel=1e-12)
    expect(why.locator(".sum b")).to_have_text(written(told["difference"], 4))
    why.get_by_role("button", name="logit of “auto”").click()
    expect(page.locator("aside .top code")).to_contain_text("out.logits[5,")


def test_another_candidate_is_asked_about_and_the_link_holds_it(open_page: Open, server: str) -> None:
    page = open_page(step=COCHE)
    rival = ask(server, "run")["steps"][COCHE]["best"][3]["token"]
    name = rival.lstrip("▁")
    page.get_by_role("button", name=f"Why not “{name}”?").click()
    expect(page.locator("#why h3")).to_have_text(f"Why “coche” and not “{name}”?")
    expect(page.locator("#why .sum b")).to_have_text(
        written(ask(server, "why", step=COCHE, rival=rival)["difference"], 4)
    )
    assert "rival=" in page.url
    page.locator(".tokens button").nth(4).click()
    expect(page.locator("#why h3")).to_contain_text("Why “un”")
    assert "rival=" not in page.url


def test_a_link_may_name_a_word(open_page: Open) -> None:
    page = open_page(word="coche", rival="nuevo")
    expect(page.locator("#why h3")).to_have_text("Why “coche” and not “nuevo”?")
    expect(page.locator(".scrub")).to_contain_text("Step 6 of 9")
    assert "step=5" in page.url
    assert "word=" not in page.url


def test_a_link_to_a_word_that_is_not_there_is_told(open_page: Open) -> None:
    page = open_page(word="zzz")
    expect(page.get_by_role("alert")).to_contain_text("there is no 'zzz' in the translation")


def test_a_command_of_the_lesson_opens_its_view(open_page: Open) -> None:
    page = open_page(lesson="why-this-word/5", text="hello")
    page.get_by_role("region", name="Lesson").locator("pre a").first.click()
    expect(page.locator("#why h3")).to_have_text("Why “to” and not “jue”?")
    expect(page.get_by_role("region", name="Activation patching: Encoder")).to_contain_text("piano ← game")
    expect(page.get_by_role("region", name="Deleting words")).to_contain_text("plays")


def test_a_word_is_left_out(open_page: Open, server: str) -> None:
    page = open_page(step=COCHE)
    told = {one["name"]: one for one in ask(server, "why_words")["deleted"]}
    page.locator("#why").get_by_role("button", name="Without “car”").click()
    away = page.locator("#why .away")
    expect(away).to_contain_text(f"falls by {written(told['car']['losses'][COCHE])}")
    expect(away.locator("del").first).to_be_visible()
    kept = away.evaluate(WITHOUT_DELETED)
    assert re.sub(r"\s+", " ", kept).removeprefix("Without “car”: ").strip() == told["car"]["translation"]
    page.locator(".unfold", has_text="Deleting words").click()
    rows = page.locator("tr", has=page.locator("td .below, td ins, td del"))
    expect(rows.filter(has_text="yesterday")).to_contain_text(written(told["yesterday"]["losses"][COCHE]))


def test_a_bar_leads_to_its_head_and_to_one_multiplication(open_page: Open, server: str) -> None:
    page = open_page(step=COCHE, card="parts")
    told = ask(server, "why", step=COCHE)
    origin = next(one for one in told["origins"] if one["side"] == "source" and one["name"] == "▁car")
    parts = [one for one in told["parts"] if (one["side"], one["row"]) == ("source", origin["row"])]
    first = max(parts, key=lambda one: abs(one["value"]))
    page.get_by_role("button", name="car (source, 5)").click()
    row = page.locator("tr.part").first
    expect(row.locator("td.number")).to_have_text(written(first["value"], 4))
    layer, head = re.fullmatch(r"dec\.(\d)\.cross\.h(\d)\[5\]", first["name"]).groups()  # type: ignore[union-attr]
    row.get_by_role("button", name="weight").click()
    expect(page.locator("aside .top code")).to_have_text(f"dec.{layer}.cross.weights.h{head}[5,5]")
    page.keyboard.press("Escape")
    row.get_by_role("button", name=f"Layer {layer}: Cross-attention, head {head}").click()
    expect(page.locator(f"[id='q-dec.{layer}.cross.weights.h{head}']")).to_be_in_viewport()


def test_layer_by_layer_ends_with_what_the_model_says(open_page: Open, server: str) -> None:
    page = open_page(step=COCHE, card="layers")
    told = ask(server, "why", step=COCHE)["layers"]
    rows = page.get_by_role("region", name="Layer by layer").locator("tbody tr")
    expect(rows).to_have_count(len(told))
    best = [one["token"].lstrip("▁") for one in told[-1]["tokens"]]
    expect(rows.last.locator(".token")).to_have_text(best)
    assert told[-1]["tokens"][0]["token"] == ask(server, "run")["steps"][COCHE]["token"]
    rows.last.get_by_role("button").click()
    expect(page.locator("[id='q-dec.1.ffn.sum']")).to_be_in_viewport()


def test_every_head_is_switched_off(open_page: Open, server: str) -> None:
    page = open_page(step=1, card="heads")
    told = {one["name"]: one for one in ask(server, "why_heads")["heads"]}
    machine, translation = ask(server, "machine"), ask(server, "run")["written"]
    expect(page.locator(".places button")).to_have_count(
        machine["sizes"]["H"] * (machine["layers"]["enc"] + 2 * machine["layers"]["dec"])
    )
    shown = page.locator(".told")
    most = max(told.values(), key=lambda one: abs(one["losses"][1]))
    expect(shown.locator(".muted")).to_contain_text(written(abs(most["losses"][1])))
    differs = [name for name, one in told.items() if one["translation"] != translation]
    expect(page.locator(".places button.changes")).to_have_count(len(differs))
    place, head = next(name for name in differs if "dec.1." in name).rsplit(".h", 1)
    page.locator(".places section", has_text=place).get_by_role("button").nth(int(head)).focus()
    expect(shown.locator("ins").first).to_be_visible()
    kept = re.sub(r"\s+", " ", shown.evaluate(WITHOUT_DELETED))
    assert told[f"{place}.h{head}"]["translation"] in kept
    assert not violations(page)
    page.keyboard.press("Enter")
    expect(page.locator(f"[id='q-{place}.weights.h{head}']")).to_be_in_viewport()


def test_a_row_of_another_sentence_is_put_in(open_page: Open, server: str) -> None:
    other = CAR.replace("car", "house")
    page = open_page(step=4, rival="▁una", card="rows")
    page.get_by_label("Other sentence").fill(other)
    page.get_by_role("button", name="Compare").click()
    told = ask(server, "why_rows", step=4, rival="▁una", other=other)
    for side, name in (("source", "Encoder"), ("target", "Decoder")):
        rows = page.get_by_role("region", name=f"Activation patching: {name}").locator("tbody tr")
        layers = [layer for layer in told["layers"] if layer["side"] == side]
        expect(rows).to_have_count(len(layers))
        shown = [row.locator("td").all_text_contents() for row in reversed(rows.all())]
        assert shown == [[written(x).replace("−0.00", "0.00") for x in layer["moved"]] for layer in layers]
    assert "other=" in page.url
    assert not violations(page)
    page.get_by_role("button", name="Layer 2, car ← house").click()
    expect(page.locator("[id='q-enc.2.ffn.sum']")).to_be_in_viewport()
    assert "row=5" in page.url
    page = open_page(step=4, card="rows", other="I bought a new, very old car yesterday.")
    expect(page.get_by_role("alert")).to_contain_text("the same number of tokens")


def test_it_fits_and_a_screen_reader_can_use_it(open_page: Open) -> None:
    page = open_page(
        width=390, step=COCHE, card=["parts", "without", "layers", "heads", "rows"], other=CAR.replace("car", "house")
    )
    expect(page.locator("#why")).to_be_visible()
    page.get_by_role("button", name="feed-forward networks").click()
    expect(page.get_by_role("region", name="Layer by layer")).to_be_visible()
    expect(page.get_by_role("region", name="Activation patching: Encoder")).to_be_visible()
    for width in (390, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 1000})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if width < 1920:  # from 1200 pixels on, only the space between the elements grows
            assert not violations(page)
    page.locator("#why button.token").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#why .away")).to_be_visible()


def test_it_is_kept_as_a_picture_and_as_numbers(open_page: Open, server: str) -> None:
    page = open_page(step=COCHE)
    why = page.locator("#why")
    with page.expect_download() as picture:
        why.get_by_role("button", name="SVG").click()
    tree = ElementTree.parse(picture.value.path())
    words = " ".join("".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text"))
    assert "coche" in words
    assert "yesterday" in words
    with page.expect_download() as table:
        why.get_by_role("button", name="CSV").click()
    rows = list(csv.reader(Path(table.value.path()).read_text("utf-8").splitlines()))
    told = ask(server, "why", step=COCHE)
    assert [float(value) for *_, value in rows] == [part["value"] for part in told["parts"]]
    assert math.fsum(float(value) for *_, value in rows) == told["difference"]


def test_a_changed_machine_leaves_no_words_out_but_still_adds_up(open_page: Open) -> None:
    page = open_page(step=1, **{"if": "heads-off:dec.1.self.h3"})
    expect(page.locator("#why .sum b")).to_be_visible()
    expect(page.locator("#why button.token")).to_have_count(0)
    expect(page.locator("#why")).to_contain_text("rounding and what-ifs")


def test_a_classifier_is_asked_why_this_class(tmp_path: Path, browser: Any) -> None:
    write_model(tmp_path / "classes", shape="encoder", n_classes=3, target_vocabulary=0, tying="none")
    with serving(model=str(tmp_path / "classes"), page=True) as there:
        page = browser.new_page()
        page.goto(f"{there.address}#text=bala+core+xyz")
        why = page.locator("#why")
        expect(why.locator("h3")).to_contain_text("Why “class ")
        assert len(why.locator("li").all()) > 3
        page.close()
