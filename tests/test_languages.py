"""Test language detection, including very short texts."""

import pytest

from vidrio.serve.languages import Detector


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(["en", "es"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        *((text, "es") for text in ("hola", "Hola", "¡Hola!", "HOLA", "pan", "agua", "perro", "hola mundo", "sí")),
        *((text, "en") for text in ("hello", "Hello.", "dog", "water", "bread", "yes", "good morning")),
    ],
)
def test_a_word_is_enough(detector: Detector, text: str, language: str) -> None:
    first, second = detector.ranked(text)
    assert first.language == language
    assert first.confidence > 55 > second.confidence


def test_a_greeting_of_another_language_is_ranked_by_its_letters(detector: Detector) -> None:
    assert {one.language for one in detector.ranked("bonjour")} == {"en", "es"}


def test_a_text_without_letters_is_in_none(detector: Detector) -> None:
    assert [one.confidence for one in detector.ranked("12.5 €")] == [0, 0]
