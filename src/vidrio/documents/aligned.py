"""A translated text with what its words came from, as marked-up text needs it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from vidrio.translate.translation import Translation


class Link(NamedTuple):
    """A word of the translation, and where the word that it came from begins in the source."""

    start: int
    end: int
    source: int


class Aligned(NamedTuple):
    source: str
    text: str
    links: tuple[Link, ...] = ()


# What translates the texts of a document. Whoever calls it may be anywhere: a server gathers the texts of many.
TranslateTexts = Callable[[Sequence[str]], list[Aligned]]


def aligned(translation: Translation) -> Aligned:
    """A translation whose alignment is known."""
    links = (Link(link.target.start, link.target.end, link.source.start) for link in translation.alignment)
    return Aligned(translation.source, translation.text, tuple(links))
