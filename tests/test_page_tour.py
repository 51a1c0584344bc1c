"""Test that the tour's statements about the packaged model are true and that the tour can be followed to the end."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Page, expect
from safetensors.numpy import load

from chromium import violations

CAR = "I bought a new car yesterday."
COCHE = 5  # the step that produces "coche"

Ask = Callable[..., Any]


@pytest.fixture
def ask(server: str) -> Ask:
    def asked(name: str, text: str, *changes: tuple[str, str], **more: Any) -> Any:
        body = {"text": text, "model": "en-es", "changes": changes, **more}
        answer = httpx.post(f"{server}api/{name}", json=body, timeout=300)
        return load(answer.content) if name == "tensors" else answer.json()

    return asked


def test_choices_pieces_and_neighbours(ask: Ask) -> None:
    run = ask("run", CAR)
    tokens = [step["token"] for step in run["steps"]]
    taken = {step["token"]: next(c["p"] for c in step["best"] if c["taken"]) for step in run["steps"]}
    assert tokens[COCHE] == "▁coche" == min(("▁ayer", "▁coche", "▁nuevo"), key=taken.__getitem__)
    assert run["steps"][COCHE]["best"][1]["token"] == "▁auto"
    assert tokens[2:4] == ["▁compr", "é"]
    near = {one["token"]: [n["token"] for n in one["near"]] for one in ask("tokens", CAR)["alike"]["nearest"]}
    assert near["▁yesterday"][:2] == ["▁tomorrow", "▁today"]


def test_positions_agreement_attention_and_sizes(ask: Ask) -> None:
    dog, man = "The dog bites the man.", "The man bites the dog."
    alone = [ask("run", text, ("without", "positions"))["written"] for text in (dog, man)]
    assert alone[0] == alone[1]
    assert ask("run", dog)["written"] != ask("run", man)["written"]
    assert "una casa nueva" in ask("run", "I bought a new house yesterday.")["translation"]
    source = [token["token"] for token in ask("run", CAR)["source"]]
    names = ["dec.1.cross.weights", *(f"dec.1.cross.weights.h{h}" for h in range(8))]
    weights = ask("tensors", CAR, addresses=names)
    car = source.index("▁car")
    assert int(weights["dec.1.cross.weights"][COCHE].argmax()) == car
    by_head = np.array([weights[name][COCHE, car] for name in names[1:]])
    assert set(by_head.argsort()[:2]) == {3, 5}
    assert len(source) == 9
    assert ask("machine", CAR)["sizes"]["K"] == 32


def test_heads_and_cross_attention(ask: Ask) -> None:
    plain = ask("run", CAR)["translation"]
    twice = ask("run", CAR, ("heads-off", "dec.1.self.h3"))["written"]
    assert len(re.findall("ayer", twice, re.IGNORECASE)) == 2
    assert not ask("run", CAR, ("heads-off", "dec.1.cross.h5"))["written"].startswith("Ayer")
    blind = ask("run", CAR, ("without", "cross"))["written"]
    assert blind
    assert "coche" not in blind
    assert blind != plain


def test_it_is_walked_to_its_end(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_role("button", name="Take the tour").click()
    card = page.get_by_role("region", name="Tour")
    for number in range(1, 13):
        expect(card.locator("h2")).to_contain_text(f"{number}/12")
        expect(card.get_by_role("group").get_by_role("button")).to_have_count(3)
        if number in (1, 11):
            card.get_by_role("group").get_by_role("button").nth(1).click()
            expect(card.locator(".answer")).not_to_be_empty()
        if number == 11:
            expect(page.locator("#translation")).to_have_text("Ayer compré un coche nuevo ayer.")
            expect(card).to_contain_text("1 of 2 correct")
            assert not violations(page)
        card.get_by_role("button", name="Next →" if number < 12 else "Finish").click()
    expect(card).to_have_count(0)
    assert "tour=" not in page.url
