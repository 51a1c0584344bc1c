"""Test how a text is split into sentences or parts to translate, leaving out the text to copy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.text.mask import Masker
from vidrio.text.protect import spans
from vidrio.text.sentences import Splitter, around, in_parts, split
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.judging import repeats
from vidrio.translate.translation import fitted

LETTERS = "abcdefghij áéñ,;:—()¿中😀\u0301\n\t"
TOKENIZER = Tokenizer.learn(["abc defg hij, the fade; a bad cafe: a big cab"] * 3, 330)


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
    assert parts_of("abc abc abc abc abc abc abc", 6) == ["abc abc abc", "abc abc abc abc"]
    assert "".join(parts_of("j" * 50, 6)) == "j" * 50
    assert parts_of("abc", 6) == ["abc"]
    assert parts_of("   ", 6) == []


def parts_in(text, tokenizer=TOKENIZER, longest=128):
    return list(Splitter(tokenizer, Masker(tokenizer, "①②③"), longest).parts(text, split(text)))


def translated(text, longest=128):
    return [text[a:b] for a, b in parts_in(text, longest=longest)]


def test_what_has_no_words_of_its_own_is_not_translated():
    for text in (
        "",
        " \n",
        "-",
        "…",
        "5",
        "€18.10",
        "♪ ♪",
        "🙂",
        "%1$s",
        "https://example.org/a/b",
        "a.b@c.com",
        "* *",
    ):
        assert translated(text) == []
    assert translated("* Hello 7!") == ["Hello 7!"]
    assert translated("Hello.\n***\nhttps://example.org\nBye.") == ["Hello.", "Bye."]


def test_the_bullet_or_number_of_a_list_is_copied():
    for mark in ("- ", "* ", "• ", "1. ", "12) ", "a) ", "# ", "### ", "> ", "> > ", "- [ ] ", "- [x] ", "— ", "-> "):
        assert translated(f"{mark}Open the door.") == ["Open the door."]
    assert translated("-5 degrees - no, a) more") == ["-5 degrees - no, a) more"]
    assert translated("`- [ ] x` is code.") == ["`- [ ] x` is code."]
    assert translated("{{ a }} is here. [ x y ]") == ["{{ a }} is here.", "[ x y ]"]
    assert translated("1984 was a year.") == ["1984 was a year."]


def test_a_sentence_is_not_divided_inside_a_tag():
    text = 'See <a title="One. Two. Three." href="x">this</a> now. Then go.'
    assert translated(text) == ['See <a title="One. Two. Three." href="x">this</a> now.', "Then go."]


def test_signs_between_the_parts_of_a_menu_or_a_row_are_copied():
    assert translated("Settings > Privacy > Cookies") == ["Settings", "Privacy", "Cookies"]
    assert translated("Email: a@example.org | Phone: 555") == ["Email: a@example.org", "Phone: 555"]
    assert translated("| Name | Age |\n| Ana | 5 |") == ["Name", "Age", "Ana"]
    assert translated("Yes / No • Perhaps") == ["Yes", "No", "Perhaps"]
    whole = "if a > b and/or c/d, see `ls | grep x` or x /y"
    assert translated(whole) == [whole]


def test_words_in_a_script_that_the_vocabulary_does_not_hold_are_copied():
    assert translated("Привет, как дела?") == []
    assert translated("你好，世界。 नमस्ते दुनिया") == []
    assert translated("The word привет is here.") == ["The word", "is here."]
    assert translated("Hello. Привет! Bye.") == ["Hello.", "Bye."]
    assert translated("See https://ru.example.org/привет, please.") == ["See https://ru.example.org/привет, please."]
    assert translated('<b title="привет">ø Ødegård</b>') == [
        '<b title="привет">ø Ødegård</b>'
    ]  # unknown Latin letters are read as bytes
    russian = Tokenizer.learn(["привет как дела"] * 3, 330)
    assert parts_in("Привет", russian) == [(0, 6)]
    words = Tokenizer.of_words(["hola"])  # a vocabulary of words has no letters: other words are unknown and reported
    assert parts_in("привет", words) == [(0, 6)]


def test_a_long_address_is_taken_out_of_a_sentence_that_has_to_be_cut():
    address = "https://example.org/" + "a" * 300
    assert translated(f"Look at {address}, my friend, or not.", 40) == ["Look at", "my friend, or not."]


words_st = st.lists(st.sampled_from(["Hello ", "{x} ", "5, ", "a.b@c.de "])).map("".join)


@given(text=st.text("ab.,!?¿ \n<>{}1/:€@", max_size=60) | words_st)
def test_what_is_left_out_of_the_sentences_has_no_words_but_protected_ones(text):
    parts = parts_in(text)
    left, at = [], 0
    for a, b in [*parts, (len(text), len(text))]:
        left.append((at, a))
        at = b
    protected = [n for span in spans(text) for n in range(span.start, span.end)]
    assert not [n for a, b in left for n in range(a, b) if text[n].isalpha() and n not in protected]


@pytest.mark.parametrize(
    ("part", "translation", "fits"),
    [
        ("to go on", "Para seguir.", "para seguir"),
        ("to go on.", "Para seguir.", "para seguir."),
        ("Click", "Haga clic.", "Haga clic"),
        ("of Tom", "Tom es.", "Tom es"),  # a name from the source
        ("of it", "ONU.", "ONU"),
        ("and so", "Y así...", "y así..."),
        ("it", "", ""),
    ],
)
def test_a_part_has_nothing_that_only_a_whole_sentence_has(part, translation, fits):
    assert fitted(part, translation) == fits


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Hello {name}, good morning.", ["Hello", "good morning."]),
        ('"It costs 18," he said, "or 19."', ['"It costs', 'he said, "or']),  # not '" he said'
        ("5 dogs and 6 cats", ["dogs and", "cats"]),
        ("¡{a}!", []),
        ('Write "{a}" or “{b}” (or {c}) now.', ["Write", "or", "(or", "now."]),
        ('He wrote {a}: "No."', ["He wrote", '"No."']),
    ],
)
def test_words_around_what_is_copied(text, parts):
    assert [text[a:b] for a, b in around(text, 0, len(text), spans(text))] == parts


# --- repetition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("dog", "the dog the dog the dog the dog", True),
        ("ha ha ha ha ha", "ja ja ja ja ja", False),  # the source repeats itself, too
        ("no no", "no no no", False),
        ("that that", "que que", False),
        ("hello", "hola hola hola hola hola", True),
        ("hello", "", False),
    ],
)
def test_the_source_may_say_it_again_and_again(source: str, target: str, found: bool) -> None:
    words = {word: n for n, word in enumerate({*source.split(), *target.split()})}
    assert repeats([words[w] for w in source.split()], [words[w] for w in target.split()]) is found


@given(st.lists(st.integers(0, 2), max_size=30))
def test_it_is_found_by_the_plain_way(ids: list[int]) -> None:
    assert repeats([], ids) == any(
        ids[at : at + n] * 4 == ids[at : at + 4 * n] for n in range(1, 9) for at in range(len(ids) - 4 * n + 1)
    )
