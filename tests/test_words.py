"""Test text/words.py: words cover a text, and every token belongs to a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import token_places, word_of_each, worded, words

TEXTS = ["hola mundo", "¡Qué día! ¿No?", "un perro — dijo — y 18.10 €", "emoji 🙂🇪🇸 y ñandú", "el niño, ella"]
TOKENIZER = Tokenizer.learn(TEXTS * 3, 300)

any_text = st.text(st.sampled_from("aé\u0301ñ1.,-—'¿{}% \n\t@/🙂_\u00a0"), max_size=30) | st.text(max_size=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("¡Hola, mundo!", ["¡", "Hola", ",", "mundo", "!"]),
        ("Don't e-mail him—now…", ["Don't", "e-mail", "him", "—", "now", "…"]),
        ("Pay €18.10 to a@b.org, {name}.", ["Pay", "€18.10", "to", "a@b.org", ",", "{name}", "."]),
        ("cafe\u0301 {{ x }}", ["cafe\u0301", "{{ x }}"]),
        (' "(hi) ', ['"(', "hi", ")"]),
        ("", []),
        (" \n", []),
    ],
)
def test_what_a_word_is(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in words(text)] == expected


@given(any_text)
def test_words_cover_everything_but_white_space_in_order(text: str) -> None:
    at = 0
    for start, end in words(text):
        assert not text[at:start].strip()
        assert start < end
        assert text[start:end].strip()
        at = end
    assert not text[at:].strip()


@given(any_text)
def test_token_places_cover_what_is_decoded(text: str) -> None:
    ids = TOKENIZER.encode(text)
    decoded = TOKENIZER.decode(ids)
    places = token_places(ids, TOKENIZER)
    assert len(places) == len(ids)
    assert "".join(decoded[start:end] for start, end in places) == decoded
    assert [start for start, _ in places[1:]] == [end for _, end in places[:-1]]
    found = words(decoded)
    numbers = word_of_each(places, found)
    assert {number for number in numbers if number >= 0} == set(range(len(found)))  # every word has a token
    assert [number for number in numbers if number >= 0] == sorted(number for number in numbers if number >= 0)


def test_bytes_of_a_character_stand_where_it_begins() -> None:
    text = "a 🦜b"
    ids = TOKENIZER.encode(text)
    assert any(TOKENIZER.token(i).startswith("<0x") for i in ids)
    numbers = word_of_each(token_places(ids, TOKENIZER), words(text))
    assert numbers == sorted(numbers)
    assert numbers.count(1) >= 4


@pytest.mark.parametrize(("text", "is_one"), [("a", True), ("€1", True), ("—", False), ("", False), ("🙂", False)])
def test_what_has_a_letter_or_digit(text: str, is_one: bool) -> None:
    assert worded(text) is is_one
