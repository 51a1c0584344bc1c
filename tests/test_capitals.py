"""text/capitals.py: what is shouted is read quietly, and only that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.text.capitals import lowered, raised, shouted
from vidrio.text.masks import hide, reveal


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("DO NOT OPEN THIS DOOR!", "Do not open this door!"),
        ("HELLO", "Hello"),
        ("YOU AND I", "You and I"),
        ("SEE https://a.org/Big AND {name}.", "See https://a.org/Big and {name}."),
        ("¿DÓNDE ESTÁ?", "¿Dónde está?"),
        ("1. FIRST", "1. First"),
    ],
)
def test_capitals_are_read_as_small_letters(text, read):
    assert shouted(text)
    assert lowered(text) == read
    assert raised(read) == text


@pytest.mark.parametrize(
    "text", ["NASA is here", "USA", "PDF", "Hello", "", "123", "¿?", "https://a.org/x", "VERY good"]
)
def test_other_texts_are_not(text):
    assert not shouted(text)
    assert hide(text, "").text == text


def test_the_translation_is_raised_but_for_what_is_copied():
    sentence = "CLICK {next} OR ASK a@b.org!"
    masked = hide(sentence, "①②③")
    assert masked.text == "Click ① or ask ②!"
    assert reveal("Haz clic en ① o pregunta a ②.", sentence, masked) == "HAZ CLIC EN {next} O PREGUNTA A a@b.org."
    assert reveal("Haz clic.", sentence, masked) is None


@given(st.text(max_size=40))
def test_places_stay_what_they_are(text):
    assert len(lowered(text)) == len(raised(text)) == len(text)
    masked = hide(text, "")
    assert masked.loud == shouted(text)
    assert masked.loud or masked.text == text
