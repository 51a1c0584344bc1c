"""Blocks as data for the page: numbers as they are, each with its address; what only a terminal draws as its text."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from vidrio.draw.show import shown
from vidrio.draw.terminal import text
from vidrio.glass.paper.maths import Array
from vidrio.look import blocks as b
from vidrio.look.writing import PRECISION, shape, visible

Data = dict[str, Any]


def as_data(blocks: Iterable[b.Block], precision: int = PRECISION) -> list[Data]:
    """Each block as an object with its kind; lines that follow each other as one text."""
    found: list[Data] = []
    for is_line, some in groupby(blocks, key=lambda block: isinstance(block, str)):
        if is_line:
            lines = "\n".join(visible(line) for whole in some for line in str(whole).split("\n")).strip("\n")
            found += [{"kind": "text", "text": lines}] if lines else []
        else:
            found += (_block(block, precision) for block in some)
    return found


def _block(block: b.Block, precision: int) -> Data:
    match block:
        case b.Title(title):
            return {"kind": "title", "text": visible(title)}
        case b.Note(note, kind=kind):
            return {"kind": "note", "text": visible(note), "tone": kind}
        case b.Table():
            return {
                "kind": "table",
                "name": visible(block.name),
                "heads": [visible(head) for head in block.heads],
                "rows": [[_cell(cell) for cell in row] for row in block.rows],
                "row_heads": block.row_heads,
                **({"whole": [[_cell(cell) for cell in row] for row in block.whole]} if block.whole else {}),
            }
        case b.Numbers():
            return _numbers(block)
        case b.Quantity():
            return _quantity(block, precision)
        case b.Heads(quantities):
            return {"kind": "beside", "blocks": [_quantity(quantity, precision) for quantity in quantities]}
        case b.Beside(parts):
            return {"kind": "beside", "blocks": as_data(parts, precision)}
        case b.Fold(title, about, parts, anchor):
            inside = as_data(parts, precision)
            return {
                "kind": "fold",
                "title": visible(title),
                "about": visible(about),
                "blocks": inside,
                "anchor": anchor,
            }
        case b.Pairs(pairs):
            return {"kind": "pairs", "pairs": [[visible(name), visible(value)] for name, value in pairs]}
        case b.Predictions(steps):
            return _block(_as_table(steps), precision)
        case b.Curves():
            lines = [{**line._asdict(), "points": thinned(line.points)} for line in block.lines if line.points]
            return {"kind": "curves", **block._asdict(), "lines": lines, "minutes": thinned(block.minutes)}
        case b.Heat():
            return {
                "kind": "heat",
                "weights": block.weights_TS,
                "rows": [visible(token) for token in block.rows],
                "columns": [visible(token) for token in block.columns],
                "caption": visible(block.caption),
            }
        case b.Ages(history):
            return {"kind": "ages", "history": _visible(history)}
    return {"kind": "text", "text": text([block], precision)}


def _visible(data: Any) -> Any:
    """All texts in it."""
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, Mapping):
        return {key: _visible(value) for key, value in data.items()}
    return [_visible(value) for value in data] if isinstance(data, list | tuple) else data


def _cell(cell: b.Cell) -> Any:
    match cell:
        case b.Value():
            return {"value": cell.value, "address": cell.address, "share": cell.share, "label": visible(cell.label)}
        case b.Bar(share):
            return {"bar": share}
        case b.Words(words, kind, bold):
            return {"words": visible(words), "kind": kind, "bold": bold}
    return visible(cell)


def _quantity(block: b.Quantity, precision: int) -> Data:
    return {
        "kind": "quantity",
        "address": block.address,
        "axes": " × ".join(block.axes),
        "shape": shape(block.numbers.array),
        "says": block.says,
        "formula": block.formula if block.inputs else "",
        "place": block.place,
        "inputs": list(block.inputs),
        "numbers": _block(block.numbers, precision),
    }


def _numbers(block: b.Numbers) -> Data:
    """A matrix, a vector as one row of it: of a large one the first and the last rows and columns, None between."""
    array = np.asarray(block.array)
    grid = array if array.ndim == 2 else array.reshape(1, -1)
    rows, columns = (shown(n, limit) for n, limit in zip(grid.shape, block.limit, strict=True))
    here = grid[np.ix_([r for r in rows if r is not None], [c for c in columns if c is not None])]
    hidden = grid.size - here.size
    finite = grid[np.isfinite(grid)] if hidden else grid[:0]
    whole = {"whole": _packed(grid)} if hidden > 0 and grid.size <= MOST_NUMBERS else {}
    return {
        "kind": "numbers",
        "address": block.address,
        "vector": array.ndim < 2,
        "rows": [[r, _token(block.rows, r)] for r in rows],
        "columns": [[c, _token(block.columns, c)] for c in columns],
        "values": here,
        "shares": block.shares,
        "caption": visible(block.caption),
        "left_out": {"count": hidden, "of": grid.size, "from": finite.min(), "to": finite.max()} if hidden else None,
        **whole,
    }


MOST_NUMBERS = 250_000  # of a matrix of which a page draws a part, and keeps the whole as CSV


def _packed(grid: Array) -> Data:
    single = grid.dtype == np.float32
    raw = np.ascontiguousarray(grid, "<f4" if single else "<f8").tobytes()
    return {"single": single, "columns": grid.shape[1], "bytes": b64encode(raw).decode()}


def _token(tokens: Sequence[str] | None, place: int | None) -> str:
    return "" if place is None or not tokens else visible(tokens[place])


def _as_table(steps: Sequence[b.Prediction]) -> b.Table:
    """A row for each decoding step: what it starts from, the token taken, and the likeliest ones."""
    rows: list[list[b.Cell]] = []
    for t, step in enumerate(steps):
        row: list[b.Cell] = [b.Words(f"{t} {step.after}"), b.Words(step.token, bold=True)]
        row.append(b.Value(step.log_p, f"out.score[{t}]"))
        for c in step.candidates:
            row.append(b.Words(c.token + " ✗" * c.forbidden, bold=c.taken))
            row.append(b.Value(c.p, f"out.prob[{c.id}]@{t}", share=True))
        rows.append(row)
    heads = ["after", "comes", "log p", "the likeliest", *[""] * (max(map(len, rows)) - 4)]
    return b.Table(rows, heads, name="steps")


MOST_POINTS = 240  # of one curve; more are drawn as means of neighbours


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_POINTS: each the mean of neighbours; the last one as it is."""
    size = -(-len(points) // MOST_POINTS)
    if size <= 1:
        return list(points)
    groups = (np.array(points[i : i + size], dtype=np.float64).mean(axis=0) for i in range(0, len(points), size))
    return [*((float(step), float(value)) for step, value in groups), points[-1]]
