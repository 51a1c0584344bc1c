"""Render lost facts in the target language."""

import re

from vidrio.text.account import ROMAN, Fact
from vidrio.text.lexicon import Lexicon, folded

MAX_CENTURIES = 39
_UNITS = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")


def rendered(fact: Fact, said: str, source: Lexicon, target: Lexicon) -> str:
    """Return a fact as it is written in the target language. `said` is its text in the source."""
    if fact.key in target.written and fact.kind in ("calendar", "name"):
        name = target.written[fact.key][0]
        return name.capitalize() if target.capitals else name
    number = int(fact.key) if re.fullmatch(r"\d+", fact.key) and not re.search(r"[:/]", said) else None
    if fact.kind != "number" or (re.fullmatch(ROMAN, said) and not fact.of_century):
        return said
    if number is None or not target.values:
        return fact.key if said.isalpha() else in_notation(said, source, target)
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    if fact.of_century and number <= MAX_CENTURIES:
        roman = "X" * (number // 10) + _UNITS[number % 10]
        return target.century.format(number, suffix=suffix, roman=roman)
    if folded(said) in source.ordinals or re.fullmatch(r"\d+\.?[^\W\d_]+", said):
        return target.ordinal.format(number, suffix=suffix)
    if number >= 10**6 and said[-1:].isalpha():
        return _in_powers(number, target)
    return in_notation(said, source, target) if said[-1:].isdigit() else grouped(number, target)


def obliging(key: str, wrong: str, language: Lexicon) -> str:
    """Correct a wrong "need not" to "must not" ("no tienes que" → "no debes"), or the reverse."""
    found = [match for pattern in language.obligations.values() if (match := re.search(pattern, wrong, re.IGNORECASE))]
    end = found[0].groupdict().get("end") if found else ""
    return language.instead[key].format(end=end or "e")


def in_notation(said: str, source: Lexicon, target: Lexicon) -> str:
    """Convert a number in digits from the source's separators to the target's. Other numbers are returned unchanged."""
    comma = "," if source.point == "." else "."
    usual = rf"[^\d.,]*(?:\d{{1,3}}(?:{re.escape(comma)}\d{{3}})+|\d+)(?:{re.escape(source.point)}\d+)?[^\d.,]*"
    if source.point == target.point or not re.fullmatch(usual, said):
        return said
    return said.translate({ord("."): ",", ord(","): "."})


def grouped(number: int, language: Lexicon) -> str:
    """Return an integer in digits, with thousands separators from 10,000 upwards."""
    return str(number) if number < 10**4 else f"{number:,}".replace(",", "," if language.point == "." else ".")


def _in_powers(number: int, language: Lexicon) -> str:
    """Return a number with a word for a power, such as 2.5 million or 3000 millones."""
    power = max(power for power in language.powers.values() if power <= number)
    whole, tenths = divmod(number * 10 // power, 10)
    if power < 10**6 or number * 10 % power:
        return grouped(number, language)
    name = language.written[str(power)][-1 if number > power else 0]
    return f"{grouped(whole, language)}{f'{language.point}{tenths}' if tenths else ''} {name}"
