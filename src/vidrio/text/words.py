"""The words of a text, and the tokens of each.

Positions are pairs of numbers that count characters: start and end.
"""

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise

from vidrio.text.protect import gaps, spans
from vidrio.text.tokens.tokenizer import Tokenizer

Place = tuple[int, int]

_LETTER = r"[\w\u0300-\u036f]"  # a combining accent belongs to the letter before it
_OTHER = r"[^\w\s\u0300-\u036f]"
# don't, e-mail, 18.10: one sign between letters joins a word, but a dash separates two.
_WORD = rf"{_LETTER}+(?:(?![—–…]){_OTHER}{_LETTER}+)*|{_OTHER}+"


def words(text: str) -> list[Place]:
    """The words of a text, in order, and its other signs. Addresses, numbers and placeholders are single words.

    Everything except white space is in one of them.
    """
    protected = spans(text)
    between = gaps(0, len(text), protected)
    found = [match.span() for part in between for match in re.compile(_WORD).finditer(text, *part)]
    return sorted([*found, *((start, end) for start, end, _ in protected)])


def worded(text: str) -> bool:
    """Whether it contains a letter or a digit."""
    return any(map(str.isalnum, text))


def word_of_each(tokens: Sequence[Place], of: Sequence[Place]) -> list[int]:
    """For each token, in order, the number of its word: the first one that it overlaps, otherwise the next one, since a
    token may be the space before a word, or one byte of a character. −1 if none follows."""
    numbers: list[int] = []
    number = 0
    for start, _ in tokens:
        while number < len(of) and of[number][1] <= start:
            number += 1
        numbers.append(number if number < len(of) else -1)
    return numbers


def token_places(ids: Sequence[int], tokenizer: Tokenizer) -> list[Place]:
    """The position of each token in the decoded text: what it adds to the text of the tokens before it.

    The bytes of a character start where it starts; the last of them covers it.
    """
    *begun, text = tokenizer.decode_batch([ids[:count] for count in range(len(ids) + 1)])
    return list(pairwise([*accumulate((in_common(part, text) for part in begun), max), len(text)]))


def in_common(a: str, b: str) -> int:
    """The length of the longest common prefix of two texts."""
    if b.startswith(a):
        return len(a)
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
