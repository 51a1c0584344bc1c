"""A text in capital letters is read in small ones, which models know far better, and its translation raised again."""

import re
from collections.abc import Callable

from vidrio.text.protect import spans

I_ALONE = re.compile(r"\bi\b")  # English writes it with a capital; Spanish has no such word
FEWEST = 4  # letters; what is shorter (USA, PDF) is rather an abbreviation


def shouted(text: str) -> bool:
    """Whether all letters are capitals, but for what must come through whole (an address, a placeholder)."""
    if any(map(str.islower, text)) and not spans(text):  # true of nearly every text, and quick
        return False
    letters = [letter for letter in outside(text, lambda part: part, "") if letter.isalpha()]
    return len(letters) >= FEWEST and all(map(str.isupper, letters))


def lowered(text: str) -> str:
    """In small letters, but for the first one."""
    small = outside(text, lambda part: I_ALONE.sub("I", letter_by_letter(part, str.lower)))
    for n, letter in enumerate(small):
        if letter.isalpha():
            return small[:n] + text[n] + small[n + 1 :]
    return small


def raised(text: str) -> str:
    """In capital letters."""
    return outside(text, lambda part: letter_by_letter(part, str.upper))


def outside(text: str, change: Callable[[str], str], inside: str | None = None) -> str:
    """The text, changed but for what must come through whole; `inside` may stand in place of that."""
    written, at = [""], 0
    for span in spans(text):
        written += (change(text[at : span.start]), text[span.start : span.end] if inside is None else inside)
        at = span.end
    return "".join((*written, change(text[at:])))


def letter_by_letter(text: str, change: Callable[[str], str]) -> str:
    """Each letter changed, but for those that would become two: places stay what they are."""
    return "".join(changed if len(changed := change(letter)) == 1 else letter for letter in text)
