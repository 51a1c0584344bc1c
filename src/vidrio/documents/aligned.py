"""Align a translation with its source, and match the case and final punctuation of the source."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vidrio.hypothesis import Options
from vidrio.translate.translation import Translation
from vidrio.translate.translator import Translator

MARKS = ".!?…。！？"


class Link(NamedTuple):
    """A word of the translation and the position of its source word."""

    start: int
    end: int
    source: int


class Aligned(NamedTuple):
    source: str
    text: str
    links: Iterable[Link] = ()  # can be iterated only once


def aligned(source: str, translation: Translation) -> Aligned:
    text = as_source(source, translation.text)
    return Aligned(source, text, _links(translation, len(text)))


def aligned_by(translator: Translator, texts: Sequence[str], options: Options | None = None) -> list[Aligned]:
    """Translate the texts of a document with one model."""
    return list(map(aligned, texts, translator.translate(texts, options)))


def _links(translation: Translation, length: int) -> Iterator[Link]:
    """Yield the links lazily, so that no alignment is computed for texts without markup."""
    for link in translation.alignment:
        if link.target.end <= length:
            yield Link(link.target.start, link.target.end, link.source.start)


def as_source(source: str, translation: str) -> str:
    """Match the case and final punctuation of a translation to the source's. LibreTranslate's clients rely on both."""
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
