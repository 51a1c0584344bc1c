"""Blocks as data for the page: numbers as they are, each with its address; what only a terminal draws as its text."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from vidrio.glass.maths import Array
from vidrio.look import blocks as b
from vidrio.look.matrix import shown
from vidrio.look.terminal import text
from vidrio.look.writing import PRECISION, shape, visible

Data = dict[str, Any]
OF_TERMINALS = ("align", "indent", "hang")  # fields that a page has no use for


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


def _block(block: Any, precision: int) -> Data:
    match block:
        case b.Numbers(largest=True):
            return {"kind": "text", "text": text([block], precision)}
        case b.Numbers():
            return _numbers(block)
        case b.Quantity(address, axes, stage, numbers):
            about = {name: getattr(stage, name) for name in ("says", "place", "inputs")}
            formula = stage.formula if stage.inputs else ""
            about |= {"address": address, "axes": axes, "shape": shape(numbers.array), "formula": formula}
            return {"kind": "quantity", **about, "numbers": _block(numbers, precision)}
        case b.Predictions(steps):
            return _block(_as_table(steps), precision)
    fields = {name: value for name, value in block._asdict().items() if name not in OF_TERMINALS}
    if "blocks" in fields:
        fields["blocks"] = as_data(fields["blocks"], precision)
    return {"kind": type(block).__name__.lower(), **_data(fields)}


def _data(value: Any) -> Any:
    """Fields of a block: all texts in them made visible, records as objects."""
    match value:
        case str():
            return visible(value)
        case Mapping():
            return {key: _data(inside) for key, inside in value.items()}
        case b.Bar(share):
            return {"bar": share}
        case b.Value() | b.Words() | b.Curve():
            return _data(value._asdict())
        case tuple() | list():
            return [_data(inside) for inside in value]
    return value


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
    raw = grid.astype("<f4" if single else "<f8").tobytes()
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
            row.append(b.Value(c.p, f"out.prob[{t},{c.id}]", share=True))
        rows.append(row)
    heads = ["after", "comes", "log p", "the likeliest", *[""] * (max(map(len, rows)) - 4)]
    return b.Table(rows, heads, name="steps")
