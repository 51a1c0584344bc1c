"""Capital letters as tokens of their own, so that *Preheat*, *preheat* and *PREHEAT* are one word to a model.

`⇧` says that the next letter is a capital, `⇪` that all letters up to the end of the word are. Both stand before the
space of the word that they are about, and everything after them is in small letters:

    ▁Hello▁NATO▁McDonald  →  ⇧▁hello⇪▁nato⇧▁mc⇧donald

Only letters that have exactly one small form, and come back from it, are treated so; all others stay as they are. Hence
`restore` gives back every text exactly.
"""

import re
from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, normalizers

CAPITAL, CAPITALS = "⇧", "⇪"
LETTERS = r"\p{L}\p{M}'’"  # what words are made of

_MARKED = re.compile(
    rf"{CAPITAL}( ?)([^{CAPITAL}{CAPITALS}])|{CAPITALS}( ?)((?:[^\W\d_]|['’])+)|[{CAPITAL}{CAPITALS}]", re.DOTALL
)


def capital_of(letter: str) -> str:
    """Its capital letter, if the way there and back is exact; else nothing."""
    upper = letter.upper()
    return upper if len(upper) == 1 and upper != letter and upper.lower() == letter else ""


def in_small_letters(counts: Counter[str]) -> Counter[str]:
    """How often each character occurs, capitals counted as the letters that they become."""
    small: Counter[str] = Counter()
    for character, count in counts.items():
        lower = character.lower()
        small[lower if len(lower) == 1 and capital_of(lower) == character else character] += count
    return small


def marking(letters: Iterable[str]) -> list[normalizers.Normalizer]:
    """The steps that mark and replace the capitals of these letters, in a text whose spaces are `▁`."""
    capitals = "".join(filter(None, map(capital_of, letters)))
    if not capitals:
        return []
    capital, end = f"[{capitals}]", rf"['’]*(?![{LETTERS}])"
    begins = rf"(?<!{capital}|{capital}['’])"  # not within a run of capitals
    run = rf"{capital}(?:['’]?{capital})+{end}"
    single = rf"{capital}{end}"
    inner = rf"{capital}(?!(?:['’]?{capital})*{end})"  # small letters follow
    return [
        normalizers.Replace(Regex(rf"(?=▁{run})|(?<!▁){begins}(?={run})"), CAPITALS),
        normalizers.Replace(Regex(rf"(?=▁(?:{inner}|{single}))|(?<!▁)(?={inner})|(?<!▁){begins}(?={single})"), CAPITAL),
        *(normalizers.Replace(capital, capital.lower()) for capital in capitals),
    ]


def restore(text: str) -> str:
    """The text with its capitals, from one with marks."""
    return _MARKED.sub(_restored, text)


def _restored(found: re.Match[str]) -> str:
    space, letter, spaces, word = found.groups()
    if letter is not None:
        return space + (capital_of(letter) or letter)
    if word is not None:
        return spaces + "".join(capital_of(letter) or letter for letter in word)
    return ""  # a mark with no letter after it, which only a model can produce
