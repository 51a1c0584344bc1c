"""Pair carelessly typed sentences with correct translations: dont, whats, twenty one, monday, como estas?

Only the source changes. Sentences in lower case or all caps are not needed, because the tokenizer handles case.
"""

import random
import re
import unicodedata
from collections.abc import Iterable, Iterator

from corpora import Pair

LONGEST = 60  # characters
APOSTROPHE = re.compile(r"(?<=[A-Za-z])['’](?=(?:t|s|m|re|ve|d)\b)")
POSSESSIVE = re.compile(r"\b(?:[A-Z]\w+|the \w+)['’]s\b")  # without its apostrophe, Tom's would become another name
CALENDAR = re.compile(r"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|April|June|July|August"
                      r"|(?:Septem|Octo|Novem|Decem)ber)\b")  # fmt: skip
ACUTE, TILDE, DIAERESIS = "\u0301", "\u0303", "\u0308"


def english(chance: random.Random, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Omit apostrophes in some sentences: dont, cant, whats."""
    for source, target in pairs:
        plain = APOSTROPHE.sub("", source)
        if len(source) <= LONGEST and plain != source and not POSSESSIVE.search(source) and chance.random() < 0.6:
            yield plain, target


def numbers(chance: random.Random, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Write numbers informally: twenty one, a hundred, two hundred five."""
    for source, target in pairs:
        plain = source
        if chance.random() < 0.6:
            plain = re.sub(r"(?<=ty)-(?=[a-z])", " ", plain)
        if chance.random() < 0.5:
            plain = re.sub(r"\b(hundred|thousand) and ", r"\1 ", plain)
        if chance.random() < 0.3:
            plain = re.sub(r"\bone (?=hundred|thousand)", "a ", plain)
        if plain != source:
            yield plain, target


def days(chance: random.Random, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Write days and months in lower case: on monday, in april."""
    for source, target in pairs:
        plain = CALENDAR.sub(lambda name: name[0].lower(), source)
        if plain != source and chance.random() < 0.5:
            yield plain, target


def spanish(chance: random.Random, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Omit opening punctuation (¿, ¡) and accents, but only rarely the tilde of ñ."""
    for source, target in pairs:
        plain = target.lstrip("¿¡") if chance.random() < 0.8 else target
        if chance.random() < 0.8:
            plain = without(ACUTE + DIAERESIS + (TILDE if chance.random() < 0.1 else ""), plain)
        if len(target) <= LONGEST and plain != target:
            yield source, plain


def without(accents: str, text: str) -> str:
    return unicodedata.normalize("NFC", "".join(c for c in unicodedata.normalize("NFD", text) if c not in accents))
