"""A sentence that is too long for a model, in parts that are not."""

from hypothesis import given
from hypothesis import strategies as st

from vidrio.text.parts import in_halves, in_parts
from vidrio.text.tokenizer import Tokenizer

LETTERS = "abcdefghij áéñ,;:—()¿中😀\u0301\n\t"
TOKENIZER = Tokenizer.learn(["abc defg hij, the fade; a bad cafe: a big cab"] * 3, "bpe", 330)


@given(text=st.text(LETTERS, max_size=300), longest=st.integers(6, 40))
def test_parts_fit_and_lose_nothing_but_white_space(text, longest):
    spans = list(in_parts(text, 0, len(text), TOKENIZER, longest))
    assert "".join(text[a:b] for a, b in spans).replace(" ", "").replace("\n", "").replace("\t", "") == "".join(
        character for character in text if character not in " \n\t"
    )
    at = 0
    for a, b in spans:
        assert not text[at:a].strip()
        assert text[a:b] == text[a:b].strip() != ""
        assert len(TOKENIZER.encode(text[a:b])) <= longest
        at = b
    assert not text[at:].strip()


def parts_of(text, longest):
    return [text[a:b] for a, b in in_parts(text, 0, len(text), TOKENIZER, longest)]


def test_a_part_ends_after_a_comma_rather_than_at_a_space_and_there_rather_than_in_a_word():
    assert parts_of("abc abc abc, abc abc abc abc", 6) == ["abc abc abc,", "abc abc abc abc"]
    assert parts_of("abc abc abc abc abc abc abc", 6) == ["abc abc abc abc abc abc", "abc"]
    assert "".join(parts_of("j" * 50, 6)) == "j" * 50
    assert parts_of("abc", 6) == ["abc"]
    assert parts_of("   ", 6) == []


def test_a_very_long_line_without_a_space_is_cut_in_time_that_grows_with_its_length():
    text = "j" * 200_000
    assert "".join(parts_of(text, 128)) == text


def test_halves_meet_at_the_white_space_nearest_to_the_middle():
    assert in_halves("one two three four") == [(0, 7), (8, 18)]
    assert in_halves("Donaudampfschifffahrt") == []
    assert in_halves(" one") == []
    assert in_halves("") == []
    assert in_halves("a   b") == [(0, 1), (4, 5)]
