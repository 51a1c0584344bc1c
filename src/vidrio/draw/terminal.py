"""Blocks as plain text, in 80 columns."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from vidrio.draw.show import matrix
from vidrio.look import blocks as b
from vidrio.look.layout import bar, right, shade, table, wrap
from vidrio.look.measures import Head
from vidrio.look.writing import NO_BREAK, PRECISION, WIDTH, cut, left, number, shape, text_width, visible
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
        case b.Columns(heads, columns, indent):
            yield from (f"{' ' * indent}{line}".rstrip() for line in _columns(heads, columns, WIDTH - indent))
        case b.Numbers(array, _, rows, columns, limit, shares):
            yield matrix(array, rows, columns, precision, limit=limit, shaded=shares)
        case b.Largest():
            yield from _largest(block, precision)
        case b.Quantity():
            axes = f"   {' × '.join(block.axes)} = {shape(block.numbers.array)}" if block.axes else ""
            yield f"{block.address}{axes}"
            yield wrap(f"{block.says}: {block.formula}. {block.place}", indent="  ")
            yield from _lines(block.numbers, precision)
        case b.Heads(quantities):
            yield from _lines(b.Beside(quantities), precision)
        case b.Beside(parts) | b.Fold(blocks=parts):
            yield from (line for part in parts for line in _lines(part, precision))
        case b.Pairs(pairs):
            yield from _lines(b.Table([[name, value] for name, value in pairs]), precision)
        case b.Way(steps):
            yield from _way(steps)
        case b.Predictions(steps, drawn):
            yield from _predictions(steps, precision, drawn=drawn)
        case b.HeadLines(heads):
            yield from _heads(heads, precision)
        case b.TreeLines(start, lines):
            yield f"● {visible(start)}"
            yield from (line for node in lines for line in _tree_line(node, precision))
        case b.Commands(commands):
            fits = all(len(line) <= WIDTH - 32 for _, line in commands)
            yield from (f"  {left(what, 28)}  {line}" if fits else f"  {what}:\n    {line}" for what, line in commands)
        case b.Steps(steps):
            width = max(text_width(step.value) for step in steps)
            for step in steps:
                yield f"  {left(step.letter, 3)} {left(step.says, WIDTH - 10 - width)} {right(step.value, width)}"
                if step.how:
                    yield wrap(f"= {step.how}", indent=" " * 8, hang=" " * 10)
        case b.Curves() | b.Heat() | b.Ages():
            raise TypeError("a terminal draws no pictures")


def _cell(cell: b.Cell, precision: int) -> str:
    match cell:
        case b.Value(value, label=label):
            return f"{label}{number(value, precision)}"
        case b.Bar(share, width):
            return bar(share, width)
        case b.Words(words):
            return visible(words)
    return cell


def _columns(heads: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Rows of cells, as many columns beside each other as fit; the others in blocks below."""
    head_width = max(map(text_width, heads))
    widths = [max(map(text_width, column)) for column in columns]
    start = 0
    while start < len(columns):
        end, used = start, head_width
        while end < len(columns) and (end == start or used + 2 + widths[end] <= width):
            used += 2 + widths[end]
            end += 1
        if start:
            yield ""
        for r, head in enumerate(heads):
            cells = (left(column[r], w) for column, w in zip(columns[start:end], widths[start:end], strict=True))
            yield "  ".join([left(head, head_width), *cells]).rstrip()
        start = end


def _largest(block: b.Largest, precision: int) -> Iterator[str]:
    for r, row in enumerate(np.atleast_2d(block.array)):
        order = largest(row, TOP)
        head = f"{r} {cut(block.rows[r], 16)}  " if block.array.ndim == 2 and block.rows else ""
        parts = [f"{cut(block.words[i], 16)} {number(float(row[i]), precision)}" for i in order]
        others = np.delete(row, order)
        rest = f"all {len(others):,} others: sum {number(others.sum(), precision)}"
        if not block.shares:
            rest = f"{len(others):,} others: {number(others.min(), precision)} … {number(others.max(), precision)}"
        words = " · ".join(part.replace(" ", NO_BREAK) for part in [*parts, rest])
        yield wrap(words, WIDTH, head, " " * text_width(head))


def _way(steps: Sequence[b.WayStep]) -> Iterator[str]:
    """What each step is, wrapped in a column of its own, with its shape, the paper's place and its address."""
    shape_width = max(text_width(step.shape) for step in steps)
    room = WIDTH - max(text_width(step.address) for step in steps) - shape_width - 7 - 8
    for step in steps:
        if not step.address:
            yield ""
            yield wrap(step.says, indent="  ")
            continue
        first, *rest = wrap(step.says, room).splitlines()
        yield f"  {left(first, room)}  {right(step.shape, shape_width)}  {left(step.place, 7)}  {step.address}"
        yield from (f"  {line}" for line in rest)


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


def _heads(heads: Sequence[Head], precision: int) -> Iterator[str]:
    """A line a head, cut to the width: the tokens of its largest weight take what room there is."""
    rows = []
    for head in heads:
        spread = shade(head.entropy / head.most) if head.most else " "
        entropy, most, largest_weight = (number(value, precision) for value in (head.entropy, head.most, head.largest))
        rows.append([head.address, entropy, spread, most, largest_weight])
    head_line, *lines = table(rows, ["head", "entropy", "", "at most", "largest"], "l.l..").splitlines()
    places = [f"[{head.row},{head.column}]" for head in heads]
    room = max(4, (WIDTH - max(map(text_width, lines)) - max(map(len, places)) - len("   → ")) // 2)
    yield f"{head_line}  where"
    for line, place, head in zip(lines, places, heads, strict=True):
        yield f"{line}  {place} {cut(head.asks, room)} → {cut(head.asked, room)}"


def _tree_line(node: b.TreeLine, precision: int) -> Iterator[str]:
    first = f"{node.lead}{left(cut(node.token, 16), max(0, 24 - text_width(node.lead)))}"
    yield f"{first}  log p {number(node.log_p, precision)}  score {number(node.score, precision)}  {node.fate}"
    if node.why:
        yield wrap(node.why, indent=node.hang)
