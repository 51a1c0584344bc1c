"""Displays part of a trace as text: a layer, a matrix, or a single number, selected by address."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vidrio.errors import AddressError, InputError, nearest
from vidrio.glass.maths import Array
from vidrio.glass.trace import Address, Trace, parse_address
from vidrio.glass.words import Stage, without_head
from vidrio.look.writing import (
    NO_BREAK,
    PRECISION,
    WIDTH,
    CommandLine,
    at_point,
    cut,
    note,
    number,
    right,
    shade,
    shape,
    side_by_side,
    text_width,
    value_range,
    visible,
    wrap,
)
from vidrio.search import largest

LIMIT = 12  # maximum number of rows or columns to print
LONGEST_TOKEN = 16  # maximum width of a token
LONGEST_NAME = 2 * LONGEST_TOKEN + 3  # maximum width of a row's label: two tokens and an arrow
TOP = 10  # number of tokens to print from a vocabulary
TOKENS = 48  # maximum number of rows or columns to print if they are tokens
DRAWN_AT_MOST = 40  # maximum number of quantities to print for a prefix; beyond it, only head 0 is printed


def at(trace: Trace, where: str, again: CommandLine, precision: int = PRECISION) -> Iterator[str]:
    """Display what an address refers to: a number, a quantity, or all quantities whose addresses start with it."""
    address = parse_address(where)
    if address.index:
        yield from _one_number(trace, address, again, precision)
    elif address.name in trace:
        yield from _one_quantity(trace, address, again, precision)
    elif not trace.values:
        raise InputError("the text is empty, so nothing was computed", do="enter a text")
    else:
        yield from _part(trace, address, again, precision)


def _one_number(trace: Trace, address: Address, again: CommandLine, precision: int) -> Iterator[str]:
    stage = trace.stage(address.name)
    value = trace.number(address)
    places = trace.position(address)
    drawn = str(int(value)) if stage.kind in ("input", "choice") else number(value, precision)
    whole = (
        "" if stage.kind in ("input", "choice") or float(drawn) == value or value != value else f"   in full {value!r}"
    )
    yield f"{address} = {drawn}{whole}"
    for axis, (what, place) in enumerate(zip(("row", "column"), places, strict=False)):
        tokens = names(trace, address.name, axis)
        yield f"  {what if len(places) > 1 else 'place'} {place}" + (f": {visible(tokens[place])}" if tokens else "")
    yield from _about(stage)
    if stage.kind != "parameter":
        yield f"Where it comes from, recomputed:\n  {again.why(str(address))}"


def _one_quantity(trace: Trace, address: Address, again: CommandLine, precision: int) -> Iterator[str]:
    stage, array = trace.stage(address.name), trace.array(address.name)
    yield heading(trace, address)
    yield from _about(stage)
    yield ""
    yield from _drawn(trace, address, TOKENS, precision)
    if array.size:
        example = Address(address.name, ("0",) * array.ndim)
        yield f"\nOne of its numbers:\n  {again.look('--at', str(example))}"
        if stage.kind != "parameter":
            yield f"Where that one comes from:\n  {again.why(str(example))}"


def _about(stage: Stage) -> Iterator[str]:
    yield note(f"{stage.says}. {stage.place}", indent=2)
    if stage.inputs:
        yield note(f"= {stage.formula}", indent=2, hang=4)
        yield note(f"from {', '.join(stage.inputs)}", indent=2, hang=4)


def names(trace: Trace, name: str, axis: int) -> Sequence[str]:
    """Return the labels of rows (axis 0) or columns. A decoder row is labelled with its input and output tokens."""
    axes = trace.stage(name).axes
    tokens = trace.axis_tokens(name, axes[axis])
    reads = axis > 0 or len(axes) < 2 or axes[axis] != "T" or name.startswith("tgt.") or name == "dec.in"
    if reads or len(trace.chosen_tokens) < len(tokens):
        return tokens
    return [f"{cut(read, LONGEST_TOKEN)} → {said}" for read, said in zip(tokens, trace.chosen_tokens, strict=False)]


def heading(trace: Trace, address: Address) -> str:
    """Return the heading of a quantity, e.g. `enc.0.self.scores.h0   S × S = 2 × 2`."""
    axes = " × ".join(trace.stage(address.name).axes)
    return f"{address}   {axes} = {shape(trace.array(address.name))}" if axes else str(address)


def _drawn(trace: Trace, address: Address, tokens: int, precision: int) -> Iterator[str]:
    """Format a quantity, up to a limit, with the tokens of its rows and columns. For a row over the vocabulary, only
    the largest numbers are printed."""
    stage, array = trace.stage(address.name), trace.array(address.name)
    named = [names(trace, address.name, axis) or None for axis in range(len(stage.axes))]
    limits = [tokens if name else LIMIT for name in named] or [LIMIT]
    rows, columns = named[0] if len(named) > 1 else None, named[-1] if named else None
    numbers = Numbers(array, rows, columns, (limits[0], limits[-1]), stage.operation == "softmax")
    if stage.axes[-1:] == "V" and stage.kind != "parameter" and array.shape[-1] > limits[-1]:
        yield from likeliest_words(numbers, precision)
    else:
        yield matrix(numbers, precision)


def _part(trace: Trace, address: Address, again: CommandLine, precision: int) -> Iterator[str]:
    names = under(trace, address.name)
    values = [name for name in names if trace.stages[name].kind != "parameter"]
    several = len(values) > DRAWN_AT_MOST
    drawn = [name for name in values if not several or without_head(name)[1] in ("", ".h0")]
    yield f"{address.name}: {len(values)} quantities, in the order in which they are computed"
    for name in drawn:
        stage = trace.stages[name]
        yield f"\n{heading(trace, Address(name))}"
        yield wrap(f"{stage.says}: {stage.formula}. {stage.place}", indent="  ")
        yield from _drawn(trace, Address(name), LIMIT, precision)
    if len(drawn) < len(values):
        second = next(n for n in values if n.endswith(".h1"))
        yield f"\nHeads 1 to {trace.sizes['H'] - 1} are computed likewise; for example:\n  {again.look('--at', second)}"
    parameters = [f"{n} ({shape(trace.array(n))})" for n in names if trace.stages[n].kind == "parameter"]
    if parameters:
        listed = ", ".join(text.replace(" ", NO_BREAK) for text in parameters)
        yield "\n" + note(f"Its parameters (also shown by --at): {listed}", hang=2)


def under(trace: Trace, prefix: str) -> list[str]:
    """Return the addresses that start with a prefix. Raises AddressError, with the closest matches, if none do."""
    names = trace.addresses(prefix)
    if not names:
        every = trace.addresses()
        prefixes = {".".join(name.split(".")[:n]) for name in every for n in range(1, name.count(".") + 2)}
        raise AddressError(
            f"there is no {prefix!r} in this run",
            found=f"closest matches: {nearest(prefix, sorted(prefixes | set(every)))}",
            do="`vidrio look TEXT` lists all addresses",
        )
    return names


# --- vectors and matrices ---------------------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """A vector or matrix to print, with labels for rows and columns (None for indices only, empty for no labels)."""

    array: Array
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    limit: tuple[int, int] = (LIMIT, LIMIT)  # maximum number of rows and columns to print
    shares: bool = False  # whether each row sums to 1; a small bar is then printed next to each number


def matrix(numbers: Numbers, precision: int = PRECISION, width: int = WIDTH) -> str:
    """Format a matrix, aligned at decimal points, with the index (and token) of each row and column.

    A vector becomes a single row. If there are more rows or columns than `limit`, only the first few and the last are
    printed, followed by the number and range of the rest. Columns beyond `width` are printed in further blocks below.
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
    """Return the indices to print: the first few, None in place of the omitted ones, and the last."""
    if length <= limit:
        return list(range(length))
    return [*range(limit - 1), None, length - 1]


