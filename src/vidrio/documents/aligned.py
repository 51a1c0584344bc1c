"""A translated text with what its words came from, as marked-up text needs it."""

from collections.abc import Sequence
from typing import NamedTuple

from vidrio.documents.polish import as_source
from vidrio.translate.translation import Translation
from vidrio.translate.translator import Translator


class Link(NamedTuple):
    """A word of the translation, and where the word that it came from begins in the source."""

    start: int
    end: int
    source: int


class Aligned(NamedTuple):
    source: str
    text: str
    links: tuple[Link, ...] = ()


class Ask(NamedTuple):
    """A text to translate, and whether its words have to be aligned."""

    text: str
    aligned: bool = False


def answer(translation: Translation, ask: Ask) -> Aligned:
    """A translation that looks as its source does, with its alignment if that was asked for."""
    text = as_source(ask.text, translation.text)
    if not ask.aligned:
        return Aligned(ask.text, text)
    links = (Link(link.target.start, link.target.end, link.source.start) for link in translation.alignment)
    return Aligned(ask.text, text, tuple(link for link in links if link.end <= len(text)))


def answers(translator: Translator, asks: Sequence[Ask]) -> list[Aligned]:
    """The texts of a document, translated by one model."""
    return list(map(answer, translator.translate([ask.text for ask in asks]), asks))
