"""How a fact of one language is written in another, where a translation has lost it."""

import re

from vidrio.text.account import ROMAN, Fact, folded
from vidrio.text.lexicon import Lexicon

MOST_CENTURIES = 39


def rendered(fact: Fact, said: str, source: Lexicon, target: Lexicon) -> str:
    """A fact as the target language writes it. `said` is what the source says."""
    if fact.kind == "calendar":
        name = next(name for name, key in target.calendar.items() if key == fact.key)
        return name.capitalize() if target.capitals else name
    if fact.kind != "number" or not target.values:
        return said
    if not re.fullmatch(r"\d+", fact.key) or re.search(r"[:/]", said):
        return in_notation(said, source, target)
    number = int(fact.key)
    if fact.of_century and number <= MOST_CENTURIES:
        return target.century.format(number, suffix=_suffix(number), roman=roman(number))
    if re.fullmatch(ROMAN, said):
        return said
    if folded(said) in source.ordinals or re.fullmatch(r"\d+\.?[^\W\d]+", said):
        return target.ordinal.format(number, suffix=_suffix(number))
    if number >= 10**6 and said[-1:].isalpha():
        return _in_powers(number, target)
    return in_notation(said, source, target) if said[-1:].isdigit() else grouped(number, target)


def obliging(key: str, wrong: str, language: Lexicon) -> str:
    """What forbids in the place of what leaves free ("no tienes que" → "no debes"), or the other way round."""
    forbids = key == "forbidden"
    found = re.search(language.needless if forbids else language.forbidden, wrong, re.IGNORECASE)
    end = (found.groupdict().get("end") if found else "") or "e"
    return language.instead[0 if forbids else 1].format(end=end)


def in_notation(said: str, source: Lexicon, target: Lexicon) -> str:
    """A number in digits with the target's points and commas, if it is written with the source's."""
    comma = "," if source.point == "." else "."
    usual = rf"[^\d.,]*(?:\d{{1,3}}(?:{re.escape(comma)}\d{{3}})+|\d+)(?:{re.escape(source.point)}\d+)?[^\d.,]*"
    if source.point == target.point or not re.fullmatch(usual, said):
        return said
    return said.translate({ord("."): ",", ord(","): "."})


def grouped(number: int, language: Lexicon) -> str:
    return str(number) if number < 10**4 else f"{number:,}".replace(",", "," if language.point == "." else ".")


def roman(number: int) -> str:
    """A number up to 39 in Roman numerals."""
    return "X" * (number // 10) + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[number % 10]


def _suffix(number: int) -> str:
    return "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _in_powers(number: int, language: Lexicon) -> str:
    """2.5 million, 3000 millones."""
    power = max((power for power in language.powers.values() if power <= number), default=1)
    whole, tenths = divmod(number * 10 // power, 10)
    if power < 10**6 or number * 10 % power:
        return grouped(number, language)
    name = [name for name, of in language.powers.items() if of == power][-1 if number > power else 0]
    accented = language.accented.get(name, name)
    return f"{grouped(whole, language)}{f'{language.point}{tenths}' if tenths else ''} {accented}"
