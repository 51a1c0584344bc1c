"""Capitals, titles and small letters are read as sentences, and their translations written as the text was.

Models learn from sentences that begin with a capital letter and end with a full stop, and know those far better than
what people also type. `tokens` counts the tokens of a word, and so tells how the vocabulary knows it: a word with fewer
tokens with a capital letter (London) is a name; one that is a single token only without it is none.
"""

import re
from collections.abc import Callable
from enum import Enum

from vidrio.text.pattern import pattern, word_set
from vidrio.text.protect import Protected, protected, spans

Tokens = Callable[[str], int]


class Form(Enum):
    """What a sentence looks like, and how it is read."""

    PLAIN = "as it stands"
    CAPITALS = "capitals as small letters"
    TITLE = "a title as a sentence"
    SMALL = "small letters as a sentence"
    ENTRY = "a capital letter as a small one"


WORD = pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
ENGLISH_I = pattern(r"(?<![\w.'’-])i(?!\w|\.\w|[)-])")  # Spanish has no such word
FEWEST = 4  # letters; what is shorter (USA, PDF) is rather an abbreviation
SEVERAL = 3  # words; fewer may be an entry of a dictionary, which models know as it is
INFINITIVE = "to "  # so may this, however long: to fall in love
OPENING = "\"'“‘«([¿¡"  # before the first word
FIRST_WORD = pattern(rf"[{re.escape(OPENING)}]*([^\W\d_]+(?:['’][^\W\d_]+)*)(?=[\s,;:!?…]|\.?\Z|\.\s)")
# Small words of a title …
LITTLE = word_set(
    "a an and as at but by for from in into nor of on or the to with "
    "al con de del e el en la las los o para por que sin su sus u un una y"
)
# … and words that names do not have: with a capital letter they tell a title.
TELLING = word_set(
    "an and are as at be but do for from her his how in into is it my nor not of on or our that the this to was "
    "we what when where who why with you your"
)


def read(source: Protected, tokens: Tokens, *, forms: bool = True) -> tuple[str, Form]:
    """The text as it is read, without any mark that it lacks, and how it looked. Places stay what they are. Without
    `forms` only capitals are read otherwise."""
    text = source.text
    if not forms:
        return (lowered(source), Form.CAPITALS) if is_shouted(source) else (text, Form.PLAIN)
    if is_shouted(source):
        quieter = each_word(protected(lowered(source)), lambda word: named(word, tokens))
        return as_entry(quieter, tokens), Form.CAPITALS
    if begins_small(text):
        return begun(with_large_i(source), tokens), Form.SMALL
    if (entry := as_entry(text, tokens)) != text:
        return entry, Form.ENTRY
    if is_title(source, tokens):
        return begun(each_word(source, lambda word: untitled(word, tokens)), tokens), Form.TITLE
    return text, Form.PLAIN


def written(translation: str, text: str, form: Form) -> str:
    """The translation of what was read, as the text was written."""
    if form is Form.CAPITALS:
        return outside(protected(translation), lambda part: letter_by_letter(part, str.upper))
    if form in (Form.ENTRY, Form.TITLE):
        return capital_first(translation)
    if form is Form.SMALL:
        return small_first(translation, text)
    return translation


# --- capitals ---------------------------------------------------------------------------------------------------------


def is_shouted(source: Protected) -> bool:
    """Whether all letters are capitals, but for what must come through whole (an address, a placeholder)."""
    if not source.spans and any(map(str.islower, source.text)):  # true of nearly every text, and quick
        return False
    letters = [letter for letter in outside(source, str, "") if letter.isalpha()]
    return len(letters) >= FEWEST and all(map(str.isupper, letters))


def lowered(source: Protected) -> str:
    """In small letters, but for the first one."""
    text = source.text
    small = outside(source, lambda part: ENGLISH_I.sub("I", letter_by_letter(part, str.lower)))
    first = next((n for n, letter in enumerate(small) if letter.isalpha()), len(text))
    return small[:first] + text[first : first + 1] + small[first + 1 :]


def named(word: str, tokens: Tokens) -> str:
    """A word in small letters; with a capital one, if that is how the vocabulary knows it."""
    name = letter_by_letter(word[0], str.upper) + word[1:]
    return name if tokens(name) < tokens(word) else word


# --- titles, headings -------------------------------------------------------------------------------------------------


