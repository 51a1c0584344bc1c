"""Measure how many spelled-out numbers are translated correctly: 0 to 9,999 in three templates, checked with num2words.

    python benchmarks/numbers_in_words.py --model en-es [--every 37]

A translation is correct if it states the number in words or digits, ignoring hyphens, commas, "and" and case. The
recipe of the packaged models uses different templates (recipes/en-es/counting.tsv).
"""

import argparse
import re
import sys
from itertools import pairwise

from num2words import num2words

from vidrio.translate.translator import Translator

MOST = 9_999
BANDS = (0, 20, 100, 1_000, 10_000)
FRAMES = {  # English and Spanish templates
    "alone": ("{n}", "{n}"),
    "horses": ("There are {n} horses.", "Hay {n} caballos."),
    "ticket": ("The ticket costs {n} euros.", "El billete cuesta {n} euros."),
}
SINGULAR = {
    "horses": ("There is one horse.", "Hay un caballo."),
    "ticket": ("The ticket costs one euro.", "El billete cuesta un euro."),
}
BEFORE = {  # words that may precede the number
    "en": r"there (?:are|is|were|s)|costs?|is|worth",
    "es": r"hay|existen|son|cuesta|vale|es|de",
}
NOUN = re.compile(r"\b(?:horses?|euros?|caballos?|yeguas?)\b")


def said(number: int, language: str, *, before_noun: bool) -> str:
    words = num2words(number, lang=language).replace(",", "")
    if language == "es" and before_noun:
        words = re.sub(r"uno$", "un", re.sub(r"veintiuno$", "veintiún", words))
    return words


def sentence(number: int, frame: str, language: str) -> str:
    at = 0 if language == "en" else 1
    if number == 1 and frame in SINGULAR:
        return SINGULAR[frame][at]
    return FRAMES[frame][at].format(n=said(number, language, before_noun=frame != "alone"))


def plain(text: str) -> str:
    """Normalise text: lower case, no hyphens or punctuation, "one hundred" for "a hundred", and no "and" in numbers."""
    text = re.sub(r"[^\w\s]|_", " ", text.lower())
    text = re.sub(r"\ban? (?=hundred|thousand)", "one ", text)
    return re.sub(r"\b(hundred|thousand) and ", r"\1 ", " ".join(text.split()))


def right(number: int, frame: str, language: str, translation: str) -> bool:
    """Return whether the translation contains exactly this number, before the noun if the template has one."""
    found = plain(translation)
    digits = re.sub(r"(?<=\d)[.,\u00a0\u202f](?=\d{3})", "", translation)
    if str(number) in re.findall(r"\d+", digits):
        return True
    wanted = {plain(said(number, language, before_noun=noun)) for noun in (False, True)}
    if frame == "alone":
        return found in wanted
    if number == 0 and frame == "horses":
        wanted |= {"no", "no hay", "there are no"}
    noun_at = NOUN.search(found)
    before = found[: noun_at.start()].strip() if noun_at else ""
    return any(before == one or re.search(rf"\b(?:{BEFORE[language]}) {one}$", before) for one in wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description="Numbers written as words, 0 to 9,999, in three frames.")
    parser.add_argument("--model", default="en-es", help="a model folder or name")
    parser.add_argument("--every", type=int, default=1, help="test every Nth number above the first hundred")
    given = parser.parse_args()
    translator = Translator.load(given.model)
    source, target = translator.about.source_language, translator.about.target_language
    if {source, target} != {"en", "es"}:
        parser.error(f"{given.model} translates from {source} to {target}, not between English and Spanish")
    numbers = [*range(min(100, MOST + 1)), *range(100, MOST + 1, given.every)]
    asked = [(number, frame) for frame in FRAMES for number in numbers]
    texts = [sentence(number, frame, source) for number, frame in asked]
    translations = [one.text for one in translator.translate(texts)]
    results = [right(number, frame, target, text) for (number, frame), text in zip(asked, translations, strict=True)]
    for least, below in pairwise(BANDS):
        band = [good for (number, _), good in zip(asked, results, strict=True) if least <= number < below]
        print(f"{least:,} to {below - 1:,}: {sum(band)} of {len(band)}")
    print(f"{translator.about.name}: {sum(results) / len(results):.1%} of {len(results):,} are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
