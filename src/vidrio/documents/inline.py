"""A sentence with marks in it → its translation with the same marks: each lands on the words that it belongs to.

A translated word belongs to the elements around the word that it came from; that is the alignment's to say, or the
word's own if it stands in both. What stands between words belongs to what both neighbours have in common.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from vidrio.documents.aligned import Aligned
from vidrio.text.words import worded, words

PLACEHOLDER = re.compile(r"\{\w+\}")
ID = re.compile(r"""\s(?:xml:)?id\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)

Path = tuple[int, ...]  # the elements around something, from outside in


class Element(NamedTuple):
    """An inline element, as it is written."""

    start: str
    end: str


class Piece(NamedTuple):
    """Some text, or a thing between words: kept as it is, with a placeholder in the text or without."""

    path: Path
    text: str  # of a thing: its placeholder, or nothing
    raw: str = ""  # of a thing


Things = dict[int, list[Piece]]


class Inline(NamedTuple):
    """What is translated as a whole."""

    pieces: tuple[Piece, ...]
    elements: tuple[Element, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def marked(self) -> bool:
        """Whether there is anything but text."""
        return len(self.pieces) > 1 or any(piece.raw or piece.path for piece in self.pieces)


def carry(source: Inline, found: Aligned) -> list[Piece]:
    """The translation in pieces."""
    if not source.marked:
        return [Piece((), found.text)]
    placed = [*_placed(source, found)]
    if not placed:
        return list(source.pieces)
    with_text = {piece.path for piece in source.pieces if piece.text}

    def fit(one: Path, other: Path, otherwise: Path) -> Path:
        """What two paths have in common, if text may stand there (DOCX has none between runs)."""
        same = _common(one, other)
        return same if same in with_text else otherwise

    paths = [*_paths(source, placed, fit)]
    between, after = _things(source, placed)
    _complete(paths, between, source, placed)
    pieces: list[Piece] = []
    at, before = 0, source.pieces[0].path
    written_things: set[int] = set()

    def put(piece: Piece) -> None:
        if piece.text or piece.raw:
            pieces.append(piece)

    for number, (place, path) in enumerate(zip(placed, paths, strict=True)):
        put(Piece(fit(before, path, path if number == 0 else before), found.text[at : place.start]))
        pieces += between.get(number, ())
        text, piece = found.text[place.start : place.end], source.pieces[place.piece]
        is_thing = place.piece >= 0 and bool(piece.raw) and piece.text.casefold() == text.casefold()
        if not is_thing:
            put(Piece(path, text))
        elif place.piece not in written_things:
            written_things.add(place.piece)
            put(Piece(path, text, piece.raw))
        pieces += after.get(number, ())
        at, before = place.end, path
    put(Piece(fit(before, source.pieces[-1].path, before), found.text[at:]))
    return [*pieces, *between.get(len(placed), ())]


class _Placed(NamedTuple):
    """A word of the translation, or a part of one, and the place in the source and the piece that it came from; −1:
    unknown."""

    start: int
    end: int
    source: int
    piece: int


def _placed(source: Inline, found: Aligned) -> Iterator[_Placed]:
    """Every word of the translation. A word, or a sign, that is the n-th of its kind in both came from there."""
    whole = source.text
    piece_of = [number for number, piece in enumerate(source.pieces) for _ in piece.text]
    there: dict[str, list[int]] = defaultdict(list)
    placeholders = {piece.text for piece in source.pieces if piece.raw and piece.text}
    source_ends: dict[int, int] = {}
    piece_at: dict[int, int] = {}
    for start, end in _words(whole, placeholders):
        source_ends[start] = end
        there[whole[start:end].casefold()].append(start)
    places = list(_words(found.text, placeholders))
    often = Counter(found.text[start:end].casefold() for start, end in places)
    passed = Counter[str]()
    links = sorted(found.links)
    begins = [link.start for link in links]
    for start, end in places:
        word = found.text[start:end].casefold()
        same, number = there.get(word, []), passed[word]
        passed[word] += 1
        before = bisect_right(begins, start) - 1
        link = links[before] if before >= 0 and start < links[before].end else None
        if (
            link is not None and link.end > end and not (same and found.text[start:end] in placeholders)
        ):  # of a term that has several words
            at = link.source
        elif number < len(same) and (len(same) == often[word] or not worded(word)):
            at = same[number]
            if whole[at : at + end - start].casefold() == word:  # H<sub>2</sub>O: each part in its own piece
                for part in _parts(piece_of[at : at + end - start]):
                    yield _Placed(start + part[0], start + part[1], at + part[0], piece_of[at + part[0]])
                continue
        else:
            at = link.source if link is not None and worded(word) else -1
        if at not in piece_at:  # most of the word; many words may have come from one
            pieces = piece_of[at : source_ends.get(at, at + 1)] if at >= 0 else []
            piece_at[at] = Counter(pieces).most_common(1)[0][0] if pieces else -1
        yield _Placed(start, end, at, piece_at[at])


def _words(text: str, placeholders: Set[str]) -> Iterator[tuple[int, int]]:
    """The words of a text. A placeholder is one by itself, even within an address: http://localhost:<code>…</code>."""
    places = (match.span() for match in PLACEHOLDER.finditer(text) if match[0] in placeholders)
    begin, end = next(places, (len(text), len(text)))
    after = 0
    for first, last in words(text):
        while begin < last:
            if max(first, after) < begin:
                yield max(first, after), begin
            yield begin, end
            after = end
            begin, end = next(places, (len(text), len(text)))
        if max(first, after) < last:
            yield max(first, after), last


def _parts(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where equal numbers follow each other: first place, and the one after the last."""
    edges = [0, *(n for n in range(1, len(numbers)) if numbers[n] != numbers[n - 1]), len(numbers)]
    return pairwise(edges)


def _paths(source: Inline, placed: Sequence[_Placed], fit: Callable[[Path, Path, Path], Path]) -> Iterator[Path]:
    """The elements around each word; those of a word that came from nowhere are what its neighbours have in common."""
    known = [source.pieces[place.piece].path if place.piece >= 0 else None for place in placed]
    following: list[Path] = []
    after = source.pieces[-1].path
    for path in reversed(known):
        following.append(after)
        after = after if path is None else path
    before = after if known[0] is None else known[0]
    for path, after in zip(known, reversed(following), strict=True):
        before = fit(before, after, before) if path is None else path
        yield before


def _complete(paths: list[Path], between: Things, source: Inline, placed: Sequence[_Placed]) -> None:
    """Changes `paths` and `between` so that every element is somewhere. One whose words all went elsewhere takes the
    nearest word that is not the only one of its own element; where there is none, the element is empty."""
    words = Counter(paths)
    there = Counter(element for path in paths for element in path)
    order = sorted((place.source, number) for number, place in enumerate(placed))
    things = {place.piece for place in placed if place.piece >= 0}
    at = 0
    for number, piece in enumerate(source.pieces):
        missing = any(not there[element] for element in piece.path)
        is_lost_thing = bool(piece.raw and piece.text) and number not in things
        if missing and piece.text.strip() and not piece.raw:
            word = _nearest_free(order, at, lambda n: words[paths[n]] > 1 or not paths[n])
            if word is not None:
                words[paths[word]] -= 1
                there.subtract(paths[word])
                paths[word] = piece.path
                words[piece.path] += 1
                there.update(piece.path)
                missing = False
        if (missing and not (piece.raw and not piece.text)) or is_lost_thing:
            after = bisect_left(order, (at,))
            kept = Piece(piece.path, "", piece.raw)
            between[order[after][1] if after < len(order) else len(placed)].append(kept)
            there.update(piece.path)
        at += len(piece.text)


NEAR = 16  # words before and after a place that are tried


def _nearest_free(order: Sequence[tuple[int, int]], at: int, is_free: Callable[[int], bool]) -> int | None:
    """The number of the word that came from nearest to a place of the source, of those that are free."""
    middle = bisect_left(order, (at,))
    near = [one for one in order[max(0, middle - NEAR) : middle + NEAR] if is_free(one[1])]
    return min(near, key=lambda one: (one[0] < 0, abs(one[0] - at)))[1] if near else None


def _things(source: Inline, placed: Sequence[_Placed]) -> tuple[Things, Things]:
    """Things without a placeholder, by the number of the word that they stand before, and of the word that they stand
    after. One that touches only what precedes it, as the mark of a note does, stays with that."""
    before: Things = defaultdict(list)
    after: Things = defaultdict(list)
    order = sorted((place.source, number) for number, place in enumerate(placed))
    text, start = source.text, 0
    for piece in source.pieces:
        if piece.raw and not piece.text:
            next_word = bisect_left(order, (start,))
            touches = text[max(0, start - 1) : start].strip() and not text[start : start + 1].strip()
            if touches and next_word > 0 and order[next_word - 1][0] >= 0:
                after[order[next_word - 1][1]].append(piece)
            else:
                before[order[next_word][1] if next_word < len(order) else len(placed)].append(piece)
        start += len(piece.text)
    return before, after


def _common(one: Path, other: Path) -> Path:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[:same]


def written(pieces: Sequence[Piece], elements: Sequence[Element], escape: Callable[[str], str]) -> str:
    """Pieces with their elements around them. An element that is begun again has no second `id`."""
    out: list[str] = []
    opened: Path = ()
    begun: set[int] = set()
    for piece in (*pieces, Piece((), "")):
        same = len(_common(opened, piece.path))
        out += (elements[number].end for number in reversed(opened[same:]))
        for number in piece.path[same:]:
            start = elements[number].start
            out.append(ID.sub("", start) if number in begun else start)
            begun.add(number)
        out.append(piece.raw or escape(piece.text))
        opened = piece.path
    return "".join(out)
