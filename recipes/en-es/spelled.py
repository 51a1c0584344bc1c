"""Spell numbers in English and Spanish: alone, before a noun, or as a year.

num2words spells the numbers, and this module makes Spanish numbers agree with their nouns (veintiún días, doscientas
mesas, treinta y un mil).
"""

import random
import re

from num2words import num2words

GENDERS = {"m": "o", "f": "a"}


def english(number: int) -> str:
    """Spell a number in English without commas, which would look like a list within a sentence."""
    return num2words(number).replace(",", "")


def spanish(number: int, gender: str = "") -> str:
    """Spell a number in Spanish, for counting (uno, veintiuno) or before a noun (un, una, veintiún, doscientas)."""
    words = re.sub(r"uno(?= mil)", "un", num2words(number, lang="es")).replace("veintiun ", "veintiún ")
    if gender == "m":
        words = re.sub(r"veintiuno$", "veintiún", words)
        words = re.sub(r"uno$", "un", words)
    if gender == "f":
        words = re.sub(r"uno$", "una", words).replace("cientos", "cientas").replace("quinientos", "quinientas")
    return words


def year(number: int) -> tuple[str, str]:
    return num2words(number, to="year").replace(" and ", " "), spanish(number)


def ordinal(number: int, gender: str) -> tuple[str, str]:
    """Spell an ordinal before a noun, up to the tenth. Beyond that, Spanish prefers cardinal numbers."""
    words = num2words(number, to="ordinal", lang="es")
    words = f"{words[:-1]}{GENDERS[gender]}"
    return num2words(number, to="ordinal"), re.sub(r"(primer|tercer)o$", r"\1", words)


def some_number(chance: random.Random) -> int:
    """Draw a number below a million, preferring numbers of two to four digits and endings up to twenty."""
    digits = chance.choice((1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 6))
    number = chance.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)
    return number - number % 100 + chance.randint(0, 20) if chance.random() < 0.25 else number
