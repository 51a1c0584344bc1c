"""How the letters of a sentence are read. Models learn from sentences that begin with a capital letter and end with a
full stop, and know those far better than what people also type: CAPITALS, Titles Of Things, and small letters only.
Such a text is read as a sentence, letter for letter, and its translation is written as the text was.

Which words keep a capital letter is told by the vocabulary: `tokens` counts how many tokens a word has. A word that has
fewer with a capital letter (London) is a name; one that is a single token without it, and more with it, is none.
"""

import re
from collections.abc import Callable
from enum import Enum

from vidrio.text.pattern import pattern, word_set
from vidrio.text.reading.protect import Protected, protected, spans
from vidrio.text.reading.questions import MAYBE, SURELY, as_question

Tokens = Callable[[str], int]


class Form(Enum):
    """What a sentence looks like, and how it is read."""

    PLAIN = "as it stands"
    CAPITALS = "capitals as small letters"
    TITLE = "a title as a sentence"
    SMALL = "small letters as a sentence"
    ENTRY = "a capital letter as a small one"
    QUESTION = "a text without its mark as a question"


WORD = pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
I_ALONE = pattern(r"(?<![\w.'’-])i(?!\w|\.\w|[)-])")  # English writes it with a capital; Spanish has no such word
FEWEST = 4  # letters; what is shorter (USA, PDF) is rather an abbreviation
LOUD = pattern(r"(?<![\w'’./-])[A-ZÁÉÍÓÚÜÑ]{2,}(?![\w'’/-])")
SEVERAL = 3  # words; fewer may be an entry of a dictionary, which models know as it is
INFINITIVE = "to "  # such an entry, too, however long: to fall in love
OPENING = "\"'“‘«([¿¡"  # before the first word
FIRST_WORD = pattern(rf"[{re.escape(OPENING)}]*([^\W\d_]+(?:['’][^\W\d_]+)*)(?=[\s,;:!?…]|\.?\Z|\.\s)")
BLANK_AFTER = pattern(r"\A([\"“«(\[]*[¿¡]) +")


# In a title these may be small …
LITTLE = word_set(
    "a an and as at but by for from in into nor of on or the to with "
    "al con de del e el en la las los o para por que sin su sus u un una y"
)
# … and where one of these is not, it is a title. The Spanish ones are in names, too: Robert De Niro, Ortega Y Gasset.
SIGNS = word_set(
    "an and are as at be but by do for from her his how in into is it my nor not of on or our that the this to was "
    "we what when where who why with you your"
)
EMPHASIS = word_set("not no you all any muy")  # short, and shouted more often than they abbreviate something
SHORT = 2  # tokens; with more a word may well be a name


def read(source: Protected, tokens: Tokens, *, forms: bool = True, otherwise: bool = False) -> tuple[str, Form]:
    """The text as it is read, and how it looked. Places stay what they are. What has an `other_form` may be read
    `otherwise`, in that. Without `forms` only capitals are read as small letters."""
    text = source.text
    if not forms:
        return (lowered(source), Form.CAPITALS) if shouted(source) else (text, Form.PLAIN)
    other = other_form(source) if otherwise else Form.PLAIN
    if other is Form.ENTRY:
        return as_entry(text, tokens), Form.CAPITALS if shouted(source) else Form.ENTRY
    if other is Form.QUESTION or (text[-1:].isalnum() and SURELY.match(text) and has_small_words(text)):
        return capital_first(as_question(with_large_i(source))), Form.QUESTION
    if shouted(source):
        quieter = protected(lowered(source))
        return each_word(quieter, lambda word: named(word, tokens)), Form.CAPITALS
    if begins_small(text, 1 if otherwise else SEVERAL):
        return begun(with_large_i(source), tokens), Form.SMALL
    if (title := is_title(source, tokens)) is not None:
        names = title == "with names"
        small = each_word(source, lambda word: untitled(word, tokens, names=names))
        return begun(small, tokens), Form.TITLE
    if LOUD.search(text):
        softer = outside(source, lambda part: LOUD.sub(lambda word: quiet(word[0], tokens), part))
        return capital_first(softer) if softer[:1] != text[:1] else softer, Form.PLAIN
    return text, Form.PLAIN


