"""Test that any Unicode character in a text leaves the translation of the words around it unchanged.

`python tests/test_unicode.py en-es` tests all characters in about 4 minutes on an idle core and prints the exceptions.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator

import pytest

from vidrio.translate.translator import Translator

WORDS = {"en-es": ("Hello", "world"), "es-en": ("Hola", "mundo")}
LEARNED = {"\u2018"}  # learned as bytes: it is common, and read unchanged
READ_AS = {"\u2010": "-", "\u2011": "-", **dict.fromkeys("\u00b4\u201b\u201a\u2039\u203a\u2032", "'")}
READ_AS |= dict.fromkeys("\u201e\u201f\u2033", '"')
STEP = 397  # a prime; every 397th code point is tested, and all of the first blocks
FIRST_BLOCKS = 0x0500
GENERAL = range(0x2000, 0x2200)


def code_points() -> Iterator[int]:
    """Return all non-ASCII code points except surrogates."""
    return (code for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000)


def worded(text: str) -> str:
    """Return the words of a text in lowercase, without the characters between them."""
    return " ".join(re.findall(r"\w+", text)).lower()


def without(text: str, sign: str) -> str:
    """Return a text without the first occurrence of a character or of one of its normalised forms."""
    for form in (sign, unicodedata.normalize("NFC", sign), unicodedata.normalize("NFKC", sign), sign.lower()):
        if form.strip() and form in text:
            return text.replace(form, "", 1)
    return text


def knows(sign: str, translator: Translator) -> bool:
    """Return whether the vocabulary holds a character. A capital may be a lowercase letter after a case token."""
    sign = sign.lower() if len(sign.lower()) == 1 else sign
    return translator.source.id(sign) is not None or translator.source.id(f"▁{sign}") is not None


def is_known(text: str, translator: Translator) -> bool:
    return all(knows(sign, translator) for sign in unicodedata.normalize("NFC", text))


def other_words(direction: str, codes: Iterable[int]) -> list[str]:
    """Return the characters that the vocabulary lacks and that changed the words around them."""
    translator = Translator.load(direction)
    first, second = WORDS[direction]
    known = {
        code: all(knows(sign, translator) for sign in unicodedata.normalize("NFC", first + chr(code))) for code in codes
    }
    signs = [chr(code) for code, is_known in known.items() if not is_known and chr(code) not in LEARNED]
    apart = [translator.translate(word).text for word in (first, second)]
    right = {worded(translator.translate(f"{first} {second}").text), worded(" ".join(apart))}
    wrong = []
    for sign, found in zip(signs, translator.stream(f"{first}{sign} {second}" for sign in signs), strict=True):
        if worded(without(found.text, sign)) in right:
            continue
        if sign.isalnum() or unicodedata.category(sign)[0] == "M":  # part of the word, and copied with it
            copied = first + (sign if first + sign in found.text else sign.lower())
            if copied in found.text and worded(found.text.replace(copied, "", 1)) == worded(apart[1]):
                continue
        # A character that is read in another form affects the words as that form does: "Hello" with another letter is
        # another word.
        plain = {READ_AS.get(sign, sign), unicodedata.normalize("NFKC", sign), sign.lower()} - {sign}
        if worded(found.text) in {worded(translator.translate(f"{first}{form} {second}").text) for form in plain}:
            continue
        wrong.append(f"U+{ord(sign):04X} {unicodedata.name(sign, '')}: {found.text!r}")
    return wrong


@pytest.mark.parametrize("direction", list(WORDS))
def test_a_character_takes_no_words_along(direction: str) -> None:
    some = {*range(0x80, FIRST_BLOCKS), *GENERAL, *range(0xE0000, 0xE0080), *list(code_points())[::STEP]}
    assert other_words(direction, sorted(some)) == []


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("The book costs 20 ± 3 euros.", "El libro cuesta 20 ± 3 euros."),
        ("The re\u200bd hou\ufe0fse", "La casa roja"),
        ("The r\U000e0065ed house\u2063", "La casa roja"),
        ("\U0001d413\U0001d421\U0001d41e red house", "La casa roja"),
    ],
)
def test_signs_within_a_sentence(text: str, translation: str) -> None:
    assert Translator.load("en-es").translate(text).text == translation


if __name__ == "__main__":
    for line in other_words(sys.argv[1], code_points()):
        print(line)
