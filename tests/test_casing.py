"""text/casing.py: capitals, titles and small letters are read as sentences, and only they."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiding import mask
from vidrio.text.casing import Form, is_shouted, lowered, read, written
from vidrio.text.protect import protected


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
    assert is_shouted(protected(text))
    assert lowered(protected(text)) == read
    assert written(read, text, Form.CAPITALS) == text


@pytest.mark.parametrize(
    "text", ["NASA is here", "USA", "PDF", "Hello", "", "123", "¿?", "https://a.org/x", "VERY good"]
)
def test_other_texts_are_not(text):
    assert not is_shouted(protected(text))
    assert mask(protected(text), "").given == text


def test_the_translation_is_raised_but_for_what_is_copied():
    sentence = "CLICK {next} OR ASK a@b.org!"
    masked = mask(protected(sentence), "①②③")
    assert masked.given == "Click ① or ask ②!"
    assert masked.restore("Haz clic en ① o pregunta a ②.") == "HAZ CLIC EN {next} O PREGUNTA A a@b.org."
    assert masked.restore("Haz clic.") is None


@given(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=40))
def test_places_stay_what_they_are(text):
    assert len(lowered(protected(text))) == len(written(text, text, Form.CAPITALS)) == len(text)
    source = protected(text)
    masked = mask(source, "")
    assert len(read(source, lambda word: 1)[0]) == len(text)
    assert masked.form is not Form.CAPITALS or is_shouted(protected(text))
    assert read(source, len, forms=False)[0] == (lowered(source) if is_shouted(source) else text)


# A vocabulary that knows these in small letters, and these with a capital one, as a token each; other words have more.
COMMON = {"old", "sea", "home", "garden", "books", "please", "very", "open", "recipe", "océano"}
NAMES = {"London", "Mary", "Barcelona"}


def tokens(word: str) -> int:
    return 1 if word in COMMON | NAMES or word.lower() in ("man", "the", "is", "wait") else 2 + (word.lower() in COMMON)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("The Old Man And The Sea", "The old man and the sea."),
        ("The Old Man and the Sea", "The old man and the sea."),
        ("The Old Sea Of London", "The old sea of London."),
        ("Books Of {Name} In The Garden!", "books of {Name} in the garden!"),  # no capital that it has not learned
        ("Home And Garden", "home and garden."),
        ("Old Sea Books", "old sea books."),
        ("Peter And Mary", "Peter and Mary."),  # two tokens each way: it may be a name
        ("McCoy's Home And NASA", "McCoy's home and NASA."),
        ("Our Home Is A Sea", "Our home is A sea."),
    ],
)
def test_titles_are_read_as_sentences(text, given):
    masked = mask(protected(text), "", tokens)
    assert (masked.given, masked.form) == (given, Form.TITLE)
    assert masked.restore("casa.") == ("Casa" if masked.closed else "Casa.")


@pytest.mark.parametrize(
    "text",
    [
        *("Emma Watson", "Old Barcelona", "Robert De Niro", "Ortega Y Gasset", "Mary and John", "London", "Vitamin A"),
        *("The old man and the sea", "The dog is in the Garden.", "It is in London.", "", "3 {Old} {Sea}"),
    ],
)
def test_names_and_sentences_are_no_titles(text):
    assert read(protected(text), tokens) == (text, Form.PLAIN)


@pytest.mark.parametrize(
    ("text", "given", "translation", "back"),
    [
        ("meet me in London", "Meet me in London.", "Nos vemos en Londres.", "nos vemos en Londres"),
        ("the red car.", "The red car.", "El coche rojo.", "el coche rojo."),
        ("i don't know", "I don't know.", "No lo sé.", "no lo sé"),
        ("i'm here, and i see", "I'm here, and I see.", "Tom está aquí...", "tom está aquí..."),
        ("where is the dog?", "Where is the dog?", "¿Dónde está?", "¿dónde está?"),
        ("garden and sea, they said", "garden and sea, they said.", "Mar", "mar"),  # a capital one is not known
        ("he said USA is big", "He said USA is big.", "USA es grande.", "USA es grande"),
        ("read https://a.org/b now", "Read https://a.org/b now.", "https://a.org/b ya.", "https://a.org/b ya"),
        ("he met Tom here", "He met Tom here.", "Tom lo vio.", "Tom lo vio"),
        ("veo el mar", "Veo el mar.", "I see it.", "I see it"),  # the only English word that is always a capital one
        ("veo su mar", "Veo su mar.", "I'm in it.", "I'm in it"),
    ],
)
def test_small_letters_are_read_as_a_sentence(text, given, translation, back):
    masked = mask(protected(text), "", tokens)
    assert (masked.given, masked.form) == (given, Form.SMALL)
    assert masked.restore(translation) == back


def test_names_that_begin_a_translation_lend_their_capital_letter_to_nobody():
    masked = mask(protected("Yesterday Øøøø met us."), "①", lambda word: 100 if "ø" in word.lower() else 1)
    assert masked.symbols == "①"
    assert masked.restore("① nos vio ayer.") == "Øøøø nos vio ayer."


@pytest.mark.parametrize(
    "text",
    [
        *("dog", "good morning", "to fall in love", "iPhone users love it", "i.e. the other one", "max_length is 3"),
        *("{name} is here now", "x.org is the place", "3 is a number", "e.g. in the garden"),
    ],
)
def test_words_and_identifiers_stay_as_they_are(text):
    assert mask(protected(text), "", tokens).given == text


def test_names_keep_their_capital_letter_among_capitals():
    masked = mask(protected("THE SEA IN LONDON"), "", tokens)
    assert masked.given == "The sea in London"
    assert masked.form is Form.CAPITALS


@pytest.mark.parametrize(
    ("text", "given", "form"),
    [
        ("Recipe", "recipe", Form.ENTRY),
        ("Sea recipe", "sea recipe", Form.ENTRY),
        ("Sea Recipe", "sea recipe", Form.ENTRY),
        ("SEA RECIPE", "sea recipe", Form.CAPITALS),
        ("Océano", "océano", Form.ENTRY),
        ("Sea:", "sea:", Form.ENTRY),
        ("Sea & Recipe", "sea & recipe", Form.ENTRY),
    ],
)
def test_a_word_or_two_with_a_capital_letter_are_read_as_an_entry_(text, given, form):
    masked = mask(protected(text), "", tokens)
    assert (masked.given, masked.form) == (given, form)
    assert masked.restore("receta") == ("RECETA" if form is Form.CAPITALS else "Receta")


@pytest.mark.parametrize(
    "text",
    [
        *("Recipe.", "Stop!", "Sea: recipe", "PDF", "PDF files", "McCoy", "Sea of books", "Room 5", "It", "Sea-books"),
        *("{Name}", ""),
    ],
)
def test_other_texts_are_no_entries(text):
    assert read(protected(text), tokens)[1] is not Form.ENTRY
