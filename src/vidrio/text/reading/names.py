"""Rare names, which a model has to spell and misspells: they are hidden behind symbols, and so copied. And words that no
model can spell."""

from collections.abc import Iterator, Sequence

from vidrio.text.pattern import pattern, word_set
from vidrio.text.reading.capitals import Tokens
from vidrio.text.reading.protect import Span
from vidrio.text.reading.signs import MARKS_AS_LETTERS

# Words with a capital letter first and a small one last, and neighbours like them: Mary-Ann O'Neill. Letters beyond
# ASCII may be either here; is_name looks at them.
_NAME = r"[^\W\d_a-z](?:[\w-]|['’](?=[A-Z]))*[^\W\d_A-Z]\b"
NAME = pattern(rf"(?<![\w'’]){_NAME}(?: {_NAME})*")
ADDRESS = pattern(r"\b(?:Mrs?|Ms|Dra?|Prof|Sra?|Srta|Dña)\.? ")  # a name follows, though it be a common word
# Who or what it is that has the name that follows; this is translated: President Bill Clinton.
RANKS = word_set(
    "Prime Minister President Chairman Chancellor Governor Senator Ambassador Judge Mayor King Queen Prince Princess "
    "Emperor Pope Bishop Captain Colonel Inspector Professor Doctor Uncle Aunt Lake River Mount "
    "Primer Primera Ministro Ministra Presidente Presidenta Canciller Gobernador Senador Juez Alcalde Rey Reina "
    "Príncipe Princesa Capitán Profesor Profesora Tío Lago Río Avenida Universidad"
)
# Tokens of a word that a model has to spell, and misspells. The first word of a sentence has its capital letter anyway.
RARE, RARE_FIRST = 3, 5
NAMED = "name"
TITLE = 3  # words at least, all with a capital letter
UNSPELLABLE = 100  # what counts as so many: a word with letters that the vocabulary does not hold
WORD = pattern(r"[\w'’-]+")
DRAWN_OUT = pattern(r"([^\W\d_])\1{5}")  # "aaaaaah": no vocabulary has it


def unspellable(sentence: str, taken: Sequence[Span], tokens: Tokens) -> list[Span]:
    """Words that cannot be spelled, with letters that the model does not know or one letter again and again; neighbours
    are one."""
    places: list[Span] = []
    if sentence.isascii() and not DRAWN_OUT.search(sentence):
        return places
    for match in WORD.finditer(sentence.translate(MARKS_AS_LETTERS)):
        start, end = match.span()
        word = sentence[start:end]
        strange = not word.isascii() and fewest(word, tokens) >= UNSPELLABLE
        if (strange or DRAWN_OUT.search(word)) and is_free(start, end, taken):
            if places and sentence[places[-1].end : start] == " ":
                start = places.pop().start
            places.append(Span(start, end, "word"))
    return places


def names(sentence: str, taken: Sequence[Span], tokens: Tokens, rare_first: int) -> Iterator[Span]:
    """Words with a capital letter that are rare: of neighbours with one, all are one name if one of them is rare. The
    first word must be rarer."""
    matches = list(NAME.finditer(sentence))
    firsts = [word[0] for word in sentence.split() if word[0].isalpha()] if matches else []
    if len(firsts) >= TITLE and all(map(str.isupper, firsts)):
        return  # a title, where a capital letter tells nothing
    addressed = {address.end() for address in ADDRESS.finditer(sentence)} if matches else set()
    for match in matches:
        start, end = match.span()
        words = match[0].split()
        first = not any(map(str.isalpha, sentence[:start]))
        if first and fewest(words[0], tokens) < rare_first and not (words[1:] and seldom_small(words[0], tokens)):
            start += len(words.pop(0)) + 1
        while words and (words[0] in RANKS or start + len(words[0]) + 1 in addressed):
            start += len(words.pop(0)) + 1
        known = start not in addressed and all(fewest(word, tokens) < RARE for word in words)
        if words and not known and all(map(is_name, words)) and is_free(start, end, taken):
            yield Span(start, end, NAMED)


def seldom_small(word: str, tokens: Tokens) -> bool:
    """Whether the vocabulary knows a word no better in small letters than with a capital one: Helen, but not After."""
    return tokens(word) == tokens(word.lower()) > 1


def is_name(word: str) -> bool:
    """Whether a word could be one by its letters."""
    return word[0].isupper() and word[-1].islower()


def fewest(word: str, tokens: Tokens) -> int:
    """How many tokens it has, with or without its capital letter, or with the s of a plural (Tuesdays); of words that
    are joined (Spanish-speaking) those of the longest."""
    forms = word, word.lower()
    counts = [*map(tokens, forms)]
    if word.endswith("s") and any(tokens(form[:-1]) == 1 for form in forms):
        counts.append(2)
    if len(joined_words := [part for part in word.split("-") if part]) > 1:
        counts.append(max(fewest(part, tokens) for part in joined_words))
    return min(counts)


def is_free(start: int, end: int, taken: Sequence[Span]) -> bool:
    """Whether no other place reaches into this one."""
    return not any(span.start < end and start < span.end for span in taken)
