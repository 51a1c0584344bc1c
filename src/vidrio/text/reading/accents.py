"""Words that are typed without their accents, as many are. The vocabulary tells where one belongs: with it, a word has
fewer tokens. A text that has none is read with them, too, and the likelier translation is taken (attempts.py)."""

from collections.abc import Callable

from vidrio.text.reading.capitals import WORD, outside
from vidrio.text.reading.protect import Protected

ACCENTED = {"es": dict(zip("aeioun", "áéíóúñ", strict=True))}  # by language: the letter that is typed, the one meant


def with_accent(word: str, accents: dict[str, str], tokens: Callable[[str], int]) -> str:
    """The word with one accent, letter for letter, if it has fewer tokens so than as it is."""
    if tokens(word) == 1 or not (word.islower() or word.istitle()):
        return word
    # Of words in o and ó both are Spanish (regalo, regaló), seldom of those in io and ió.
    last = len(word) - (word.endswith("o") and not word.endswith("io"))
    with_one = (word[:at] + accents[word[at]] + word[at + 1 :] for at in range(last) if word[at] in accents)
    return min((word, *with_one), key=tokens)


def accented(source: Protected, accents: dict[str, str], restore: Callable[[str], str]) -> Protected:
    """The text with its words restored, unless it has accents. Places stay what they are."""
    if not set(source.text.lower()).isdisjoint(accents.values()):
        return source
    return source._replace(text=outside(source, lambda part: WORD.sub(lambda word: restore(word[0]), part)))
