"""Words that are typed without their accents or capital letters, as many are. The vocabulary tells where one belongs:
with it, a word has fewer tokens. A text that has none is read with them, too, and the likelier translation is taken
(attempts.py)."""

from vidrio.text.reading.capitals import WORD, Tokens, each_word, letter_by_letter, named
from vidrio.text.reading.protect import Protected

ACCENTED = {"es": dict(zip("aeioun", "áéíóúñ", strict=True))}  # by language: the letter that is typed, the one meant


def mended(source: Protected, accents: dict[str, str], tokens: Tokens) -> Protected:
    """The text with accents, if it has none, and with the capital letters of names, if it has none; places stay."""
    if accents and set(source.text.lower()).isdisjoint(accents.values()):
        source = source._replace(text=each_word(source, lambda word: with_accent(word, accents, tokens)))
    if source.text.islower():  # the first word gets one anyway
        first = WORD.search(source.text)
        start = first.end() if first else 0
        capitals = each_word(source, lambda word: with_capital(word, tokens))
        source = source._replace(text=source.text[:start] + capitals[start:])
    return source


def with_accent(word: str, accents: dict[str, str], tokens: Tokens) -> str:
    """The word with one accent, letter for letter, if it has fewer tokens so than as it is."""
    small = letter_by_letter(word, str.lower) if word.isupper() and len(word) > 1 else word
    if tokens(small) == 1 or not (small.islower() or small.istitle()):
        return word
    # Of words in o and ó both are Spanish (regalo, regaló), seldom of those in io and ió.
    last = len(small) - (small.endswith("o") and not small.endswith("io"))
    with_one = (small[:at] + accents[small[at]] + small[at + 1 :] for at in range(last) if small[at] in accents)
    best = min((small, *with_one), key=tokens)
    letters = zip(word, small, best, strict=True)
    return "".join(typed if new == old else new if typed == old else new.upper() for typed, old, new in letters)


def with_capital(word: str, tokens: Tokens) -> str:
    """The word as a name, if the vocabulary rather knows it so; she's begins sentences."""
    return word if "'" in word or "’" in word else named(word, tokens)
