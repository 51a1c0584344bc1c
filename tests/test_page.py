"""Test the page in a real browser, offline, from the sentence down to a single multiplication."""

import math
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import httpx
import pytest
from playwright.sync_api import Page, expect
from safetensors.numpy import load

from chromium import quiet, violations

TEXT = "I bought a new car yesterday."
PIECES = ["⇧", "i", "bought", "a", "new", "car", "yesterday", ".", "</s>"]  # the model's input

Open = Callable[..., Page]


def test_typing_translates_token_by_token(open_page: Open) -> None:
    page = open_page()
    expect(page.locator(".status")).to_contain_text("8,883,968")
    page.locator("#text").fill("Hello world")
    expect(page.locator("#translation")).to_have_text("Hola mundo")
    expect(page.locator(".tokens li")).to_have_count(5)  # ⇧ h ola mundo </s>
    page.locator(".tokens button").nth(3).click()
    expect(page.locator(".so-far")).to_contain_text("ola")
    expect(page.locator("tr.taken th")).to_contain_text("mundo")
    page.locator("#text").fill("😀")
    expect(page.locator("#translation")).to_have_text("😀")
    expect(page.get_by_text("is copied unchanged")).to_be_visible()
    page.locator("#text").fill("")
    expect(page.locator("#translation")).to_have_text("")


def test_from_the_overview_to_one_multiplication_by_keyboard(open_page: Open) -> None:
    page = open_page(numbers="float64")
    page.locator("#block-enc\\.0 h4 button").focus()
    page.keyboard.press("Enter")
    frame = page.locator("#q-enc\\.0\\.self\\.Q\\.h0 .frame")
    frame.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator("#q-enc\\.0\\.self\\.Q\\.h0 .lens code")).to_have_text("enc.0.self.Q.h0[1,2]")
    page.keyboard.press("Enter")
    panel = page.locator("aside")
    expect(panel.locator(".top code")).to_have_text("enc.0.self.Q.h0[1,2]")
    expect(panel.locator(".terms tbody tr")).to_have_count(256)
    panel.locator(".terms tbody tr").first.locator("button").nth(1).click()
    expect(panel.locator(".top code")).to_have_text("enc.0.self.WQ.h0[0,2]")
    expect(panel).to_contain_text("model.safetensors")
    page.go_back()
    expect(panel.locator(".top code")).to_have_text("enc.0.self.Q.h0[1,2]")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_the_row_of_a_token_stands_out_through_both_towers(open_page: Open, server: str) -> None:
    page = open_page(step=5)
    label = page.locator(".strip .now")
    reads = tensors(server, ["dec.1.cross.weights"])["dec.1.cross.weights"]
    most = PIECES[reads[5].argmax()]  # the token that "coche" attends to most
    expect(page.locator("#block-enc\\.3 .strip .now")).to_have_text(most)
    expect(page.locator("#block-dec\\.1 .strip .now").first).to_have_text("un → coche")
    expect(label).to_have_count(8 + 8)  # embedding, 6 layers, memory; embedding, 2 layers of 3 parts, output
    quiet(page)
    for x in (20, 30):  # if the page moves under a still pointer, the first hover has no effect
        page.locator("#block-memory canvas").first.hover(position={"x": x, "y": 3})
    expect(page.locator("#block-enc\\.3 .strip .now")).to_have_text("⇧")
    page.mouse.move(0, 0)
    page.get_by_role("slider", name="Highlighted source token").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#block-memory .strip .now")).to_have_text("i")
    assert "row=1" in page.url
    page.get_by_role("slider", name="Highlighted target token").focus()
    page.keyboard.press("End")
    expect(page.locator(".scrub")).to_contain_text("Step 9 of 9")


