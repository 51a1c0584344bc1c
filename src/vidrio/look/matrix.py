"""Vectors and matrices as plain text.

What does not fit is not cut off silently: it is wrapped into blocks of columns, or left out, with its count and range.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vidrio.glass.maths import Array
from vidrio.look.writing import (
    NO_BREAK,
    PRECISION,
    WIDTH,
    at_point,
    cut,
    number,
    right,
    shade,
    shape,
    side_by_side,
    text_width,
    value_range,
    wrap,
)
from vidrio.search import largest

LIMIT = 12  # rows or columns drawn before the rest is left out
LONGEST_TOKEN = 16  # columns on the screen
TOP = 10  # words shown of a vocabulary


class Numbers(NamedTuple):
    """A vector or matrix with the tokens of its rows and columns (None: bare places; empty: no heads at all)."""

    array: Array
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    limit: tuple[int, int] = (LIMIT, LIMIT)  # rows and columns drawn
    shares: bool = False  # between 0 and 1, each row with the sum 1: a small bar stands beside each


def matrix(numbers: Numbers, precision: int = PRECISION, width: int = WIDTH) -> str:
    """A matrix with the place (and token) of every row and column, the decimal points of a column under each other; a
    vector as one row.

    More than `limit` rows or columns are left out from the middle, and their number and range given. Columns within the
    limit that do not fit into `width` come in a block below.
    """
    array = np.asarray(numbers.array)
    if array.ndim == 0:
        return number(array.item(), precision)
    if array.ndim == 1:
        array, numbers = array[None], numbers._replace(rows=())
    if 0 in array.shape:
        return f"(nothing: {shape(array)})"
    rows, columns = map(shown, array.shape, numbers.limit)
    whole = array.dtype.kind in "iub" or bool(np.all(np.isfinite(array)) and np.all(array == np.round(array)))

    def cell(value: Any) -> str:
        return str(int(value)) if whole and abs(value) < 1e6 else number(value, precision)

    drawn = {c: _column(array, c, rows, numbers, cell) for c in columns}
    heads = [""] * (len(drawn[columns[0]]) - len(rows)) + _row_heads(numbers.rows, rows)
    blocks = side_by_side(heads, [drawn[c] for c in columns], width)
    return "\n".join(["\n\n".join(blocks), *_left_out(array, rows, columns, precision)])


def shown(length: int, limit: int) -> list[int | None]:
    """The places to show; None stands for those left out: the first ones, and the last."""
    if length <= limit:
        return list(range(length))
    return [*range(limit - 1), None, length - 1]


def _row_heads(tokens: Sequence[str] | None, rows: Sequence[int | None]) -> list[str]:
    """The places of the rows, with tokens behind."""
    if tokens is not None and not tokens:
        return [""] * len(rows)
    places = ["…" if r is None else str(r) for r in rows]
    digits = max(map(len, places))
    named = ["" if r is None or not tokens else f" {cut(tokens[r], LONGEST_TOKEN)}" for r in rows]
    return [right(place, digits) + token for place, token in zip(places, named, strict=True)]


def _column(
    array: np.ndarray, c: int | None, rows: Sequence[int | None], numbers: Numbers, cell: Callable[[Any], str]
) -> list[str]:
    """A column drawn, its heads first: the place, and the token where it stands for one."""
    tokens = numbers.columns
    heads, cells = ["…", ""], ["…"] * len(rows)
    if c is not None:
        heads = [str(c), cut(tokens[c], LONGEST_TOKEN) if tokens else ""]
        cells = at_point(["…" if r is None else cell(array[r, c]) for r in rows])
        if numbers.shares:
            marks = [" " if r is None else shade(float(array[r, c])) for r in rows]
            cells = [f"{text} {mark}" for text, mark in zip(cells, marks, strict=True)]
    texts = [*heads[: 1 if tokens is None else 2 * bool(tokens)], *cells]
    width = max(map(text_width, texts))
    return [right(text, width) for text in texts]


def _left_out(
    array: np.ndarray, rows: Sequence[int | None], columns: Sequence[int | None], precision: int
) -> Iterator[str]:
    kept = [[place for place in places if place is not None] for places in (rows, columns)]
    parts = []
    for length, places, word in zip(array.shape, kept, ("row", "column"), strict=True):
        if count := length - len(places):
            parts.append(f"{count} more {word}{'s' * (count != 1)}")
    if parts:
        hidden = np.ones(array.shape, dtype=bool)
        hidden[np.ix_(*kept)] = False
        yield f"… {' and '.join(parts)}, range {value_range(array[hidden], precision)}"


def likeliest_words(numbers: Numbers, precision: int = PRECISION) -> Iterator[str]:
    """Of each row over a vocabulary the largest numbers, and the sum or range of the others."""
    words = numbers.columns or ()
    for r, row in enumerate(np.atleast_2d(numbers.array)):
        order = largest(row, TOP)
        head = f"{r} {cut(numbers.rows[r], LONGEST_TOKEN)}  " if numbers.array.ndim == 2 and numbers.rows else ""
        parts = [f"{cut(words[i], LONGEST_TOKEN)} {number(float(row[i]), precision)}" for i in order]
        others = np.delete(row, order)
        rest = f"all {len(others):,} others: sum {number(others.sum(), precision)}"
        if not numbers.shares:
            rest = f"{len(others):,} others: {number(others.min(), precision)} … {number(others.max(), precision)}"
        line = " · ".join(part.replace(" ", NO_BREAK) for part in [*parts, rest])
        yield wrap(line, WIDTH, head, " " * text_width(head))
