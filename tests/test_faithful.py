"""Test that a translation never contains a replacement character or currency sign that its source lacks."""

import os
import random

import pytest

from vidrio.text.protect import MONEY
from vidrio.translate.translator import Translator

QUICK, MANY, AT_ONCE = 100, 2_000, 500  # sentences in each direction
WORDS = {
    "en": """
    the house of a dark river said that she had never seen 12 men in her 3rd year but I don't know why it costs so much
    money when King Henry VIII and Queen Łucja met Jürgen Østergård yesterday at 9:30 near 21st Street for a million
    """,
    "es": """
    la casa de un río oscuro dijo que nunca había visto 12 hombres en su 3.er año pero no sé por qué cuesta tanto dinero
    cuando el rey Enrique VIII y la reina Łucja vieron a Jürgen Østergård ayer a las 9:30 en la calle 21 por un millón
    """,
}
SIGNS = [*"§><≥±×¥£₿¢∞†¶µΩ√©¬^|~÷→‰№♯«»…—‘’“”()[]{}\\/&#*@=+½²₂Ⅻ🙂⟦`"]
OTHERS = """
    мир 世界 שלום عالم γειά नमस्ते 한국 สวัสดี Việt Ṣẹ́gun ǅ ﬁ ａｂ 𝔉𝔯𝔞𝔨 e\u0301 a\u200bb a\u00adb ʻokina
    """


def sentence(chance: random.Random, language: str) -> str:
    """Return random words of the language, mixed with signs and words in other scripts."""
    words = chance.choices(WORDS[language].split(), k=chance.randint(1, 14))
    for kind in chance.choices((SIGNS, SIGNS, OTHERS.split(), ["€"], ["17,5", "1.000", "0"]), k=chance.randint(0, 5)):
        sign, at = chance.choice(kind), chance.randrange(len(words))
        words[at] = chance.choice((f"{sign} {words[at]}", f"{sign}{words[at]}", f"{words[at]}{sign}"))
    return " ".join(words) + chance.choice((".", "", "?", "!"))


def invented(source: str, translation: str) -> list[str]:
    """Return the currency signs and replacement characters that the source lacks."""
    return [sign for sign in f"{MONEY}\ufffd" if sign in translation and sign not in source]


def try_sentences(name: str, begin: int, count: int) -> None:
    translator = Translator.load(name)
    for start in range(begin, begin + count, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, begin + count))
        sources = [sentence(random.Random(f"{name} {number}"), name[:2]) for number in numbers]
        for source, found in zip(sources, translator.translate(sources), strict=True):
            assert not invented(source, found.text), (source, found.text)


@pytest.mark.parametrize("name", ["en-es", "es-en"])
def test_no_translation_has_a_sign_that_its_source_lacks(name: str) -> None:
    try_sentences(name, 0, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["en-es", "es-en"])
def test_no_translation_of_many_has_a_sign_that_its_source_lacks(name: str) -> None:
    """Set VIDRIO_HOSTILE=100000 to try more sentences, and VIDRIO_HOSTILE_FROM=1040000 to try others."""
    begin, count = (int(os.environ.get(f"VIDRIO_HOSTILE{end}", least)) for end, least in (("_FROM", 10**6), ("", MANY)))
    try_sentences(name, begin, count)
    print(count)