def test_attention_begins_with_the_mean_and_a_head_is_picked_out(open_page: Open, server: str) -> None:
    page = open_page(step=4)
    names = ["dec.1.cross.weights", *(f"dec.1.cross.weights.h{h}" for h in range(8))]
    found = tensors(server, names)
    mean = sum(found[name] for name in names[1:]) / 8
    assert found[names[0]] == pytest.approx(mean, abs=1e-6)
    strongest = page.locator(".ribbons path").last
    expect(strongest).to_have_attribute("data-address", f"dec.1.cross.weights[4,{mean[4].argmax()}]")
    few = page.locator(".ribbons path").count()
    page.get_by_role("button", name="show all links").click()
    assert page.locator(".ribbons path").count() > few
    page.locator(".heads").get_by_role("button", name="head 3").click()
    expect(page.locator(".ribbons path").last).to_have_attribute("data-address", re.compile(r"weights\.h3\[4,"))
    page.get_by_label("Attention layer").select_option("enc.2.self")
    expect(page.locator(".ribbons path").last).to_have_attribute(
        "data-address", re.compile(r"enc\.2\.self\.weights\.h3")
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_an_open_layer_says_where_it_is_what_feeds_it_and_what_comes_next(open_page: Open, width: int) -> None:
    page = open_page(width=width, height=800, open="dec.0")
    page.locator("[id='q-dec.0.cross.scores.h0'] .frame, [id='q-dec.0.cross.scores.h0'] table").first.wait_for()
    page.locator("[id='q-dec.0.cross.scores.h0']").evaluate("one => one.scrollIntoView()")
    where = page.get_by_role("navigation", name="Location")
    expect(where).to_be_in_viewport(ratio=1)
    expect(where).to_contain_text("Layer 0")
    expect(where.locator("[aria-current]")).to_have_text("Cross-attention")
    expect(where.locator(".made b")).to_have_text("scores")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for name in ("Embedding", "Encoder output"):
        expect(where.get_by_role("button", name=f"input: ← {name}")).to_be_visible()
    where.get_by_role("button", name="output: Layer 1").click()
    expect(where).to_contain_text("Layer 1")
    where.get_by_role("button", name="The whole model").click()
    expect(where).to_have_count(0)
    expect(page.locator("#block-dec\\.1 h4 button")).to_be_focused()
    expect(page.locator("#block-dec\\.1")).to_be_in_viewport()


def test_the_story_goes_by_itself_stops_and_is_a_place(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Watch a translation").click()
    expect(page.locator(".flying").first).to_be_attached()  # only in the first six seconds
    story = page.get_by_role("region", name="The story")
    expect(story.locator("[aria-live]")).to_contain_text("9 pieces")
    expect(page.locator("#block-src.lit")).to_have_count(1)
    expect(story.locator("h2")).to_contain_text("Tokens become vectors", timeout=30_000)
    story.get_by_role("button", name="Pause").click()
    page.keyboard.press("ArrowRight")
    expect(story.locator("h2")).to_contain_text("Tokens attend to tokens")
    expect(page.locator(".ribbons path").last).to_have_attribute(
        "data-address", re.compile(r"^enc\.0\.self\.weights\[")
    )
    page.go_back()
    expect(story.locator("h2")).not_to_contain_text("Tokens attend to tokens")
    story.get_by_role("button", name="7:").click()
    expect(story).to_contain_text("“ayer”")
    assert "story=7" in page.url
    page.keyboard.press("Escape")
    expect(story).to_have_count(0)
    expect(page.locator(".block.dim")).to_have_count(0)


def test_in_spanish_and_the_dark_with_a_story_that_stands_still_where_motion_is_unwanted(open_page: Open) -> None:
    page = open_page(context={"reduced_motion": "reduce", "locale": "es-ES", "color_scheme": "dark"})
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("document.documentElement.lang") == "es"
    page.clock.install()  # for all pages of the context, so this test has its own
    page.get_by_role("button", name="Ver cómo se traduce").click()
    story = page.get_by_role("region", name="La historia")
    expect(story.locator("h2")).to_contain_text("El texto se convierte en tokens")
    expect(story.get_by_role("button", name="Reproducir")).to_have_count(0)
    assert not page.locator(".flying").count()
    page.clock.run_for(7_000)  # longer than the first scene
    expect(story.locator("h2")).to_contain_text("El texto se convierte en tokens")
    story.get_by_role("button", name="Siguiente").click()
    expect(story.locator("h2")).to_contain_text("Los tokens se convierten en vectores")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="El modelo entero")).to_be_visible()
    page.get_by_label("Idioma").select_option("en")
    expect(page.get_by_role("heading", name="The whole model")).to_be_visible()


