"""Find the words of a text and the tokens of each word.

Positions are pairs of character offsets: start and end.
"""

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise

from vidrio.text.protect import gaps, spans
from vidrio.text.tokens.tokenizer import Tokenizer

Place = tuple[int, int]

_LETTER = r"[\w\u0300-\u036f]"  # a combining accent is part of the letter before it
_OTHER = r"[^\w\s\u0300-\u036f]"
# don't, e-mail, 18.10: one sign between letters is part of the word, except for dashes, which separate two words.
_WORD = rf"{_LETTER}+(?:(?![—–…]){_OTHER}{_LETTER}+)*|{_OTHER}+"


def words(text: str) -> list[Place]:
    """Return the words of a text and its other signs, in order. They cover everything except white space.

    Each address, number and placeholder is a single word.
    """
    protected = spans(text)
    between = gaps(0, len(text), protected)
    found = [match.span() for part in between for match in re.compile(_WORD).finditer(text, *part)]
    return sorted([*found, *((start, end) for start, end, _ in protected)])


def worded(text: str) -> bool:
    """Return whether a text contains a letter or a digit."""
    return any(map(str.isalnum, text))


def word_of_each(tokens: Sequence[Place], of: Sequence[Place]) -> list[int]:
    """Return the index of the first word that each token overlaps. A token that overlaps none, such as the space before
    a word or one byte of a character, gets the index of the next word, or −1 if no word follows."""
    numbers: list[int] = []
    number = 0
    for start, _ in tokens:
        while number < len(of) and of[number][1] <= start:
            number += 1
        numbers.append(number if number < len(of) else -1)
    return numbers


def token_places(ids: Sequence[int], tokenizer: Tokenizer) -> list[Place]:
    """Return the span that each token adds to the decoded text of the tokens before it.

    The byte tokens of a character all start where the character starts, and only the last of them covers it.
    """
    *begun, text = tokenizer.decode_batch([ids[:count] for count in range(len(ids) + 1)])
    return list(pairwise([*accumulate((in_common(part, text) for part in begun), max), len(text)]))


def in_common(a: str, b: str) -> int:
    """Return the length of the longest common prefix of two texts."""
    if b.startswith(a):
        return len(a)
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
