"""The words of a language that carry facts: numbers, months and days, rulers, units, obligations, negations.

`lexicons/` has a file per language code. To add a language, add a file with the same fields. Words that stand for the
same are one text; the first form is the one that is written. If either language of a pair has no file, only signs and
digits are compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from vidrio.model.json_text import json_data

FOLDER = Path(__file__).with_name("lexicons")
_ACCENTS = str.maketrans("áéíóúü’", "aeiouu'")
_TEMPLATES = ("between", "no_negation", "point", "ordinal", "century", "century_follows", "capitals")


@dataclass(frozen=True, kw_only=True, eq=False)
class Lexicon:
    """The words of one language, folded."""

    values: Mapping[str, int]  # cardinal and ordinal numbers, which are added up
    ordinals: frozenset[str]
    hundreds: frozenset[str]  # multiply the number before them by 100
    powers: Mapping[str, int]  # multiply the number before them: thousand, million
    short: Mapping[str, int]  # the same, directly after digits: 3bn
    numeric: frozenset[str]  # all words that a number may begin with
    about: Mapping[str, str]  # words that another language may express by a number: dozen, both
    unsure: frozenset[str]  # numbers, months and days that are often something else: second, one, may
    joints: frozenset[str]  # between the parts of a number, or after one of them: miles_de
    articles: frozenset[str]  # before a power or after a half: a million, half a million
    halves: frozenset[str]
    decades: frozenset[str]  # before a year that stands for ten years: años 1980
    centuries: frozenset[str]
    calendar: Mapping[str, str]  # months and days
    names: frozenset[str]  # months and days that may be something else if they have a capital letter
    rulers: Mapping[str, str]  # names that are translated before a Roman numeral, in all their forms
    measures: Mapping[str, str]  # words that a sign may replace
    negative: frozenset[str]
    almost_negative: tuple[str, ...]  # beginnings of words that another language may express by a negation
    written: Mapping[str, list[str]]  # the forms of a month, a day, a ruler or a power, with accents
    # Abbreviations without their last full stop: before words, before a number, or at the end of a sentence; and words
    # that begin a sentence far more often than they are a name after an abbreviation.
    sentences: Mapping[str, frozenset[str]]
    between: str = ","  # a pattern of what separates the items of a list
    no_negation: str = "(?!)"  # a pattern of negative words that do not negate: "isn't it?"
    obligations: Mapping[str, str]  # patterns of "must not" (forbidden) and "need not" (needless)
    instead: Mapping[str, str]  # templates that replace one of the two by the other
    point: str = "."  # before a fraction
    ordinal: str = "{}"  # a template
    century: str = "{}"
    century_follows: bool = False  # whether the word for a century follows its number
    capitals: bool = False  # whether months and days have capital letters


def folded(word: str) -> str:
    """Small letters without the accents of vowels."""
    return word.lower().translate(_ACCENTS)


def read(data: Mapping[str, Any]) -> Lexicon:
    """The lexicon in a file's data; a field that it lacks is empty."""

    def words(name: str) -> frozenset[str]:
        return frozenset(data.get(name, "").split())

    def keys(name: str) -> dict[str, str]:
        return {folded(word): key for key, group in data.get(name, {}).items() for word in group.split()}

    def numbers(name: str) -> dict[str, int]:
        return {word: int(key) for word, key in keys(name).items()}

    values, ordinals, powers = numbers("cardinals"), numbers("ordinals"), numbers("powers")
    tables = (data.get(name, {}) for name in ("powers", "calendar", "rulers"))
    return Lexicon(
        values=values | ordinals,
        ordinals=frozenset(ordinals),
        hundreds=words("hundreds"),
        powers=powers,
        short=numbers("short"),
        numeric=words("hundreds").union(values, ordinals, powers, words("halves")),
        about=keys("about"),
        unsure=words("unsure"),
        joints=words("joints"),
        articles=words("articles"),
        halves=words("halves"),
        decades=words("decades"),
        centuries=words("centuries"),
        calendar=keys("calendar"),
        names=words("names"),
        rulers=keys("rulers"),
        measures=keys("measures"),
        negative=words("negative"),
        almost_negative=tuple(words("almost_negative")),
        written={key: group.split() for table in tables for key, group in table.items()},
        sentences={kind: words(kind) for kind in ("before_words", "before_numbers", "may_end", "starters")},
        obligations=data.get("obligations", {}),
        instead=data.get("instead", {}),
        **{name: data[name] for name in _TEMPLATES if name in data},
    )


# Languages without a file that write 1,234.5; all others write 1.234,5.
_WITH_POINT = "cy ga gu he hi ja km kn ko lo ml mr ms mt my ne pa si sw ta te th tl ur zh"
_OTHERS = {point: read({"point": point}) for point in ".,"}
NONE = _OTHERS["."]


@lru_cache
def lexicon(code: str) -> Lexicon:
    """The words of a language."""
    known = {path.stem: path for path in FOLDER.glob("*.json")}
    other = _OTHERS["." if code in _WITH_POINT.split() else ","]
    return read(json_data(known[code].read_text("utf-8"))) if code in known else other


def lexicons(source: str, target: str) -> tuple[Lexicon, Lexicon]:
    """Those of two languages; without words, unless both have some."""
    codes = [code.lower().replace("_", "-").partition("-")[0] for code in (source, target)]
    first, second = map(lexicon, codes) if all(codes) else (NONE, NONE)
    both = bool(first.values and second.values)
    return (first, second) if both else (_OTHERS[first.point], _OTHERS[second.point])
