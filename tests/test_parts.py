"""What of a text is given to a model: its sentences, or parts of them; never what is to be copied."""

import gc
import re
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import takes_at_most
from vidrio.text.reading import parts, protect
from vidrio.text.reading.parts import (
    in_halves,
    in_parts,
    translatable,
    without_brackets,
    without_early_end,
    without_lost,
    without_quotes,
)
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.attempts import fitted

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
    def cut(length):
        assert "".join(parts_of("j" * length, 128)) == "j" * length

    # Five times the text: 5 times the time if it grows with the length, 25 times if with its square.
    assert takes_at_most(12, cut, 10_000, 50_000)


def test_halves_meet_at_the_white_space_nearest_to_the_middle():
    assert in_halves("one two three four") == [(0, 7), (8, 18)]
    assert in_halves("Donaudampfschifffahrt") is None
    assert in_halves("") is None
    assert in_halves("a   b") == [(0, 1), (4, 5)]
    assert in_halves("- - - - one") == [(8, 11)]


def translated(text, longest=128):
    return [text[a:b] for a, b in translatable(protect.protected(text), TOKENIZER, longest)]


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
        "a.b@example.com",
        "* * *",
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


def test_the_dashes_of_those_who_speak_are_copied():
    assert translated("—Vienes? —preguntó Juan.") == ["Vienes?", "preguntó Juan."]
    assert translated("—No lo sé —dijo él—, pero mañana.\n—Sí.") == ["No lo sé", "dijo él", "pero mañana.", "Sí."]
    assert translated("—Ven —dijo—. Ya es tarde.") == ["Ven", "dijo", "Ya es tarde."]
    knows_dashes = Tokenizer.learn(["a — b —c— d"] * 3, "bpe", 300)
    for text in ("El hombre —alto— entró.", "It was late—very late.", "a — b", "— a"):
        assert parts.apart(text, knows_dashes) == []
    assert [sign.start for sign in parts.apart("—a-b—c, d—: e —f", knows_dashes)] == [0, 9, 14]


def test_words_in_a_script_that_the_vocabulary_does_not_hold_are_copied():
    assert translated("Привет, как дела?") == []
    assert translated("你好，世界。 नमस्ते दुनिया") == []
    assert translated("The word привет is here.") == ["The word", "is here."]
    assert translated("Hello. Привет! Bye.") == ["Hello.", "Bye."]
    assert translated("See https://ru.example.org/привет, please.") == ["See https://ru.example.org/привет, please."]
    assert translated('<b title="привет">ø Ødegård</b>') == [
        '<b title="привет">ø Ødegård</b>'
    ]  # Latin is read as bytes
    russian = Tokenizer.learn(["привет как дела"] * 3, "bpe", 330)
    assert list(translatable(protect.protected("Привет"), russian, 128)) == [(0, 6)]
    words = Tokenizer.of_words(["hola"])  # such a vocabulary has no letters: what it does not hold is unknown, and told
    assert list(translatable(protect.protected("привет"), words, 128)) == [(0, 6)]


def test_a_long_address_is_taken_out_of_a_sentence_that_has_to_be_cut():
    address = "https://example.org/" + "a" * 300
    assert translated(f"Look at {address}, my friend, or not.", 40) == ["Look at", "my friend, or not."]


def test_words_around_what_was_lost_are_translated_by_themselves():
    def again(sentence, translation):
        spans = without_lost(protect.protected(sentence), translation)
        return None if spans is None else [sentence[a:b] for a, b in spans]

    assert again("Hello {name}, good morning.", "Hola {name}, buenos días.") is None
    assert again("Hello {name}, good morning.", "Hola nombre, buenos días.") == ["Hello", "good morning."]
    assert again("It costs €18.10.", "Cuesta 18,10 €.") is None
    assert again('"It costs 18," he said, "or 19."', "Dijo.") == ['"It costs', 'he said, "or']  # not '" he said'
    assert again("5 dogs and 6 cats", "5 perros y gatos") == ["5 dogs and", "cats"]
    assert again("5 dogs and 6 cats", "5 perros 5 y 6 gatos") == ["dogs and", "cats"]
    assert again("¡{a}!", "x") == []
    assert again('Delete "{a}"?', "x") == ["Delete"]
    for thing in ("`code`", "</b>", "--option", "__NAME__", "&lt;", "[b]"):  # whole, though marks stand at its ends
        assert again(f"Go {thing}{{a}} {thing} away", f"{thing} {thing}") == [f"Go {thing}", f"{thing} away"]
    assert again("Monday, 8:30-14:00", "lunes, 8:30") == ["Monday, 8:30"]
    assert again('Write "{a}" or “{b}” (or {c}) now.', "x") == ["Write", "or", "(or", "now."]
    assert again('He wrote {a}: "No."', "x") == ["He wrote", '"No."']


words_st = st.lists(st.sampled_from(["Hello ", "{x} ", "5, ", "a.b@c.de "])).map("".join)