def test_a_link_brings_the_same_view_back_or_says_what_is_wrong_in_it(open_page: Open, server: str) -> None:
    at = "dec.1.cross.weights.h2[5,5]"
    page = open_page(step=5, open="dec.1", head=2, at=at)
    expect(page.locator("aside .top code")).to_have_text(at)
    expect(page.locator("#q-dec\\.1\\.cross\\.weights\\.h2 th").nth(5)).to_have_text("car")
    expect(page.locator("tr.taken th")).to_contain_text("coche")
    page.goto(f"{server}#{urlencode({'text': TEXT, 'at': 'enc.77.in[0,0]'})}")
    expect(page.locator(".refused")).to_contain_text("there is no 'enc.77.in'")


def test_every_number_drawn_is_the_one_at_its_address(open_page: Open, server: str) -> None:
    page = open_page(step=3)
    for opened in ("enc.0", "dec.1", "src", "memory", "out"):
        page.evaluate("hash => { location.hash = hash }", urlencode({"text": TEXT, "step": 3, "open": opened}))
        page.locator(f"[id='inside-{opened}'] :is(table, .lens)").first.wait_for()
        quiet(page)
        every_number_is_the_one_at_its_address(page, server)


def every_number_is_the_one_at_its_address(page: Page, server: str) -> None:
    drawn = page.eval_on_selector_all(
        "[data-address*='[']", "all => all.map(one => [one.dataset.address, one.textContent.trim()])"
    )
    texts = {address: text for address, text in drawn if text}
    assert len(texts) > 5
    assert page.locator(".number").count()
    names = sorted({address.partition("[")[0] for address in texts})
    truth = tensors(server, names)
    for address, text in texts.items():
        name, inside, step = re.fullmatch(r"([^\[]+)\[([\d,]+)\](?:@(\d+))?", address).groups()  # type: ignore[union-attr]
        place = tuple(map(int, inside.split(",")))
        place = (int(step), *place) if step and name.startswith("out.") else place
        assert_written(text, float(truth[name][place]), address)


def assert_written(text: str, value: float, address: str) -> None:
    """Check a number as formatted by the page: with decimals, an exponent, a percent sign, or as ∞."""
    plain = text.rpartition(" = ")[2].replace("−", "-").replace("∞", "inf")
    if plain.startswith("<"):
        assert 0 < value < 0.001, address
    elif plain.endswith("%"):
        assert abs(float(plain[:-1]) / 100 - value) < 0.00051, address
    elif "e" in plain:
        mantissa, _, power = plain.partition("e")
        assert abs(float(plain) - value) <= 0.51 * 10 ** (int(power) - len(mantissa.partition(".")[2])), address
    else:
        digits = len(plain.partition(".")[2])
        assert float(plain) == value or abs(float(plain) - value) <= 0.51 * 10**-digits, address


def tensors(server: str, names: list[str], **what: Any) -> dict[str, Any]:
    answer = httpx.post(f"{server}api/tensors", json={"text": TEXT, "addresses": names, **what}, timeout=30)
    return load(answer.content)


def test_what_if_changes_the_translation_and_is_undone(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="What if").click()
    page.get_by_role("button", name="No cross-attention").click()
    expect(page.locator("dd.differs")).to_be_visible()
    expect(page.locator(".columns tbody tr").first).to_be_visible()
    assert "if=without" in page.url
    page.get_by_role("button", name="Undo all changes").click()
    expect(page.locator("#translation")).to_have_text("Ayer compré un coche nuevo.")
    expect(page.locator("dd.differs")).to_have_count(0)


def test_a_matrix_is_saved_to_the_last_digit_a_number_overwritten_and_a_head_switched_off(
    open_page: Open, server: str
) -> None:
    name = "enc.0.self.scores.h0"
    page = open_page(open="enc.0", at=f"{name}[0,0]")
    with page.expect_download() as download:
        page.locator(f"[id='q-{name}']").get_by_role("button", name="CSV").click()
    rows = [line.split(",") for line in download.value.path().read_text("utf-8").splitlines()]
    assert [[float(value) for value in row[1:]] for row in rows[1:]] == tensors(server, [name])[name].tolist()
    page.locator("aside form input").fill("−0,5")
    page.locator("aside form button").click()
    expect(page.locator("aside .mark")).to_be_visible()
    expect(page.locator("#q-enc\\.0\\.self\\.scores\\.h0 .mark")).to_be_visible()
    expect(page.locator(".chips")).to_contain_text("set enc.0.self.scores.h0[0,0]=-0.5")
    page.get_by_role("switch").first.click()
    expect(page.get_by_role("switch").first).to_have_attribute("aria-checked", "false")
    expect(page.locator(".chips")).to_contain_text("heads-off enc.0.self.h0")


