"""Vectors and matrices as plain text. Nothing is computed here, only drawn.

Plain text carries everything: it reads without colour, in 80 columns, in a log, in a pipe, by a screen reader. What
does not fit is not cut off silently: it is wrapped into blocks of columns, or left out with count and range told.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from vidrio.look.blocks import Numbers
from vidrio.look.layout import at_point, right, shade, side_by_side
from vidrio.look.writing import PRECISION, WIDTH, cut, left, number, shape, text_width, value_range

LONGEST_TOKEN = 16  # columns on the screen


def matrix(numbers: Numbers, precision: int = PRECISION, width: int = WIDTH) -> str:
    """A matrix with the place (and token) of every row and column, the decimal points of a column under each other; a
    vector as one row.

    More than `limit` rows or columns are left out from the middle, with their number and range told. Columns within the
    limit that do not fit into `width` come in a block below. `shares` have a small bar beside them; the digits stay.
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
    heads = _heads(numbers.rows, rows)
    drawn = {c: _column(array, c, rows, numbers, lambda value: _cell(value, precision, whole)) for c in columns}
    room = width - _widest(heads)
    blocks = side_by_side([drawn[c] for c in columns], room)
    while None in columns and len(blocks) > 1 and len(columns) > 3:
        # Something is left out anyway: then leave out a little more, and stay on one line.
        columns = shown(array.shape[1], len(columns) - 2)
        blocks = side_by_side([drawn[c] for c in columns], room)
    text = "\n\n".join(_block(heads, block) for block in blocks)
    return "\n".join([text, *_left_out(array, rows, columns, precision)])


def shown(length: int, limit: int) -> list[int | None]:
    """The places to show; None stands for those left out: the first ones, and the last."""
    if length <= limit:
        return list(range(length))
    return [*range(limit - 1), None, length - 1]


def _heads(tokens: Sequence[str] | None, rows: Sequence[int | None]) -> list[str]:
    """Of the rows: their places, with tokens behind."""
    if tokens is not None and not tokens:
        return [""] * len(rows)
    digits = max((len(str(r)) for r in rows if r is not None), default=1)
    heads = [right("…" if r is None else str(r), digits) for r in rows]
    if tokens is None:
        return heads
    named = ("" if r is None else f" {cut(tokens[r], LONGEST_TOKEN)}" for r in rows)
    return [head + token for head, token in zip(heads, named, strict=True)]


def _column(
    array: np.ndarray, c: int | None, rows: Sequence[int | None], numbers: Numbers, cell: Callable[[Any], str]
) -> list[str]:
    """A column drawn, its heads first."""
    tokens = numbers.columns
    heads = [] if tokens is not None and not tokens else ["…" if c is None else str(c)]
    if tokens:
        heads.append("" if c is None else cut(tokens[c], LONGEST_TOKEN))
    cells = ["…"] * len(rows)
    if c is not None:
        cells = at_point(["…" if r is None else cell(array[r, c]) for r in rows])
    if c is not None and numbers.shares:
        marks = ["" if r is None else f" {shade(float(array[r, c]))}" for r in rows]
        cells = [left(text + mark, len(cells[0]) + 2) for text, mark in zip(cells, marks, strict=True)]
    column_width = _widest([*heads, *cells])
    return [right(text, column_width) for text in [*heads, *cells]]


def _cell(value: Any, precision: int, whole: bool) -> str:
    return str(int(value)) if whole and abs(value) < 1e6 else number(value, precision)


def _block(row_heads: Sequence[str], block: Sequence[Sequence[str]]) -> str:
    width = _widest(row_heads)
    heads = [""] * (len(block[0]) - len(row_heads)) + list(row_heads)
    lines = ["  ".join([left(head, width), *cells]) for head, *cells in zip(heads, *block, strict=True)]
    bare = width == 0
    return "\n".join((line[2:] if bare else line).rstrip() for line in lines)


def _widest(texts: Sequence[str]) -> int:
    return max(map(text_width, texts), default=0)


def _left_out(
    array: np.ndarray, rows: Sequence[int | None], columns: Sequence[int | None], precision: int
) -> Iterator[str]:
    kept = [[place for place in places if place is not None] for places in (rows, columns)]
    counts = (length - len(places) for length, places in zip(array.shape, kept, strict=True))
    words = zip(counts, ("row", "column"), strict=True)
    parts = [f"{count} more {word}{'s' * (count != 1)}" for count, word in words if count]
    if parts:
        hidden = np.ones(array.shape, dtype=bool)
        hidden[np.ix_(*kept)] = False
        yield f"… {' and '.join(parts)}, range {value_range(array[hidden], precision)}"