@given(text=st.text("ab.,!?¿ \n<>{}1/:€@", max_size=60) | words_st)
def test_what_is_left_out_of_the_sentences_has_no_words_but_protected_ones(text):
    spans = list(translatable(protect.protected(text), TOKENIZER, 128))
    left, at = [], 0
    for a, b in [*spans, (len(text), len(text))]:
        left.append((at, a))
        at = b
    protected = [n for span in protect.spans(text) for n in range(span.start, span.end)]
    assert not [n for a, b in left for n in range(a, b) if text[n].isalpha() and n not in protected]


@pytest.mark.parametrize(
    ("sentence", "translation", "apart"),
    [
        ("My (tall) dog.", "Mi (alto) perro.", None),
        ("My (tall) dog.", "Mi perro alto.", ["My", "tall", "dog."]),
        ("My dog (the tall one), it is here.", "Mi perro (está.", ["My dog", "the tall one", "it is here."]),
        ("A [b (c)] d", "x", ["A", "b", "c", "d"]),
        ("See [1] and [2].", "Ve 1 y 2.", ["See", "and"]),  # the full stop after a bracket is copied with it
        ("Good :) and (so on", "Bien", None),  # no pairs
        ("See http://a.org/x_(y) now", "Ve", None),  # they belong to the address
        ("No brackets", "Sin", None),
    ],
)
def test_what_stands_around_brackets_that_are_lost(sentence, translation, apart):
    spans = without_brackets(protect.protected(sentence), translation)
    assert (spans and [sentence[a:b] for a, b in spans]) == apart


@pytest.mark.parametrize(
    ("sentence", "translation", "apart"),
    [
        ("Es «el mejor día», pero", "It is “the best day”, but", None),  # other marks are as good
        ("Es «el mejor día», pero", "It is the best day, but", ["Es", "el mejor día", "pero"]),
        ('"Who?" "They."', '"¿Quién? ¡Ellos!"', ["Who?", "They."]),
        ("“Come in,” he said.", "Dijo que entraras.", ["Come in,", "he said."]),
        ('A 5" disk and a 3" disk', "Un disco", None),  # inches
        ('See "a', "Ve a", None),  # no pair
        ('See <a href="x"> now', "Ve", None),  # they belong to the tag
    ],
)
def test_what_stands_around_quotes_that_are_lost(sentence, translation, apart):
    spans = without_quotes(protect.protected(sentence), translation)
    assert (spans and [sentence[a:b] for a, b in spans]) == apart


@pytest.mark.parametrize(
    ("sentence", "translation", "apart"),
    [
        ("Left at 8 p.m. on Monday.", "Se fue a las 8 p.m.", ["Left at 8 p.m.", "on Monday."]),
        ("From 8 a.m. to 9 p. m. on Monday", "De 8 a. m. a 9 p. m", ["From 8 a.m. to 9 p. m.", "on Monday"]),
        ("Ayer EE.UU. ganó", "Yesterday, the U.S.", ["Ayer EE.UU.", "ganó"]),
        ('"The U.S. won."', '"Los EE. UU."', ['"The U.S.', 'won."']),
        ("Left at 8 p.m. on Monday.", "Se fue el lunes.", None),
        ("From 8 a.m. to 9 p.m.", "De 8 a.m. a 9 p.m.", None),  # so does the sentence
        ("Left on Monday night.", "Se fue a las 8 p.m.", None),
        ("No. 8 is mine.", "Es el 8 p.m.", None),
    ],
)
def test_what_stands_around_an_abbreviation_at_which_a_translation_ends(sentence, translation, apart):
    spans = without_early_end(protect.protected(sentence), translation)
    assert (spans and [sentence[a:b] for a, b in spans]) == apart


@pytest.mark.parametrize(
    ("part", "translation", "fits"),
    [
        ("to go on", "Para seguir.", "para seguir"),
        ("to go on.", "Para seguir.", "para seguir."),
        ("Click", "Haga clic.", "Haga clic"),
        ("of Tom", "Tom es.", "Tom es"),  # a name that stands in the source
        ("of it", "ONU.", "ONU"),
        ("and so", "Y así...", "y así..."),
        ("it", "", ""),
    ],
)
def test_a_part_has_nothing_that_only_a_whole_sentence_has(part, translation, fits):
    assert fitted(part, translation) == fits


@given(text=st.from_regex(parts.PLAIN, fullmatch=True) | st.text("aZ ,'.?! \n", max_size=20))
def test_a_plain_sentence_is_seen_at_once_and_is_what_the_rules_say(text):
    told = list(translatable(protect.protected(text), TOKENIZER, 40))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PLAIN", re.compile(r"(?!)"))  # matches nothing
        assert list(translatable(protect.protected(text), TOKENIZER, 40)) == told


def test_a_tokenizer_that_nobody_uses_any_more_is_let_go() -> None:
    """A server keeps as many models as fit into its memory."""
    tokenizer = Tokenizer.learn(["abc defg"] * 3, "bpe", 280)
    list(translatable(protect.protected("abc € ☃ defg"), tokenizer, 100))
    left = weakref.ref(tokenizer)
    del tokenizer
    gc.collect()
    assert left() is None
