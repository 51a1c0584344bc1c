"""Generate prices: €18.10 and 18,10 €, $3 billion and 3.000 millones de dólares.

The corpora contain "18 euros" but hardly any currency signs, and a model confuses one rare sign with another.
"""

import random
import re
from collections.abc import Iterable, Iterator

from corpora import Pair

SIGNS = {"€": "euros", "$": "dólares", "£": "libras", "¥": "yenes"}
ENGLISH = re.compile(r"(?<![\d.,])(?<!\d )(\d[\d,]*(?:\.\d\d)?) (?:euros|dollars|yen)\b")
SPANISH = re.compile(r"(?<![\d.,])(?<!\d )(\d[\d.]*(?:,\d\d)?) (?:euros|dólares|yenes)\b")


def price(chance: random.Random) -> Pair:
    sign = chance.choice("€€€$$£¥")
    amount = chance.randrange(10 ** chance.randint(1, 7)) + 1
    cents = f"{chance.choice((50, 99, 95, 25, 75, chance.randrange(100))):02}"
    if sign == "¥" or amount >= 10_000 or chance.random() < 0.5:
        cents = ""
    return in_both(sign, f"{amount:,}" if amount >= 10_000 or chance.random() < 0.6 else str(amount), cents)


def in_both(sign: str, amount: str, cents: str) -> Pair:
    spanish = amount.replace(",", ".") + (f",{cents}" if cents else "")
    return f"{sign}{amount}" + (f".{cents}" if cents else ""), f"{spanish} {sign}"


def millions(chance: random.Random) -> Pair:
    """Return a large sum in English and Spanish. A billion in English is "mil millones" in Spanish."""
    sign = chance.choice("€€$$$£")
    whole, tenth = chance.randint(1, 99), chance.choice((0, 0, chance.randint(1, 9)))
    many, short = chance.choice((("million", "m"), ("billion", "bn")))
    english = f"{sign}{whole}" + (f".{tenth}" if tenth else "")
    english += short if chance.random() < 0.15 else f" {many}"
    spanish = f"{whole}.{tenth}00" if many == "billion" else f"{whole},{tenth}" if tenth else f"{whole}"
    return english, f"{spanish} {'millón' if spanish == '1' else 'millones'} de {SIGNS[sign]}"


def signed(chance: random.Random, pairs: Iterable[Pair], each: int) -> Iterator[Pair]:
    """Rewrite pairs that name a currency in words: yield copies with random amounts and currency signs."""
    for source, target in pairs:
        if len(ENGLISH.findall(source)) == len(SPANISH.findall(target)) == 1:
            for _ in range(each):
                english, spanish = price(chance)
                yield ENGLISH.sub(lambda _, to=english: to, source), SPANISH.sub(lambda _, to=spanish: to, target)
