"""Transfer the inline markup of a sentence to its translation, placing each tag around the corresponding words.

A translated word goes into the elements that contain its source word: the identical word if there is one, otherwise the
aligned word. Text between two words goes into the elements that contain both words.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache
from itertools import groupby
from typing import NamedTuple

from vidrio.documents.aligned import Aligned
from vidrio.text.words import worded, words

PLACEHOLDER = re.compile(r"(\{\w+\})")

Path = tuple[int, ...]  # the enclosing elements, outermost first


class Element(NamedTuple):
    """The start and end tags of an inline element, as written in the document."""

    start: str
    end: str


class Piece(NamedTuple):
    """Text, or a thing: markup that is copied unchanged, such as an image."""

    path: Path
    text: str  # the placeholder of a thing, or an empty string if it has none
    raw: str = ""  # the markup of a thing


Things = dict[int, list[Piece]]
Order = Sequence[tuple[int, int]]  # sorted pairs: position in the source, index of the translated word


class Inline(NamedTuple):
    """A unit of translation: text with inline elements."""

    pieces: tuple[Piece, ...]
    elements: tuple[Element, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def marked(self) -> bool:
        """Whether the text contains elements or things."""
        return len(self.pieces) > 1 or any(piece.raw or piece.path for piece in self.pieces)


def unused_name(text: str, *names: str) -> str:
    """Return a name for placeholders {t0} {t1} … that the text does not use, preferably one of `names`."""
    used = set(re.findall(rf"\{{({names[0]}\d+_)", text))
    numbered = (f"{names[0]}{number}_" for number in range(len(used) + 1))
    return next((name for name in names if f"{{{name}" not in text), "") or next(n for n in numbered if n not in used)


def carry(source: Inline, found: Aligned) -> list[Piece]:
    """Return the translation as pieces, with the elements and things of the source."""
    if not source.marked:
        return [Piece((), found.text)]
    placed = [*_placed(source, found)]
    if not placed:
        return list(source.pieces)
    with_text = {piece.path for piece in source.pieces if piece.text}

    def fit(one: Path, other: Path, otherwise: Path) -> Path:
        """Return the common prefix of two paths if text is allowed there (in DOCX, only within runs)."""
        same = _common(one, other)
        return same if same in with_text else otherwise

    paths = [*_paths(source, placed, fit)]
    order = sorted((place.source, number) for number, place in enumerate(placed))
    between, after = _things(source, order)
    _complete(paths, between, source, order, {place.piece for place in placed})
    pieces: list[Piece] = []
    at, before = 0, source.pieces[0].path
    written_things: set[int] = set()
    for number, (place, path) in enumerate(zip(placed, paths, strict=True)):
        pieces += _text(fit(before, path, path if number == 0 else before), found.text[at : place.start])
        pieces += between.get(number, ())
        text, piece = found.text[place.start : place.end], source.pieces[place.piece]
        if place.piece < 0 or not piece.raw or piece.text.casefold() != text.casefold():
            pieces += _text(path, text)
        elif place.piece not in written_things:
            written_things.add(place.piece)
            pieces.append(Piece(path, text, piece.raw))
        pieces += after.get(number, ())
        at, before = place.end, path
    pieces += _text(fit(before, source.pieces[-1].path, before), found.text[at:])
    return [*pieces, *between.get(len(placed), ())]


def _text(path: Path, text: str) -> list[Piece]:
    return [Piece(path, text)] if text else []


class _Placed(NamedTuple):
    """A word of the translation, or a part of a word, with its position and piece in the source (−1 if unknown)."""

    start: int
    end: int
    source: int
    piece: int


def _placed(source: Inline, found: Aligned) -> Iterator[_Placed]:
    """Yield all words of the translation. The n-th occurrence of a word or sign is matched with its n-th occurrence in
    the source, if there is one. All other words are matched by the model's alignment."""
    whole = source.text
    piece_of = [number for number, piece in enumerate(source.pieces) for _ in piece.text]
    placeholders = {piece.text for piece in source.pieces if piece.raw and piece.text}
    ends = dict(_words(whole))
    there: dict[str, list[int]] = defaultdict(list)
    for start, end in ends.items():
        there[whole[start:end].casefold()].append(start)
    places = list(_words(found.text))
    often = Counter(found.text[start:end].casefold() for start, end in places)
    passed = Counter[str]()
    links = sorted(found.links)

    @cache  # several words may come from the same source word
    def most_of(at: int) -> int:
        """Return the index of the piece that contains most of the word at this position."""
        pieces = piece_of[at : ends.get(at, at + 1)] if at >= 0 else ()
        return Counter(pieces).most_common(1)[0][0] if pieces else -1

    for start, end in places:
        word = found.text[start:end].casefold()
        same, number = there[word], passed[word]
        passed[word] += 1
        before = bisect_right(links, start, key=lambda link: link.start) - 1
        link = links[before] if before >= 0 and start < links[before].end else None
        if link is not None and link.end > end and found.text[start:end] not in placeholders:
            at = link.source  # the start of a term of several words
        elif number < len(same) and (len(same) == often[word] or not worded(word)):
            at = same[number]
            if whole[at : at + end - start].casefold() == word:  # H<sub>2</sub>O: each part stays in its own piece
                for piece, part in groupby(range(at, at + end - start), piece_of.__getitem__):
                    first, *others = part
                    begin = start + first - at
                    yield _Placed(begin, begin + 1 + len(others), first, piece)
                continue
        else:
            at = link.source if link is not None and worded(word) else -1
        yield _Placed(start, end, at, most_of(at))


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the words in a text. A placeholder is always a separate word, even within a URL, as in
    http://localhost:<code>…</code>."""
    at = 0
    for number, part in enumerate(PLACEHOLDER.split(text)):
        places = [(0, len(part))] if number % 2 else words(part)
        yield from ((at + start, at + end) for start, end in places)
        at += len(part)


