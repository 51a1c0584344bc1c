"""Test what users of Firefox's translation models complained about, with a random model of the same architecture.

The numbers refer to issues of mozilla/translations (m), mozilla/firefox-translations (f) and
browsermt/bergamot-translator (b).
"""

from pathlib import Path

import pytest

import vidrio
from vidrio.interop.convert import import_model
from vidrio.translate.translator import Translator

GOLDEN = Path(__file__).parent / "golden/marian"


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("marian") / "ours"
    import_model(str(GOLDEN), folder)
    return vidrio.load(folder)


WHOLE = {
    "emoji m171": ("The house 😀 is old.", ("😀",)),
    "emoji of several characters m1450": ("👍🏽 Great house 👩‍🚀", ("👍🏽", "👩‍🚀")),
    "icons m1450": ("the city ⇒ river ✓", ("⇒", "✓")),
    "IPA f442": ("The word is /ˈwɔːtər/.", ("/ˈwɔːtər/",)),
    "at f511": ("Write to @maria_92 or #travel.", ("@maria_92", "#travel")),
    "mail f511": ("The letter to user+tag@example.org is old.", ("user+tag@example.org",)),
    "braces b419": ("Hello {name}, the {{count}} new letters.", ("{name}", "{{count}}")),
    "printf f514": ("The %s house has %1$d windows.", ("%s", "%1$d")),
    "URL m1424": ("See https://example.com/a?b=1&c=%20d#top for more.", ("https://example.com/a?b=1&c=%20d#top",)),
    "tags b288 f52": ("The <b>old</b> city<br/>", ("<b>", "</b>", "<br/>")),
    "other script m171": ("日本語 is old.", ("日本語",)),
}


@pytest.mark.parametrize("complaint", WHOLE)
def test_what_the_vocabulary_lacks_comes_through_once(translator: Translator, complaint: str) -> None:
    text, whole = WHOLE[complaint]
    found = translator.translate(text).text
    assert {thing: found.count(thing) for thing in whole} == {thing: text.count(thing) for thing in whole}


@pytest.mark.parametrize(
    "text", ["😀", "42", "3.14", "https://example.com/", "user@example.org", "{name}", "→", "…", " "]
)
def test_a_line_without_words_stays_as_it_is(translator: Translator, text: str) -> None:
    assert translator.translate(text).text == text


def test_capitals_are_translated_as_words_and_stay_capitals(translator: Translator) -> None:
    """m73, m129, f675: the model reads lower case, as in training."""
    loud, quiet = (
        translator.translate("THE OLD HOUSE AND THE CITY."),
        translator.translate("The old house and the city."),
    )
    assert loud.sentences[0].given == quiet.sentences[0].given
    assert loud.text == quiet.text.upper()


@pytest.mark.parametrize("text", ["House", "city", "Old house", "\ttrain  "])
def test_a_short_line_is_one_sentence_with_its_spaces(translator: Translator, text: str) -> None:
    """m215, m1252."""
    found = translator.translate(text)
    assert len(found.sentences) == 1
    assert found.text.strip()
    assert found.text[: len(text) - len(text.lstrip())] + text.strip() + found.text[len(found.text.rstrip()) :] == text


def test_a_lost_number_is_told(translator: Translator) -> None:
    """m173, m600."""
    warnings = " ".join(map(str, translator.translate("In 1984 the house had 3.14 windows.").warnings))
    assert "1984" in warnings
    assert "3.14" in warnings


def test_soft_hyphens_do_not_split_words(translator: Translator) -> None:
    assert translator.translate("The moun\u00adtain").text == translator.translate("The mountain").text
