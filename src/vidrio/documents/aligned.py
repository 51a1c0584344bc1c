"""A translation for a document: its case and final mark are those of the source, and its words are aligned."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vidrio.translate.translation import Translation
from vidrio.translate.translator import Translator

MARKS = ".!?…。！？"


class Link(NamedTuple):
    """A word of the translation, and the position in the source of the word that it came from."""

    start: int
    end: int
    source: int


class Aligned(NamedTuple):
    source: str
    text: str
    links: Iterable[Link] = ()  # read at most once


def aligned(source: str, translation: Translation) -> Aligned:
    text = as_source(source, translation.text)
    return Aligned(source, text, _links(translation, len(text)))


def aligned_by(translator: Translator, texts: Sequence[str]) -> list[Aligned]:
    """The texts of a document, translated by one model."""
    return list(map(aligned, texts, translator.translate(texts)))


def _links(translation: Translation, length: int) -> Iterator[Link]:
    """A generator, so that texts without markup are never aligned."""
    for link in translation.alignment:
        if link.target.end <= length:
            yield Link(link.target.start, link.target.end, link.source.start)


def as_source(source: str, translation: str) -> str:
    """The translation with the source's final mark, or without one, and in lower case if the source is.
    LibreTranslate's clients rely on it."""
    text, found = source.rstrip(), translation.rstrip()
    rest = translation[len(found) :]
    if not text or not found:
        return translation
    if text[-1] not in MARKS:
        if found.endswith(".") and not found.endswith("..") and text[-1].isalnum():
            found = found[:-1]
    elif text[-1] in ".…" and found[-1].isalnum():
        found += text[-1]
    if text.islower() and found[:1].isupper() and not found[1:2].isupper():
        found = found[0].lower() + found[1:]
    elif text.isupper() and not found.isupper() and sum(map(str.isalpha, text)) > 1 and " " in text:
        found = found.upper()
    return found + rest