def _row_heads(tokens: Sequence[str] | None, rows: Sequence[int | None]) -> list[str]:
    """Return the labels of the rows: indices, followed by tokens if there are any."""
    if tokens is not None and not tokens:
        return [""] * len(rows)
    places = ["…" if r is None else str(r) for r in rows]
    digits = max(map(len, places))
    named = ["" if r is None or not tokens else f" {cut(tokens[r], LONGEST_NAME)}" for r in rows]
    return [right(place, digits) + token for place, token in zip(places, named, strict=True)]


def _column(
    array: np.ndarray, c: int | None, rows: Sequence[int | None], numbers: Numbers, cell: Callable[[Any], str]
) -> list[str]:
    """Format a column under its index and, if it has one, its token."""
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
    """Format the largest numbers of each row over a vocabulary, and the sum or range of all others."""
    words = numbers.columns or ()
    for r, row in enumerate(np.atleast_2d(numbers.array)):
        order = largest(row, TOP)
        head = f"{r} {cut(numbers.rows[r], LONGEST_NAME)}  " if numbers.array.ndim == 2 and numbers.rows else ""
        parts = [f"{cut(words[i], LONGEST_TOKEN)} {number(float(row[i]), precision)}" for i in order]
        others = np.delete(row, order)
        rest = f"all {len(others):,} others: sum {number(others.sum(), precision)}"
        if not numbers.shares:
            rest = f"{len(others):,} others: {number(others.min(), precision)} … {number(others.max(), precision)}"
        line = " · ".join(part.replace(" ", NO_BREAK) for part in [*parts, rest])
        yield wrap(line, WIDTH, head, " " * text_width(head))
