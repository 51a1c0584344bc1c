"""Terms with a given translation, or that are kept.

The model never reads a term. It reads a placeholder, which is copied and cannot be lost, and the term's translation
replaces it. The words around it may not be inflected to fit.
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

Terms = tuple[tuple[str, str], ...]  # each with its placeholder


class Hidden(NamedTuple):
    """A text with placeholders, and what each represents in the source and in the translation."""

    text: str
    places: tuple[tuple[str, str, str], ...] = ()  # placeholder, term, translation


def read_terms(path: Path | None) -> Terms:
    """A file with lines of `term<TAB>translation`. A term alone is kept. # begins a comment."""
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
            do = "write term<TAB>translation, or a term alone"
            raise DataError(f"{path}, line {number} is not a term", found=line[:80], do=do)
        terms.append((columns[0], columns[-1]))
    return tuple(terms)


@lru_cache(64)
def _pattern(terms: Terms) -> tuple[re.Pattern[str], Mapping[str, str]]:
    """A pattern for any of the terms, longest first. A term in lower case also matches with capitals."""
    longest = sorted(dict(terms), key=len, reverse=True)
    either = "|".join(f"(?i:{re.escape(term)})" if term.islower() else re.escape(term) for term in longest)
    known = {**{term.lower(): target for term, target in terms if term.islower()}, **dict(terms)}
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)"), known


def hide(text: str, terms: Terms) -> Hidden:
    """The text with placeholders for its terms, except in addresses and tags."""
    if not terms:
        return Hidden(text)
    pattern, known = _pattern(terms)
    name = unused_name(text, "t", "term")
    kept = (span for span in spans(text) if not pattern.fullmatch(text, span.start, span.end))
    taken = {at for span in kept for at in range(span.start, span.end)}
    places: list[tuple[str, str, str]] = []

    def put(match: re.Match[str]) -> str:
        if taken & {match.start(), match.end() - 1}:
            return match[0]
        places.append((f"{{{name}{len(places)}}}", match[0], known.get(match[0]) or known[match[0].lower()]))
        return places[-1][0]

    return Hidden(pattern.sub(put, text), tuple(places))


def reveal(translation: str, hidden: Hidden) -> str:
    """The translation with the terms' translations."""
    for placeholder, _, target in hidden.places:
        translation = translation.replace(placeholder, target)
    return translation


def reveal_aligned(found: Aligned, hidden: Hidden) -> Aligned:
    """The same, with the positions of its words adjusted."""
    if not hidden.places:
        return found
    source, in_source = _replaced(found.source, [(placeholder, term) for placeholder, term, _ in hidden.places])
    text, in_text = _replaced(found.text, [(placeholder, target) for placeholder, _, target in hidden.places])
    links = (Link(in_text(link.start), in_text(link.end), in_source(link.source)) for link in found.links)
    return Aligned(source, text, links)


def _replaced(text: str, instead: Sequence[tuple[str, str]]) -> tuple[str, Callable[[int], int]]:
    """The text with its placeholders replaced, and a function that adjusts positions."""
    moves = [(text.find(old) + len(old), len(new) - len(old)) for old, new in instead if old in text]
    for old, new in instead:
        text = text.replace(old, new)
    return text, lambda place: place + sum(longer for end, longer in moves if end <= place)


def with_terms(plan: Planned[T], terms: Terms) -> Planned[T]:
    """A document whose texts have placeholders for the terms."""
    hidden = [hide(text, terms) for text in plan.texts]

    def render(found: Sequence[Aligned]) -> T:
        return plan.render([reveal_aligned(*both) for both in zip(found, hidden, strict=True)])

    return plan._replace(texts=[one.text for one in hidden], render=render)
