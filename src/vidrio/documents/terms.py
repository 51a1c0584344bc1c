"""Translate glossary terms as specified, or keep them unchanged.

The model sees a placeholder instead of each term, and copies it. The placeholder is then replaced with the term's
translation, so the surrounding words may not agree with the term grammatically.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from vidrio.documents.aligned import Aligned, Link
from vidrio.documents.inline import unused_name
from vidrio.documents.markup import Planned, T
from vidrio.errors import DataError
from vidrio.text.protect import spans

LARGE = 2_000  # characters of all terms
Terms = tuple[tuple[str, str], ...]  # each term and its translation


class Hidden(NamedTuple):
    """A text with placeholders, and the term and translation that each placeholder stands for."""

    text: str
    places: tuple[tuple[str, str, str], ...] = ()  # placeholder, term, translation


def read_terms(path: Path | None) -> Terms:
    """Read lines of `term<TAB>translation`. A term without a translation is kept unchanged. # begins a comment."""
    if path is None:
        return ()
    terms = []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8", found=str(error), do="convert it to UTF-8") from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) > 2 or not all(columns):
            do = "write term<TAB>translation, or only a term"
            raise DataError(f"{path}, line {number} is not a term", found=line[:80], do=do)
        terms.append((columns[0], columns[-1]))
    return tuple(terms)


def translations_only(terms: Terms) -> Terms:
    """Return terms that keep the translations unchanged, for the next model in a chain."""
    return tuple((translation, translation) for _, translation in terms)


@lru_cache(4)
def _pattern(terms: Terms) -> tuple[re.Pattern[str], Mapping[str, str]]:
    """Return a pattern that matches any term, longest first. Lower-case terms match regardless of case."""
    longest = sorted(dict(terms), key=len, reverse=True)
    either = "|".join(f"(?i:{re.escape(term)})" if term.islower() else re.escape(term) for term in longest)
    known = {**{term.lower(): target for term, target in terms if term.islower()}, **dict(terms)}
    pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)")
    if len(either) > LARGE:
        re.purge()  # otherwise, `re` would keep the patterns of hundreds of glossaries, of up to several megabytes each
    return pattern, known


def hide(text: str, terms: Terms) -> Hidden:
    """Replace the terms in a text with placeholders, except within addresses and tags."""
    if not terms:
        return Hidden(text)
    pattern, known = _pattern(terms)
    name = unused_name(text, "t", "term")
    kept = (span for span in spans(text) if not pattern.fullmatch(text, span.start, span.end))
    taken = {at for span in kept for at in range(span.start, span.end)}
    places: list[tuple[str, str, str]] = []

    def put(match: re.Match[str]) -> str:
        target = known.get(match[0]) or known.get(match[0].lower())
        if target is None or taken & {match.start(), match.end() - 1}:  # None: the term µm also matches μm
            return match[0]
        places.append((f"{{{name}{len(places)}}}", match[0], target))
        return places[-1][0]

    return Hidden(pattern.sub(put, text), tuple(places))


def reveal(translation: str, hidden: Hidden) -> str:
    """Replace the placeholders in a translation with the terms' translations."""
    for placeholder, _, target in hidden.places:
        translation = translation.replace(placeholder, target)
    return translation


def reveal_aligned(found: Aligned, hidden: Hidden) -> Aligned:
    """Replace the placeholders in an aligned translation, adjusting the positions of its words."""
    if not hidden.places:
        return found
    source, in_source = _replaced(found.source, [(placeholder, term) for placeholder, term, _ in hidden.places])
    text, in_text = _replaced(found.text, [(placeholder, target) for placeholder, _, target in hidden.places])
    links = (Link(in_text(link.start), in_text(link.end), in_source(link.source)) for link in found.links)
    return Aligned(source, text, links)


def _replaced(text: str, instead: Sequence[tuple[str, str]]) -> tuple[str, Callable[[int], int]]:
    """Return the text with its placeholders replaced, and a function that adjusts positions accordingly."""
    moves = [(text.find(old) + len(old), len(new) - len(old)) for old, new in instead if old in text]
    for old, new in instead:
        text = text.replace(old, new)
    return text, lambda place: place + sum(longer for end, longer in moves if end <= place)


def with_terms(plan: Planned[T], terms: Terms) -> Planned[T]:
    """Return a plan in which placeholders replace the terms until rendering."""
    hidden = [hide(text, terms) for text in plan.texts]

    def render(found: Sequence[Aligned]) -> T:
        return plan.render([reveal_aligned(*both) for both in zip(found, hidden, strict=True)])

    return plan._replace(texts=[one.text for one in hidden], render=render)
