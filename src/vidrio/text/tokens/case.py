"""Represent capitals by separate tokens, so that *Preheat*, *preheat* and *PREHEAT* are the same word for a model.

`⇧` capitalises the next letter, and `⇪` all letters up to the end of the word. Both come before the space that precedes
their word, and everything after them is in lower case:

    ▁Hello▁NATO▁McDonald  →  ⇧▁hello⇪▁nato⇧▁mc⇧donald

A capital that cannot be restored from a single lower-case letter is left unchanged, so `restore` is exact.
"""

import re
from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, normalizers

CAPITAL, CAPITALS = "⇧", "⇪"
LETTERS = r"\p{L}\p{M}'’"  # the characters that words consist of

_MARKED = re.compile(
    rf"{CAPITAL}( ?)([^{CAPITAL}{CAPITALS}])|{CAPITALS}( ?)((?:[^\W\d_]|['’])+)|[{CAPITAL}{CAPITALS}]", re.DOTALL
)


def capital_of(letter: str) -> str:
    """Return the letter's upper-case form if the mapping is reversible, otherwise an empty string."""
    upper = letter.upper()
    return upper if len(upper) == 1 and upper != letter and upper.lower() == letter else ""


def in_small_letters(counts: Counter[str]) -> Counter[str]:
    """Return how often each character occurs, counting capitals as lower-case letters."""
    small: Counter[str] = Counter()
    for character, count in counts.items():
        lower = character.lower()
        small[lower if len(lower) == 1 and capital_of(lower) == character else character] += count
    return small


def marking(letters: Iterable[str]) -> list[normalizers.Normalizer]:
    """Return the steps that mark and lower-case the capitals of these letters, in text that uses `▁` for spaces."""
    capitals = "".join(filter(None, map(capital_of, letters)))
    if not capitals:
        return []
    capital, end = f"[{capitals}]", rf"['’]*(?![{LETTERS}])"
    begins = rf"(?<!{capital}|{capital}['’])"  # not within a run of capitals
    run = rf"{capital}(?:['’]?{capital})+{end}"
    single = rf"{capital}{end}"
    inner = rf"{capital}(?!(?:['’]?{capital})*{end})"  # followed by lower-case letters
    return [
        normalizers.Replace(Regex(rf"(?=▁{run})|(?<!▁){begins}(?={run})"), CAPITALS),
        normalizers.Replace(Regex(rf"(?=▁(?:{inner}|{single}))|(?<!▁)(?={inner})|(?<!▁){begins}(?={single})"), CAPITAL),
        *(normalizers.Replace(capital, capital.lower()) for capital in capitals),
    ]


def restore(text: str) -> str:
    """Restore the capitals of a text from its marks."""
    return _MARKED.sub(_restored, text)


def _restored(found: re.Match[str]) -> str:
    space, letter, spaces, word = found.groups()
    if letter is not None:
        return space + (capital_of(letter) or letter)
    if word is not None:
        return spaces + "".join(capital_of(letter) or letter for letter in word)
    return ""  # a mark that no letter follows, which only a model can produce
