"""The words of a language that express facts: numbers, months and days, rulers, units, obligations and negations.

`lexicons/` contains one file per language, named after its code. To add a language, add a file with the same fields.
Words with the same meaning share one string, and facts are written with its first word. If either language of a pair
has no file, only signs and digits are compared.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from vidrio.model.json_text import json_data

FOLDER = Path(__file__).with_name("lexicons")
_ACCENTS = str.maketrans("áéíóúü’", "aeiouu'")


class Lexicon:
    """The folded words of one language. Fields that are missing from the language's file are empty."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        def words(name: str) -> frozenset[str]:
            return frozenset(data.get(name, "").split())

        def keys(name: str) -> dict[str, str]:
            return {folded(word): key for key, group in data.get(name, {}).items() for word in group.split()}

        def numbers(name: str) -> dict[str, int]:
            return {word: int(key) for word, key in keys(name).items()}

        self.ordinals = numbers("ordinals")
        self.values = numbers("cardinals") | self.ordinals  # words whose values are added
        self.hundreds = words("hundreds")  # words that multiply the number before them by 100
        self.powers = numbers("powers")  # words that multiply the number before them: thousand, million
        self.short = numbers("short")  # abbreviations of powers directly after digits: 3bn
        # Words that another language may express as numbers (dozen, both, twenties), and numbers that may be decades.
        self.about: dict[str, list[str]] = {}
        for key, group in data.get("about", {}).items():
            for word in group.split():
                self.about.setdefault(word, []).append(key)
        self.unsure = words("unsure")  # numbers, months and days that often mean something else: second, one, may
        # Words that join the parts of a number. The first is "and"; miles_de stands for "de" after "miles".
        self.joints: list[str] = data.get("joints", "").split()
        self.articles = words("articles")  # words before a power or after a half: a million, half a million
        self.halves = words("halves")
        self.numeric = {*self.values, *self.hundreds, *self.powers, *self.halves}  # words that may begin a number
        self.decades = words("decades")  # words before a number that denotes a decade: años veinte, década de 1980
        self.centuries = words("centuries")
        self.century_follows = bool(data.get("century_follows"))  # whether the word for a century follows its number
        self.calendar = keys("calendar")  # months and days
        self.names = words("names")  # months and days that may mean something else if they are capitalised
        self.capitals = bool(data.get("capitals"))  # whether months and days are capitalised
        self.rulers = keys("rulers")  # names that are translated before a Roman numeral, in all their forms
        self.measures = keys("measures")  # words for units and currencies that may be written as signs
        self.negative = words("negative")
        self.almost_negative = tuple(words("almost_negative"))  # prefixes of words that may correspond to a negation
        self.no_negation: str = data.get("no_negation", "(?!)")  # a pattern for negations in question tags: isn't it?
        # Patterns for "must not" (forbidden) and "need not" (needless), and templates for replacing one with the other.
        self.obligations: Mapping[str, str] = data.get("obligations", {})
        self.instead: Mapping[str, str] = data.get("instead", {})
        self.between: str = data.get("between", ",")  # a pattern for the separators of a list
        self.point: str = data.get("point", ".")  # the decimal separator
        self.ordinal: str = data.get("ordinal", "{}")  # a template
        self.century: str = data.get("century", "{}")
        # The forms of each month, day, ruler and power, with accents. Facts are written in the first form.
        tables = (data.get(name, {}) for name in ("powers", "calendar", "rulers"))
        self.written: Mapping[str, list[str]] = {key: forms.split() for table in tables for key, forms in table.items()}
        # Abbreviations (without the last full stop) that occur before words, before numbers or at the end of a
        # sentence, and words that usually begin a sentence and are rarely a name after an abbreviation.
        self.sentences = {kind: words(kind) for kind in ("before_words", "before_numbers", "may_end", "starters")}


def folded(word: str) -> str:
    """Return the word in lower case, without accents on vowels."""
    return word.lower().translate(_ACCENTS)


# Languages without a file that write 1,234.5. All others write 1.234,5.
_WITH_POINT = "cy ga gu he hi ja km kn ko lo ml mr ms mt my ne pa si sw ta te th tl ur zh"
_OTHERS = {point: Lexicon({"point": point}) for point in ".,"}
NONE = _OTHERS["."]


@lru_cache
def lexicon(code: str) -> Lexicon:
    """Return the words of a language."""
    known = {path.stem: path for path in FOLDER.glob("*.json")}
    other = _OTHERS["." if code in _WITH_POINT.split() else ","]
    return Lexicon(json_data(known[code].read_text("utf-8"))) if code in known else other


def lexicons(source: str, target: str) -> tuple[Lexicon, Lexicon]:
    """Return the lexicons of two languages. If either of them has no words, both contain only the decimal separator."""
    codes = [code.lower().replace("_", "-").partition("-")[0] for code in (source, target)]
    first, second = map(lexicon, codes) if all(codes) else (NONE, NONE)
    both = bool(first.values and second.values)
    return (first, second) if both else (_OTHERS[first.point], _OTHERS[second.point])