def written(translation: str, text: str, form: Form, closed: str = "") -> str:
    """The translation of what was read, as the text was written. `closed`: the mark that was put after the text."""
    translation = unclosed(translation, closed)
    if form is Form.CAPITALS:
        return raised(translation)
    if form in (Form.ENTRY, Form.TITLE):
        return capital_first(translation)
    if form is Form.SMALL or (form is Form.QUESTION and text[:1].islower()):
        return small_first(translation, text)
    return translation


# --- capitals ---------------------------------------------------------------------------------------------------------


def shouted(source: Protected) -> bool:
    """Whether all letters are capitals, but for what must come through whole (an address, a placeholder)."""
    if not source.spans and any(map(str.islower, source.text)):  # true of nearly every text, and quick
        return False
    letters = [letter for letter in outside(source, lambda part: part, "") if letter.isalpha()]
    return len(letters) >= FEWEST and all(map(str.isupper, letters))


def lowered(source: Protected) -> str:
    """In small letters, but for the first one."""
    text = source.text
    small = outside(source, lambda part: I_ALONE.sub("I", letter_by_letter(part, str.lower)))
    for n, letter in enumerate(small):
        if letter.isalpha():
            return small[:n] + text[n] + small[n + 1 :]
    return small


def raised(text: str) -> str:
    """In capital letters."""
    return outside(protected(text), lambda part: letter_by_letter(part, str.upper))


def named(word: str, tokens: Tokens) -> str:
    """A word in small letters; with a capital one, if that is how the vocabulary knows it."""
    name = letter_by_letter(word[0], str.upper) + word[1:]
    return name if tokens(name) < tokens(word) else word


def quiet(word: str, tokens: Tokens) -> str:
    """A word in capitals among others that are not: in small letters, if that is a common word, and no abbreviation."""
    small = word.lower()
    common = tokens(small) == 1 < tokens(word) if len(word) >= FEWEST else small in EMPHASIS
    return small if common else word


# --- titles -----------------------------------------------------------------------------------------------------------


def is_title(source: Protected, tokens: Tokens) -> str | None:
    """Whether its words have capital letters as a title: "surely", or "with names"; None if all may be names."""
    if has_small_words(source.text):
        return None  # true of nearly every text, and quick
    words = WORD.findall(outside(source, lambda part: part, " "))
    if len(words) < 2 or any(word[0].islower() and word not in LITTLE for word in words):
        return None
    content = [word for word in words if word.lower() not in LITTLE | SIGNS]
    common = sum(tokens(word.lower()) == 1 < tokens(word) for word in content if not word.isupper())
    capital = {word.lower() for word in words[1:] if word[0].isupper()} & (LITTLE | SIGNS)
    if common and (2 * common >= len(content) or capital) and (len(words) >= SEVERAL or common == len(content)):
        return "surely"
    return "with names" if capital & SIGNS or (len(words) >= SEVERAL and 3 * common >= len(content) >= 1) else None


def untitled(word: str, tokens: Tokens, *, names: bool) -> str:
    """A word of a title as it stands within a sentence. `names`: what may be a name keeps its capital letter."""
    small = letter_by_letter(word[0], str.lower) + word[1:]
    if len(word) == 1 or any(map(str.isupper, word[1:])) or tokens(word) < tokens(small):
        return word
    return word if names and tokens(word) == tokens(small) > SHORT else small


# --- small letters ----------------------------------------------------------------------------------------------------


def begins_small(text: str, several: int) -> bool:
    """Whether it is a sentence of `several` words that is typed without its capital letter."""
    first = FIRST_WORD.match(text)
    if not first or not first[1].islower() or text.startswith(INFINITIVE):
        return False
    return len(text.split()) >= several or bool(I_ALONE.search(text))


def a_few_small(text: str) -> bool:
    """Whether it is a word or two in small letters: the entry of a dictionary, or a sentence."""
    return text[:1].islower() and not text.startswith(INFINITIVE) and len(text.split()) < SEVERAL


def has_small_words(text: str) -> bool:
    """Whether it has words in small letters that would have a capital one in a title."""
    return any(word[0].islower() and word not in LITTLE for word in text.split())


def came_back(text: str, translation: str) -> bool:
    """Whether one of a few words in small letters stands in the translation as it was."""
    if not a_few_small(text):
        return False
    there = WORD.findall(translation.lower())
    return any(word in there for word in WORD.findall(text) if len(word) >= FEWEST)