def as_entry(text: str, tokens: Tokens) -> str:
    """A word or two that stand alone (a heading, a menu, a label: Name & Address:) in small letters, as in a
    dictionary, if the vocabulary knows all of them better so: Isabel Torres is a name, though torres are towers."""
    words = [word for word in text.removesuffix(":").split() if word != "&"]
    if not (words and text[:1].isupper() and len(text) >= FEWEST and len(words) < SEVERAL):
        return text
    if not all(word.isalpha() and (word.istitle() or word.islower()) for word in words):
        return text
    small = letter_by_letter(text, str.lower)
    better = all(tokens(word.lower()) < tokens(word) for word in words if word.istitle())
    return small if better else text


def is_title(source: Protected, tokens: Tokens) -> bool:
    """Whether its words have capital letters as a title, and not all of them may be names."""
    if has_small_words(source.text):
        return False  # true of nearly every text, and quick
    words = WORD.findall(outside(source, str, " "))
    if len(words) < SEVERAL or any(word[0].islower() and word not in LITTLE for word in words):
        return False
    content = [word for word in words if word.lower() not in LITTLE | TELLING]
    common = sum(tokens(word.lower()) == 1 < tokens(word) for word in content if not word.isupper())
    capital = {word.lower() for word in words[1:] if word[0].isupper()}
    return not capital.isdisjoint(TELLING) or 3 * common >= len(content) >= 1


def untitled(word: str, tokens: Tokens) -> str:
    """A word of a title as it stands within a sentence: what may be a name keeps its capital letter."""
    small = letter_by_letter(word[0], str.lower) + word[1:]
    if len(word) == 1 or any(map(str.isupper, word[1:])) or tokens(word) < tokens(small):
        return word
    return word if tokens(word) == tokens(small) > 2 else small


def has_small_words(text: str) -> bool:
    """Whether it has words in small letters that would have a capital one in a title."""
    return any(word[0].islower() and word not in LITTLE for word in text.split())


# --- small letters ----------------------------------------------------------------------------------------------------


def begins_small(text: str) -> bool:
    """Whether it is a sentence of several words that is typed without its capital letter."""
    first = FIRST_WORD.match(text)
    if not first or not first[1].islower() or text.startswith(INFINITIVE):
        return False
    return len(text.split()) >= SEVERAL or bool(ENGLISH_I.search(text))


def with_large_i(source: Protected) -> str:
    """With a capital letter for the English I."""
    return outside(source, lambda part: ENGLISH_I.sub("I", part))


def begun(text: str, tokens: Tokens) -> str:
    """With a capital letter at its beginning; but for a word that the vocabulary rather knows without one."""
    first = FIRST_WORD.match(text)
    if first and tokens(letter_by_letter(first[1][0], str.upper) + first[1][1:]) > tokens(first[1]):
        return text
    return capital_first(text)


def capital_first(text: str) -> str:
    """With a capital letter at the beginning."""
    return first_letter(text, str.upper)


def small_first(text: str, source: str) -> str:
    """With a small letter at the beginning, unless the first word is I or an abbreviation, or stands in the source."""
    word = WORD.search(text)
    if not word or word[0].split("'")[0] == "I" or any(map(str.isupper, word[0][1:])):
        return text
    return text if word[0] in WORD.findall(source) else first_letter(text, str.lower)


# --- letters ----------------------------------------------------------------------------------------------------------


def first_letter(text: str, change: Callable[[str], str]) -> str:
    """The first letter changed, unless it is part of something that must come through whole."""
    at = next((n for n, letter in enumerate(text) if letter.isalpha()), None)
    if at is None or any(span.start <= at < span.end for span in spans(text)):
        return text
    return text[:at] + letter_by_letter(text[at], change) + text[at + 1 :]


def outside(source: Protected, change: Callable[[str], str], inside: str | None = None) -> str:
    """The text, changed but for what must come through whole; `inside` may stand in place of that."""
    text, changed, at = source.text, [""], 0
    for span in source.spans:
        changed += (change(text[at : span.start]), text[span.start : span.end] if inside is None else inside)
        at = span.end
    return "".join((*changed, change(text[at:])))


def each_word(source: Protected, change: Callable[[str], str]) -> str:
    """The text with each word changed, but for what must come through whole."""
    return outside(source, lambda part: WORD.sub(lambda word: change(word[0]), part))


def letter_by_letter(text: str, change: Callable[[str], str]) -> str:
    """Each letter changed, but for those that would become two: places stay what they are."""
    return "".join(changed if len(changed := change(letter)) == 1 else letter for letter in text)
