"""The words of a language that carry facts: numbers, months and days, rulers, units, obligations, negations.

`lexicons/` has a file per language code. To add a language, add a file with the same fields. Words that stand for the
same are one text; the first form is the one that is written. If either language of a pair has no file, only signs and
digits are compared.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from vidrio.model.json_text import json_data

FOLDER = Path(__file__).with_name("lexicons")
_ACCENTS = str.maketrans("áéíóúü’", "aeiouu'")


class Lexicon:
    """The words of one language, folded. What its file lacks is empty."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        def words(name: str) -> frozenset[str]:
            return frozenset(data.get(name, "").split())

        def keys(name: str) -> dict[str, str]:
            return {folded(word): key for key, group in data.get(name, {}).items() for word in group.split()}

        def numbers(name: str) -> dict[str, int]:
            return {word: int(key) for word, key in keys(name).items()}

        self.ordinals = numbers("ordinals")
        self.values = numbers("cardinals") | self.ordinals  # they are added up
        self.hundreds = words("hundreds")  # multiply the number before them by 100
        self.powers = numbers("powers")  # multiply the number before them: thousand, million
        self.short = numbers("short")  # the same, directly after digits: 3bn
        # Words that another language may express by numbers: dozen, both, twenties; and numbers that may be decades.
        self.about: dict[str, list[str]] = {}
        for key, group in data.get("about", {}).items():
            for word in group.split():
                self.about.setdefault(word, []).append(key)
        self.unsure = words("unsure")  # numbers, months and days that are often something else: second, one, may
        # Between the parts of a number, "and" first; or after one of them: miles_de.
        self.joints: list[str] = data.get("joints", "").split()
        self.articles = words("articles")  # before a power or after a half: a million, half a million
        self.halves = words("halves")
        self.numeric = {*self.values, *self.hundreds, *self.powers, *self.halves}  # a number may begin with them
        self.decades = words("decades")  # before a number that stands for ten years: años veinte, década de 1980
        self.centuries = words("centuries")
        self.century_follows = bool(data.get("century_follows"))  # the word for a century follows its number
        self.calendar = keys("calendar")  # months and days
        self.names = words("names")  # months and days that may be something else if they have a capital letter
        self.capitals = bool(data.get("capitals"))  # months and days have capital letters
        self.rulers = keys("rulers")  # names that are translated before a Roman numeral, in all their forms
        self.measures = keys("measures")  # words that a sign may replace
        self.negative = words("negative")
        self.almost_negative = tuple(words("almost_negative"))  # beginnings of words that may be a negation elsewhere
        self.no_negation: str = data.get("no_negation", "(?!)")  # a pattern of negative words in "isn't it?"
        # Patterns of "must not" (forbidden) and "need not" (needless), and templates that replace one by the other.
        self.obligations: Mapping[str, str] = data.get("obligations", {})
        self.instead: Mapping[str, str] = data.get("instead", {})
        self.between: str = data.get("between", ",")  # a pattern of what separates the items of a list
        self.point: str = data.get("point", ".")  # before a fraction
        self.ordinal: str = data.get("ordinal", "{}")  # a template
        self.century: str = data.get("century", "{}")
        # The forms of a month, a day, a ruler or a power, with accents; the first one is written.
        tables = (data.get(name, {}) for name in ("powers", "calendar", "rulers"))
        self.written: Mapping[str, list[str]] = {key: forms.split() for table in tables for key, forms in table.items()}
        # Abbreviations without their last full stop: before words, before a number, or at the end of a sentence; and
        # words that begin a sentence far more often than they are a name after an abbreviation.
        self.sentences = {kind: words(kind) for kind in ("before_words", "before_numbers", "may_end", "starters")}


def folded(word: str) -> str:
    """Small letters without the accents of vowels."""
    return word.lower().translate(_ACCENTS)


# Languages without a file that write 1,234.5; all others write 1.234,5.
_WITH_POINT = "cy ga gu he hi ja km kn ko lo ml mr ms mt my ne pa si sw ta te th tl ur zh"
_OTHERS = {point: Lexicon({"point": point}) for point in ".,"}
NONE = _OTHERS["."]


@lru_cache
def lexicon(code: str) -> Lexicon:
    """The words of a language."""
    known = {path.stem: path for path in FOLDER.glob("*.json")}
    other = _OTHERS["." if code in _WITH_POINT.split() else ","]
    return Lexicon(json_data(known[code].read_text("utf-8"))) if code in known else other


def lexicons(source: str, target: str) -> tuple[Lexicon, Lexicon]:
    """Those of two languages; without words, unless both have some."""
    codes = [code.lower().replace("_", "-").partition("-")[0] for code in (source, target)]
    first, second = map(lexicon, codes) if all(codes) else (NONE, NONE)
    both = bool(first.values and second.values)
    return (first, second) if both else (_OTHERS[first.point], _OTHERS[second.point])