@pytest.mark.parametrize(
    "view",
    [
        {},
        {"story": "7"},
        {"model": "lesson", "open": "enc.0", "at": "enc.0.self.scores.h0[0,1]", "text": "hello"},
        {"open": "src"},
    ],
)
def test_axe_finds_nothing(open_page: Open, view: dict[str, str]) -> None:
    """Check both themes, with all sections expanded."""
    page = open_page(**view)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    if not view:
        for name in ("Logits", "What if", "From text", "Beam search", "Training"):
            page.locator(".unfold", has_text=name).click()
        page.locator(".tree button").first.wait_for(timeout=60_000)
    quiet(page)
    assert not violations(page, "wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
    page.get_by_label("Light or dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert not violations(page, "color-contrast")


def test_the_text_before_stays_readable_while_an_answer_is_on_its_way(open_page: Open) -> None:
    page = open_page()
    page.route("**/api/run", lambda route: None)  # never answered
    page.locator("#text").fill("Hello world")
    expect(page.locator("#translation")).to_have_text("Hola mundo")
    expect(page.locator(".busy .tokens li")).to_have_count(9)
    assert not violations(page, "color-contrast")
    page.reload()  # the model and the skip link have not appeared yet
    expect(page.locator("#translation")).not_to_be_empty()
    assert not violations(page)


def test_a_phone_shows_one_tower_at_a_time(open_page: Open) -> None:
    page = open_page(width=360, height=740, context={"is_mobile": True, "has_touch": True})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    expect(page.locator(".tower.dec")).to_be_hidden()
    page.get_by_role("button", name="Decoder", exact=True).click()
    expect(page.locator(".tower.dec")).to_be_visible()
    page.locator("#block-dec\\.0 h4 button").click()
    page.locator(".inside .frame").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_tree_says_why_a_hypothesis_died_and_lets_it_go_on(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Beam search").click()
    page.locator(".tree button.best").first.wait_for(timeout=60_000)
    assert page.locator(".tree button.best").count() == page.locator(".tokens li").count()
    page.locator(".all input").check()
    page.locator(".tree button.dropped").first.click()
    expect(page.locator(".detail")).to_contain_text("dropped")
    begun = page.locator(".detail b").inner_text().replace("⇧", " ").split()  # the raw tokens
    page.get_by_role("button", name="Continue from here").click()
    words = r"\s+".join(map(re.escape, begun))
    expect(page.locator("dd.differs")).to_have_text(re.compile(f"^{words}", re.IGNORECASE))
    assert "if=pin" in page.url


def test_temperature_and_a_forced_beginning(open_page: Open) -> None:
    page = open_page()
    page.locator(".unfold", has_text="Logits, temperature").click()
    rows = page.locator("table", has_text="logit").locator("tbody tr")
    expect(rows).to_have_count(13)
    page.get_by_role("slider", name="top-k").fill("2")
    expect(rows.nth(2)).to_contain_text("excluded")
    page.locator(".unfold", has_text="What if").click()
    page.get_by_label("The translation starts with").fill("Yo")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator("dd.differs")).to_have_text(re.compile("^Yo "))


def test_the_first_document_s_exact_run(open_page: Open) -> None:
    page = open_page(text="hello world", model="lesson")
    page.locator(".unfold", has_text="What if").click()
    page.get_by_role("button", name="The worked example, as published").click()
    cell = page.locator("[data-address='enc.0.self.norm.out[0,0]']").first
    expect(cell).to_have_text("1.7189")
    cell.click()
    expect(page.locator("aside .full")).to_contain_text("1.7188769")


def test_pencil_mode_names_the_likely_slip(open_page: Open, server: str) -> None:
    page = open_page(open="enc.0", at="enc.0.self.scaled.h0[1,2]", numbers="float64")
    found = tensors(server, ["enc.0.self.scores.h0", "enc.0.self.scaled.h0"], numbers="float64")
    score, scaled = (found[f"enc.0.self.{name}.h0"][1, 2] for name in ("scores", "scaled"))
    page.get_by_role("button", name="Work it out yourself").click()
    assert f"{scaled:.6f}"[:4] not in page.locator("aside").inner_text()
    page.get_by_label("Your answer").fill(f"{score:.2f}")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("aside .verdict").first).to_contain_text("forget to divide")
    page.get_by_label("Your answer").fill(f"{scaled:.3f}")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("aside .value")).to_have_text(f"{scaled:.6f}".replace("-", "−"))