def other_form(source: Protected) -> Form:
    """How a text can be read otherwise, too; PLAIN if it cannot. What has no mark at its end may be a QUESTION. A word
    or two in SMALL letters may be a sentence; with a capital one and nothing else (a heading, a menu, a name, a label:
    Name & Address:) an ENTRY of a dictionary."""
    text = source.text
    if text[-1:].isalnum() and MAYBE.match(text) and has_small_words(text):
        return Form.PLAIN if SURELY.match(text) else Form.QUESTION
    if a_few_small(text):
        return Form.SMALL
    if not (text[:1].isupper() and (text[-1].isalpha() or text[-1] == ":")):
        return Form.PLAIN
    words = [word for word in text.removesuffix(":").split() if word != "&"]
    is_usual = len(words) < SEVERAL and len(text) >= FEWEST and all(map(str.isalpha, words))
    large = is_usual and (all(word.istitle() or word.islower() for word in words) or shouted(source))
    return Form.ENTRY if large else Form.PLAIN


def as_entry(text: str, tokens: Tokens) -> str:
    """In small letters, as in a dictionary, but for words that the vocabulary rather knows with a capital one."""
    return WORD.sub(lambda word: named(letter_by_letter(word[0], str.lower), tokens), text)


def is_rather_a_name(text: str, translation: str, tokens: Tokens) -> bool:
    """Whether it came back as it was, and the vocabulary knows its words no better in small letters."""
    return translation == text and all(tokens(word) <= tokens(word.lower()) for word in text.split())


def with_large_i(source: Protected) -> str:
    """With a capital letter for the English I."""
    return outside(source, lambda part: I_ALONE.sub("I", part))


def begun(text: str, tokens: Tokens) -> str:
    """With a capital letter at its beginning; but for a word that the vocabulary rather knows without one."""
    first = FIRST_WORD.match(text)
    if first and tokens(letter_by_letter(first[1][0], str.upper) + first[1][1:]) > tokens(first[1]):
        return text
    return capital_first(text)


def put_after(translation: str, closed: str) -> list[int]:
    """Where a translation has what the text has not: the mark at its end, and the one that opens a question."""
    if not (closed and translation.endswith(closed)) or translation.endswith(".."):
        return []
    opened = [at for at, letter in enumerate(translation) if letter == "¿"] if closed == "?" else []
    return [*opened, len(translation) - 1]


def unclosed(translation: str, closed: str) -> str:
    """The translation without that."""
    places = put_after(translation, closed)
    return "".join(letter for at, letter in enumerate(translation) if at not in places) if places else translation


def capital_first(text: str) -> str:
    """With a capital letter at the beginning."""
    return first_letter(text, str.upper)


def begins_large(text: str) -> bool:
    """Whether several words begin with a capital letter. One alone may have it for itself: Monday is lunes."""
    first = FIRST_WORD.match(text)
    return first is not None and first[1][0].isupper() and len(text.split()) > 1


def begun_as(source: str, translation: str) -> str:
    """With a capital letter at its beginning, unless the first word stands in the source; and no blank after ¿."""
    translation = BLANK_AFTER.sub(r"\1", translation)
    first = FIRST_WORD.match(translation)
    is_small = first is not None and first[1][0].islower() and first[1] not in WORD.findall(source)
    return capital_first(translation) if is_small else translation


def small_first(text: str, source: str) -> str:
    """With a small letter at the beginning, unless the first word is I or an abbreviation, or stands in the source."""
    word = WORD.search(text)
    if (
        not word
        or word[0].split("'")[0] == "I"
        or any(map(str.isupper, word[0][1:]))
        or word[0] in WORD.findall(source)
    ):
        return text
    return first_letter(text, str.lower)


def first_letter(text: str, change: Callable[[str], str]) -> str:
    """The first letter changed, unless it is part of something that must come through whole."""
    for n, letter in enumerate(text):
        if letter.isalpha():
            inside = any(span.start <= n < span.end for span in spans(text))
            return text if inside else text[:n] + letter_by_letter(letter, change) + text[n + 1 :]
    return text


# --- letters ----------------------------------------------------------------------------------------------------------


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
