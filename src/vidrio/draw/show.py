"""Vectors and matrices as plain text. Nothing is computed here, only drawn.

Plain text carries everything: it reads without colour, in 80 columns, in a log, in a pipe, by a screen reader. What
does not fit is not cut off silently: it is wrapped into blocks of columns, or left out with count and range told.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vidrio.look.layout import at_point, right, shade
from vidrio.look.writing import PRECISION, WIDTH, cut, left, number, shape, text_width, value_range

LIMIT = 12  # rows or columns shown before the rest is left out
LONGEST_TOKEN = 16  # columns on the screen

# --- vectors and matrices ---------------------------------------------------------------------------------------------


def vector(
    array: Any,
    tokens: Sequence[str] | None = None,
    precision: int = PRECISION,
    width: int = WIDTH,
    limit: int | tuple[int, int] = LIMIT,
    *,
    shaded: bool = False,
) -> str:
    """A vector as one row, its places (and tokens) above it."""
    return matrix(np.asarray(array)[None], (), tokens, precision, width, limit, shaded=shaded)


def matrix(
    array: Any,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    precision: int = PRECISION,
    width: int = WIDTH,
    limit: int | tuple[int, int] = LIMIT,
    *,
    shaded: bool = False,
) -> str:
    """A matrix with the place (and token) of every row and column, the decimal points of a column under each other.

    `rows` and `columns` are tokens; None leaves the bare places, () no heads at all. More than `limit` rows or columns
    (one number for both, or a pair) are left out from the middle, with their number and range told. Columns within the
    limit that do not fit into `width` come in a block below. `shaded` puts a small bar beside each share from 0 to 1;
    the digits stay.
    """
    array = np.asarray(array)
    if array.ndim == 0:
        return number(array[()], precision)
    if array.ndim == 1:
        return vector(array, columns, precision, width, limit, shaded=shaded)
    if 0 in array.shape:
        return f"(nothing: {shape(array)})"
    row_limit, column_limit = (limit, limit) if isinstance(limit, int) else limit
    shown_rows, shown_columns = shown(array.shape[0], row_limit), shown(array.shape[1], column_limit)
    row_heads = _row_heads(rows, shown_rows)
    room = width - _widest(row_heads)
    blocks = list(_blocks(array, columns, shown_rows, shown_columns, precision, room, shaded))
    while None in shown_columns and len(blocks) > 1 and len(shown_columns) > 3:
        # Something is left out anyway: then leave out a little more, and stay on one line.
        shown_columns = shown(array.shape[1], len(shown_columns) - 2)
        blocks = list(_blocks(array, columns, shown_rows, shown_columns, precision, room, shaded))
    text = "\n\n".join(_block(row_heads, block) for block in blocks)
    return "\n".join([text, *_left_out(array, shown_rows, shown_columns, precision)])


def shown(length: int, limit: int) -> list[int | None]:
    """The places to show; None stands for those left out: the first ones, and the last."""
    if length <= limit:
        return list(range(length))
    return [*range(limit - 1), None, length - 1]


def _row_heads(tokens: Sequence[str] | None, shown: Sequence[int | None]) -> list[str]:
    if tokens is not None and not tokens:
        return [""] * len(shown)
    digits = max((len(str(r)) for r in shown if r is not None), default=1)
    heads = [right("…" if r is None else str(r), digits) for r in shown]
    if tokens is None:
        return heads
    return [
        head if r is None else f"{head} {cut(tokens[r], LONGEST_TOKEN)}" for head, r in zip(heads, shown, strict=True)
    ]


def _blocks(
    array: np.ndarray,
    tokens: Sequence[str] | None,
    shown_rows: Sequence[int | None],
    shown_columns: Sequence[int | None],
    precision: int,
    room: int,
    shaded: bool,
) -> Iterator[list[list[str]]]:
    """The columns, drawn (heads first, all cells of one width), in blocks that fit side by side."""
    whole = array.dtype.kind in "iub" or bool(np.all(np.isfinite(array)) and np.all(array == np.round(array)))
    bare = tokens is not None and not tokens
    block: list[list[str]] = []
    used = 0
    for c in shown_columns:
        heads = [] if bare else ["…" if c is None else str(c)]
        if tokens:
            heads.append("" if c is None else cut(tokens[c], LONGEST_TOKEN))
        if c is None:
            cells = ["…"] * len(shown_rows)
        else:
            values = [None if r is None else array[r, c] for r in shown_rows]
            marks = [f" {shade(float(v))}" if shaded and v is not None else "" for v in values]
            cells = at_point([_cell(v, precision, whole) for v in values])
            cells = [left(cell + mark, len(cells[0]) + 2 * shaded) for cell, mark in zip(cells, marks, strict=True)]
        column_width = max(map(text_width, [*heads, *cells]))
        column = [right(cell, column_width) for cell in [*heads, *cells]]
        if block and used + 2 + column_width > room:
            yield block
            block, used = [], 0
        block.append(column)
        used += 2 + column_width
    if block:
        yield block


def _cell(value: Any, precision: int, whole: bool) -> str:
    if value is None:
        return "…"
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
    array: np.ndarray, shown_rows: Sequence[int | None], shown_columns: Sequence[int | None], precision: int
) -> Iterator[str]:
    kept_rows = [r for r in shown_rows if r is not None]
    kept_columns = [c for c in shown_columns if c is not None]
    counts = [
        (array.shape[0] - len(kept_rows), "row"),
        (array.shape[1] - len(kept_columns), "column"),
    ]
    parts = [f"{count} more {word}{'s' * (count != 1)}" for count, word in counts if count]
    if parts:
        hidden = np.ones(array.shape, dtype=bool)
        hidden[np.ix_(kept_rows, kept_columns)] = False
        yield f"… {' and '.join(parts)}, range {value_range(array[hidden], precision)}"