def test_every_picture_is_kept_as_svg_and_png(open_page: Open) -> None:
    page = open_page(text="hello world", model="lesson", open="enc.0")
    page.locator(".unfold", has_text="From text to tokens").click()
    for name in ("vidrio", "src.embedding cosines", "enc.0.self.scores.h0"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"{name}: SVG").click()
        tree = ElementTree.parse(download.value.path())
        words = " ".join("".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text"))
        assert "hello" in words, name
        with page.expect_download() as download:
            page.get_by_role("button", name=f"{name}: PNG").click()
        assert download.value.path().read_bytes().startswith(b"\x89PNG"), name
    scores = page.locator("[data-address='enc.0.self.scores.h0[0,1]']").first.inner_text()
    with page.expect_download() as download:
        page.get_by_role("button", name="enc.0.self.scores.h0: SVG").click()
    assert f">{scores}</text>" in download.value.path().read_text("utf-8")


def test_positions_are_waves(open_page: Open, server: str) -> None:
    page = open_page(open="src")
    waves = page.locator(".waves").first
    waves.get_by_role("slider").fill("20")
    expect(waves.locator("circle")).to_have_count(9)
    expect(waves.locator("label")).to_contain_text(f"{2 * math.pi * 10000 ** (20 / 256):.2f}")
    asked = {"text": TEXT, "address": "src.positions"}
    table = load(httpx.post(f"{server}api/positions", json=asked, timeout=30).content)["positions"]
    assert table[3, 20] == pytest.approx(math.sin(3 / 10000 ** (20 / 256)))
    title = waves.locator("circle").nth(3).locator("title").text_content()
    assert title == f"a: src.positions[3,20] = {table[3, 20]:.4f}"


def test_how_a_model_learned(open_page: Open, server: str) -> None:
    page = open_page(text="hello world", model="lesson", at="enc.0.self.WQ.h0[0,1]")
    page.locator(".unfold", has_text="Training").click()
    learning = page.locator("section", has=page.locator("#learning-title"))
    expect(learning.locator(".says")).to_have_text("hola mundo")
    learning.locator("input[type=range]").fill("0")
    expect(learning.locator(".scrub b")).to_have_text("after 0 steps")
    expect(learning.locator(".says")).not_to_have_text("hola mundo")
    learning.get_by_text("use the model’s translation").click()
    learning.get_by_text("Compute the loss", exact=True).click()
    expect(learning.locator(".forcing tbody tr")).to_have_count(3)
    asked = {"text": "hello world", "model": "lesson", "answer": "hola mundo"}
    truth = httpx.post(f"{server}api/forced", json=asked, timeout=60).json()
    assert truth["mean"] == pytest.approx(sum(token["loss"] for token in truth["tokens"]) / 3)
    expect(learning.locator(".forcing p b")).to_have_text(f"{truth['mean']:.4f}")
    assert not violations(page)


def test_a_lesson_is_read_beside_the_machine(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Lessons").click()
    card = page.get_by_role("region", name="Lesson")
    expect(card.locator("h1")).to_have_text("Eight exercises")
    card.get_by_label("Lesson", exact=True).select_option("random-transformer")
    expect(card.locator("h1")).to_contain_text("The worked example")
    card.get_by_role("button", name="Next →").click()
    expect(card.locator("h2, h3").first).to_be_visible()
    card.get_by_label("Section").select_option(label="6. Two heads become one row")
    expect(card.locator("h2, h3").first).to_contain_text("Two heads become one row")
    card.locator("pre a").first.click()
    quiet(page)
    expect(page.locator("[data-address='enc.0.self.concat[0,0]']").first).to_have_text("7.5435")
    card.get_by_label("Lesson", exact=True).select_option(label="Eight exercises")
    card.get_by_label("Section").select_option("4")
    expect(card).not_to_contain_text("consists of two linear maps", use_inner_text=True)
    card.get_by_text("The answer").click()
    expect(card).to_contain_text("consists of two linear maps", use_inner_text=True)
    assert not violations(page)
    card.get_by_role("button", name="Close the lesson").click()
    expect(card).to_have_count(0)
