"""Prices in euros, pounds or yen are read as prices in dollars, where the vocabulary has no sign for them, and written
in their own money again."""

from collections.abc import Set

from vidrio.text.casing import capital_first
from vidrio.text.chars import knows
from vidrio.text.pattern import pattern
from vidrio.text.protect import Protected
from vidrio.text.tokens.tokenizer import Tokenizer

# What becomes of the words dólar, dólares, dollar, dollars in a translation that is of another currency.
DOLLAR = "$"
DOLLARS = pattern(r"(?:\bUS)?\$|\b[Dd](?:[oó]lar(?:es)?|ollars?)\b")
MONEY = {
    "€": ("euro", "euros", "euro", "euros"),
    "£": ("libra", "libras", "pound", "pounds"),
    "¥": ("yen", "yenes", "yen", "yen"),
}


def rare_signs(tokenizer: Tokenizer) -> Set[str]:
    """The signs that the vocabulary spells out."""
    if tokenizer.of_whole_words:
        return set()
    return {s for s in MONEY if not knows(s, tokenizer) and tokenizer.count(s) > tokenizer.count(DOLLAR)}


def priced_in(source: Protected, shown: str, signs: Set[str]) -> str:
    """The sign of the prices of a sentence, if it is at numbers only, and the only one: so it can be put back."""
    prices = [sign for start, end, _ in source.spans for sign in source.text[start:end] if sign in signs]
    is_one = len(set(prices)) == 1 and shown.count(prices[0]) == len(prices) and not DOLLARS.search(shown)
    return prices[0] if is_one else ""


def in_money(translation: str, money: str) -> str:
    """Euros for dollars, as signs or as words."""

    def put(dollars: str) -> str:
        if dollars.endswith(DOLLAR):
            return money
        word = MONEY[money][2 * ("ll" in dollars) + dollars.endswith("s")]
        return capital_first(word) if dollars[0].isupper() else word

    return DOLLARS.sub(lambda match: put(match[0]), translation)
