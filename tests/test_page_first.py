"""Test the first five minutes on the page: the first view, the effects of clicks, and long computations."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import httpx
from playwright.sync_api import Browser, Page, Route, expect

from chromium import quiet, violations
from serving import server as serving
from small_models import write_model

CAR = "I bought a new car yesterday."

Open = Callable[..., Page]


def test_it_opens_at_the_least_certain_word_and_names_start_and_end(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("tr.taken th")).to_contain_text("coche")
    expect(page.locator(".tokens button[aria-pressed=true]")).to_contain_text("coche")
    expect(page.locator(".tokens li").last).to_contain_text("‹end›")
    expect(page.get_by_text("⇧ capitalises the next letter")).to_be_visible()
    words = page.locator("body").inner_text()
    assert "‹start›" in words
    assert not re.search(r"</?s>|⏎", words)


def test_a_candidate_continues_the_translation_and_the_words_it_replaced_stay_in_sight(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="auto", exact=True).click()
    expect(page.locator("#translation")).to_have_text("Ayer compré un auto nuevo.")
    expect(page.locator("del")).to_have_text("coche")
    expect(page.locator("tr.taken th")).to_contain_text("auto")
    page.get_by_role("button", name="Undo all changes").click()
    expect(page.locator("#translation")).to_have_text("Ayer compré un coche nuevo.")


def test_a_row_of_the_decoder_is_named_by_what_it_reads_and_what_it_writes(open_page: Open) -> None:
    page = open_page(open="dec.1", head=0)
    row = page.locator("[id='q-dec.1.cross.weights.h0'] tbody tr", has_text="un → coche")
    expect(row).to_have_count(1)
    columns = page.locator("[id='q-dec.1.cross.weights.h0'] thead th").all_text_contents()
    weights = [float(text.replace("−", "-")) for text in row.locator("td").all_text_contents()]
    assert columns[weights.index(max(weights))] == "car"  # the same as in the overview


def test_a_layer_shows_the_paper_s_steps_first_and_all_of_them_on_request(open_page: Open) -> None:
    page = open_page(open="dec.1")
    masked = page.locator("[id='part-dec.1-masked']")
    index = masked.locator(".index button")
    expect(index).to_have_text(
        [
            *(
                "norm.out",
                "Q",
                "K",
                "V",
                "scores",
                "scaled",
                "masked",
                "weights",
                "head",
                "concat",
                "self.out",
                "self.sum",
            )
        ]
    )
    page.get_by_role("button", name="Show all steps").click()
    expect(page.locator("[id='q-dec.1.self.x.whole']")).to_be_attached()
    index.get_by_text("weights", exact=True).click()
    expect(page.locator("[id='q-dec.1.self.weights.h0']")).to_be_in_viewport()


def test_what_is_computed_for_long_says_so_is_stopped_and_is_dropped_for_another_text(
    open_page: Open, server: str
) -> None:
    page = open_page(card="whatif")
    waiting: list[Route] = []

    def hold_back(route: Route) -> None:
        told = route.request.post_data or ""
        if CAR in told and ("cross" in told or "positions" in told):
            waiting.append(route)
        else:
            route.continue_()

    page.route("**/api/run", hold_back)
    gone: list[str] = []
    page.on("requestfailed", lambda request: gone.append(request.post_data or ""))
    page.get_by_role("button", name="No cross-attention").click()
    expect(page.get_by_text("Computing…").first).to_be_visible()
    assert not violations(page, "color-contrast")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Computing…")).to_have_count(0)
    expect(page.get_by_role("button", name="No cross-attention")).to_have_attribute("aria-pressed", "false")
    assert "if=" not in page.url
    assert any("cross" in body for body in gone)
    page.locator("#block-enc\\.0 h4 button").click()
    expect(page.locator("[id='q-enc.0.self.scores.h0'] td button").first).to_be_visible()
    page.get_by_role("button", name="No positions").click()
    expect(page.get_by_text("Computing…").first).to_be_visible()
    page.locator("#text").fill("Hello world")
    asked = {"text": "Hello world", "changes": [["without", "positions"]]}
    told = httpx.post(f"{server}api/run", json=asked, timeout=60).json()
    expect(page.locator("#translation")).to_have_text(told["changed"]["after"])
    assert any("positions" in body and CAR in body for body in gone)


def test_a_head_switched_off_in_a_layer_shows_its_effect_in_the_bar(open_page: Open) -> None:
    page = open_page(open="dec.1")
    switch = page.locator("[id='part-dec.1-masked']").get_by_role("switch").nth(3)
    switch.scroll_into_view_if_needed()
    before = switch.evaluate("element => element.getBoundingClientRect().top")
    switch.click()
    where = page.get_by_role("navigation", name="Location")
    expect(where).to_contain_text("Ayer compré un coche nuevo ayer.")
    expect(where.locator(".changed")).to_be_in_viewport()
    quiet(page)
    # Only the bar above the switch has grown: the cards above the model have not pushed it down.
    assert abs(switch.evaluate("element => element.getBoundingClientRect().top") - before) < 60


def test_a_link_is_copied_over_plain_http_too_and_holds_heads_attention_and_cards(open_page: Open, server: str) -> None:
    page = open_page(context={"permissions": []})
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as over plain HTTP
    page.get_by_label("Attention layer").select_option("enc.2.self")
    page.locator(".heads").get_by_role("button", name="head 3").click()
    page.locator(".unfold", has_text="From text to tokens").click()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".copied")).not_to_be_empty()
    again = open_page(attention="enc.2.self", only="3", card="tokens")
    assert page.url.partition("#")[2].split("&")[1:] == again.url.partition("#")[2].split("&")[1:]
    address = re.compile(r"enc\.2\.self\.weights\.h3")
    expect(again.locator(".ribbons path").last).to_have_attribute("data-address", address)
    expect(again.locator(".word").first).to_be_visible()


def test_the_other_direction_reads_the_translation(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Translate in the other direction").click()
    expect(page.locator("#text")).to_have_value("Ayer compré un coche nuevo.")
    expect(page.locator("#translation")).to_contain_text("car")
    page.locator("header select").first.select_option("lesson")
    expect(page.locator("#text")).to_have_value("hello world")
    expect(page.locator("#translation")).to_have_text("hola mundo")


def test_escape_gives_the_focus_back_and_leaves_a_layer(open_page: Open) -> None:
    page = open_page(text="hello world", model="lesson", open="enc.0")
    number = page.locator("[data-address='enc.0.self.scores.h0[0,0]']").first
    number.click()
    expect(page.locator("aside")).to_be_visible()
    page.keyboard.press("Escape")
    expect(number).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".inside")).to_have_count(0)
    expect(page.locator("#block-enc\\.0 h4 button")).to_be_focused()


def test_nan_draws_no_share_and_a_change_is_relative(open_page: Open, server: str) -> None:
    text, changes = "hello world", [["without", "layer-norm"], ["softmax", "naive"], ["scale", "src.scaled=1000"]]
    page = open_page(text=text, model="lesson", **{"if": [":".join(change) for change in changes]})
    quiet(page)
    assert "NaN" in page.locator(".heads").inner_text()
    widths = page.locator(".heads .track span").evaluate_all("all => all.map(one => one.style.width)")
    assert set(widths) == {"0%"}
    told = httpx.post(f"{server}api/run", json={"text": text, "model": "lesson", "changes": changes}, timeout=60).json()
    assert all("relative" in layer for layer in told["changed"]["layers"])


def test_the_story_keeps_what_is_lit_above_its_card(open_page: Open, server: str) -> None:
    page = open_page(width=1280, height=900, context={"reduced_motion": "reduce"})
    for scene in (1, 4, 6, 8, 9):
        page.goto("about:blank")
        page.goto(f"{server}#{urlencode({'text': CAR, 'story': scene})}")
        expect(page.locator(".block.lit").first).to_be_visible()
        quiet(page)  # then nothing scrolls, for motion is reduced
        top = page.locator("section.card", has=page.locator(".says")).bounding_box()
        assert top
        for block in page.locator(".block.lit").all():
            box = block.bounding_box()
            assert box
            assert box["y"] > -20, scene
            assert box["y"] + box["height"] <= top["y"], scene


DOUBTFUL = (
    "three billion two hundred million and seventeen",
    "the ninety-ninth, the hundred-and-first and the thousandth",
    "http://a.b 7 8 9 ten eleven twelve thirteen 14 15 sixteen 17",
)


def test_doubtful_words_are_underlined_with_the_reason(open_page: Open, server: str) -> None:
    told = [(text, httpx.post(f"{server}api/translate", json={"text": text}, timeout=60).json()) for text in DOUBTFUL]
    page = open_page(text="Hello.")
    for text, answer in told:
        page.locator("#text").fill(text)
        reasons = [warning["reason"] for warning in answer["warnings"]]
        expect(page.get_by_role("list", name="Please check").get_by_role("listitem")).to_have_text(reasons)
        marked = [warning["target"] for warning in answer["warnings"] if warning["target"] in answer["translation"]]
        expect(page.locator("#translation mark")).to_have_text([part for part in marked if part])
    assert not violations(page, "color-contrast")
    assert any(answer["warnings"] for _, answer in told)


def test_a_search_with_beam_1_is_one_row(open_page: Open) -> None:
    page = open_page(text="hello world", model="lesson", card="search")
    expect(page.locator("td.text")).to_have_text(["hola mundo"])


def test_a_server_that_has_stopped_is_told_in_spanish_with_the_browser_s_own_words(open_page: Open) -> None:
    page = open_page(context={"locale": "es-ES"})
    page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('Failed to fetch')) }")
    page.locator("#text").fill("Hello world")
    expect(page.locator(".refused")).to_contain_text("El servidor no responde")
    expect(page.locator(".refused")).to_contain_text("TypeError: Failed to fetch")


def test_alt_and_an_arrow_is_left_to_the_browser(open_page: Open) -> None:
    page = open_page(text="hello world", model="lesson", open="enc.0")
    is_left = """(one, altKey) => one.dispatchEvent(
        new KeyboardEvent("keydown", { key: "ArrowLeft", altKey, bubbles: true, cancelable: true })
    )"""
    for where in ("[id='q-enc.0.self.scores.h0'] td button", "[role=slider]"):
        one = page.locator(where).first
        assert [one.evaluate(is_left, alt) for alt in (True, False)] == [True, False], where


def test_every_view_has_a_title(open_page: Open) -> None:
    page = open_page()
    expect(page).to_have_title(f"{CAR} · Vidrio")
    page.locator("#block-dec\\.1 h4 button").click()
    expect(page).to_have_title(f"Layer 1 · {CAR} · Vidrio")


def test_a_recurrent_cell_shows_what_it_keeps(browser: Browser, tmp_path: Any) -> None:
    write_model(tmp_path / "cell", decoder_cell="ssru")
    with serving(model=tmp_path / "cell", page=True) as there:
        page = browser.new_page()
        page.goto(f"{there.address}#{urlencode({'text': 'bala core fula', 'open': 'dec.0'})}")
        part = page.locator("[id='part-dec.0-ssru']")
        expect(part.get_by_role("heading", name="What the cell keeps")).to_be_visible()
        rows = part.locator(".strip .name")
        expect(rows).to_have_count(page.locator(".tokens li").count())
        expect(rows.first).to_contain_text("‹start› → ")
        expect(part.locator(".index button").filter(has_text=re.compile("^(forget|candidate|cell)$"))).to_have_count(3)
        expect(page.locator("#block-dec\\.1 canvas").first).to_be_attached()
        page.locator(".unfold", has_text="What if").click()
        page.get_by_role("button", name="No memory in the recurrent cell").click()
        expect(page.locator(".chips")).to_contain_text("forget-gate")
        assert not violations(page, "color-contrast")
        page.close()


def test_a_server_with_keys_asks_for_one(browser: Browser, tmp_path: Any) -> None:
    (tmp_path / "keys").write_text("teacher s3cret-s3cret-s3cret\n", "utf-8")
    with serving("--keys", str(tmp_path / "keys"), "--key-required", page=True) as there:
        page = browser.new_page()
        page.goto(f"{there.address}#{urlencode({'text': 'hello world'})}")
        field = page.get_by_label("API key")
        expect(field).to_be_visible()
        assert not violations(page)
        field.fill("wrong")
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_text("did not accept this key")).to_be_visible()
        field.fill("s3cret-s3cret-s3cret")
        page.get_by_role("button", name="Use this key").click()
        expect(page.locator("#translation")).to_have_text("hola mundo")
        expect(field).to_have_count(0)
        page.close()


def test_a_card_folded_during_a_change_opens_for_the_next_one(open_page: Open) -> None:
    page = open_page(text="hello world", model="lesson", card="whatif")
    unfold, preset = page.locator("#whatif-title .unfold"), page.get_by_role("button", name="No positions")
    preset.click()
    expect(page.get_by_role("button", name="Undo all changes")).to_be_visible()
    unfold.click()
    expect(preset).to_have_count(0)
    unfold.click()
    page.get_by_role("button", name="Undo all changes").click()
    preset.click()
    expect(preset).to_be_visible()


def test_a_link_may_name_any_model(open_page: Open, server: str) -> None:
    page = open_page()
    page.goto("about:blank")
    page.goto(f"{server}#model=constructor")
    expect(page.locator("#text")).to_have_value(CAR)