def _paths(source: Inline, placed: Sequence[_Placed], fit: Callable[[Path, Path, Path], Path]) -> Iterator[Path]:
    """Yield the elements that enclose each word. For a word without a source, these are the elements that enclose both
    of its neighbours."""
    known = [source.pieces[place.piece].path if place.piece >= 0 else None for place in placed]
    after = source.pieces[-1].path
    following = [after := after if path is None else path for path in reversed(known)]
    before = after
    for path, after in zip(known, reversed(following), strict=True):
        before = fit(before, after, before) if path is None else path
        yield before


def _complete(paths: list[Path], between: Things, source: Inline, order: Order, placed: Set[int]) -> None:
    """Update `paths` and `between` so that no element or thing is lost. `placed` contains the pieces that have words.
    An element without words takes the nearest word that is not alone in its own element. If there is none, the element
    stays empty."""
    words = Counter(paths)
    there = Counter(element for path in paths for element in path)
    at = 0
    for number, piece in enumerate(source.pieces):
        missing = not all(there[element] for element in piece.path)
        if missing and piece.text.strip() and not piece.raw:
            word = _nearest_free(order, at, lambda n: words[paths[n]] > 1 or not paths[n])
            if word is not None:
                words[paths[word]] -= 1
                there.subtract(paths[word])
                paths[word] = piece.path
                words[piece.path] += 1
                there.update(piece.path)
                missing = False
        if (missing and (piece.text or not piece.raw)) or (piece.text and piece.raw and number not in placed):
            between[_next_word(order, at)].append(Piece(piece.path, "", piece.raw))
            there.update(piece.path)
        at += len(piece.text)


def _next_word(order: Order, at: int) -> int:
    """Return the index of the first word whose source word is at or after this position."""
    after = bisect_left(order, (at,))
    return order[after][1] if after < len(order) else len(order)


NEAR = 16  # number of words to try before and after a position


def _nearest_free(order: Order, at: int, is_free: Callable[[int], bool]) -> int | None:
    """Return the index of the word nearest to a source position for which `is_free` is true, or None."""
    middle = bisect_left(order, (at,))
    near = [one for one in order[max(0, middle - NEAR) : middle + NEAR] if is_free(one[1])]
    return min(near, key=lambda one: (one[0] < 0, abs(one[0] - at)))[1] if near else None


def _things(source: Inline, order: Order) -> tuple[Things, Things]:
    """Attach each thing that has no placeholder to a word. Return the things before each word, and those after it. A
    thing that is adjacent only to the text before it, such as a footnote reference, goes after its word."""
    before: Things = defaultdict(list)
    after: Things = defaultdict(list)
    text, start = source.text, 0
    for piece in source.pieces:
        if piece.raw and not piece.text:
            last, number = order[bisect_left(order, (start,)) - 1]  # the last word from an earlier source position
            touches = text[max(0, start - 1) : start].strip() and not text[start : start + 1].strip()
            if touches and 0 <= last < start:
                after[number].append(piece)
            else:
                before[_next_word(order, start)].append(piece)
        start += len(piece.text)
    return before, after


def _common(one: Path, other: Path) -> Path:
    """Return the common prefix of two paths. An element always has the same ancestors, so positions can be compared."""
    return tuple(a for a, b in zip(one, other, strict=False) if a == b)


def written(pieces: Sequence[Piece], elements: Sequence[Element], escape: Callable[[str], str]) -> str:
    """Serialise pieces with the tags of their elements."""
    out: list[str] = []
    opened: Path = ()
    for piece in (*pieces, Piece((), "")):
        same = len(_common(opened, piece.path))
        out += (elements[number].end for number in reversed(opened[same:]))
        out += (elements[number].start for number in piece.path[same:])
        out.append(piece.raw or escape(piece.text))
        opened = piece.path
    return "".join(out)
