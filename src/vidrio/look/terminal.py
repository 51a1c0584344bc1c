"""Blocks as plain text, in 80 columns."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from vidrio.look import blocks as b
from vidrio.look.layout import bar, table, wrap
from vidrio.look.matrix import matrix
from vidrio.look.writing import NO_BREAK, PRECISION, WIDTH, cut, number, shape, text_width, visible
from vidrio.search import largest

TOP = 10  # words shown of a vocabulary


def text(blocks: Iterable[b.Block], precision: int = PRECISION) -> str:
    """A view, without a line end after its last line."""
    return "\n".join(line for block in blocks for line in _lines(block, precision))


def _lines(block: b.Block, precision: int) -> Iterator[str]:
    match block:
        case str():
            yield block
        case b.Title(words):
            yield visible(words)
        case b.Note(words, indent, hang):
            yield wrap(visible(words), WIDTH, " " * indent, None if hang is None else " " * hang)
        case b.Table(rows, heads, align, indent):
            drawn = [[_cell(cell, precision) for cell in row] for row in rows]
            yield from (f"{' ' * indent}{line}".rstrip() for line in table(drawn, heads, align).splitlines())
        case b.Numbers(largest=True):
            yield from _largest(block, precision)
        case b.Numbers():
            yield matrix(block, precision)
        case b.Quantity(address, axes, stage, numbers):
            yield f"{address}   {axes} = {shape(numbers.array)}" if axes else address
            yield wrap(f"{stage.says}: {stage.formula}. {stage.place}", indent="  ")
            yield from _lines(numbers, precision)
        case b.Predictions(steps, drawn):
            yield from _predictions(steps, precision, drawn=drawn)
        case _:
            raise TypeError(f"{type(block).__name__} is for pages")


def _cell(cell: b.Cell, precision: int) -> str:
    match cell:
        case b.Value(value, label=label):
            return f"{label}{number(value, precision)}"
        case b.Bar(share, width):
            return bar(share, width)
        case b.Words(words):
            return visible(words)
    return cell


def _largest(block: b.Numbers, precision: int) -> Iterator[str]:
    words = block.columns or ()
    for r, row in enumerate(np.atleast_2d(block.array)):
        order = largest(row, TOP)
        head = f"{r} {cut(block.rows[r], 16)}  " if block.array.ndim == 2 and block.rows else ""
        parts = [f"{cut(words[i], 16)} {number(float(row[i]), precision)}" for i in order]
        others = np.delete(row, order)
        rest = f"all {len(others):,} others: sum {number(others.sum(), precision)}"
        if not block.shares:
            rest = f"{len(others):,} others: {number(others.min(), precision)} … {number(others.max(), precision)}"
        line = " · ".join(part.replace(" ", NO_BREAK) for part in [*parts, rest])
        yield wrap(line, WIDTH, head, " " * text_width(head))


def _predictions(steps: Sequence[b.Prediction], precision: int, *, drawn: bool) -> Iterator[str]:
    """Each step and the token taken; below it `hola 0.9951 · mundo 0.0020 · …`."""
    heads = table(
        [
            [
                str(t),
                f"after {cut(step.after, 20)}",
                f"→ {cut(step.token, 20)}",
                f"log p {number(step.log_p, precision)}",
            ]
            + ["given: the prompt"] * step.given
            for t, step in enumerate(steps)
        ],
        align="rlll",
    )
    for head, step in zip(heads.splitlines(), steps, strict=True):
        yield f"  {head}"
        if drawn:
            yield from (f"     {line}" for line in _drawn_from(step, precision).splitlines())
            continue
        parts = (f"{cut(c.token, 16)} {number(c.p, precision)}" + " (forbidden)" * c.forbidden for c in step.candidates)
        yield wrap(" · ".join(part.replace(" ", NO_BREAK) for part in parts), indent="     ")


def _drawn_from(step: b.Prediction, precision: int) -> str:
    """With sampling: the model's own probability beside the one that was drawn from."""
    rows = [
        ["→" * c.taken, cut(c.token, 16), *(part for p in (c.p, c.drawable) for part in (number(p, precision), bar(p)))]
        for c in step.candidates
    ]
    return table(rows, ["", "", "p of the model", "", "p to be drawn", ""], "ll.l.l")
