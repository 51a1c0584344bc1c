"""Numbers, vectors and matrices as HTML tables. Nothing is computed here, only drawn, as in show.py.

Every cell that holds a number says in `data-address` which one it is. The heads are real `<th>`; shading comes beside
the digits, never instead of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from vidrio.draw.show import LIMIT, PRECISION, at_point, number, shown, value_range, visible

SHADES = 8


def matrix(
    array: Any,
    address: str = "",
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    precision: int = PRECISION,
    limit: int | tuple[int, int] = LIMIT,
    *,
    shaded: bool = False,
    caption: str = "",
) -> str:
    """A matrix as a table; the first and the last rows and columns of a large one, and the range of the others."""
    array = np.asarray(array)
    if array.ndim == 1:
        return vector(array, address, columns, precision, limit, shaded=shaded, caption=caption)
    row_limit, column_limit = (limit, limit) if isinstance(limit, int) else limit
    shown_rows, shown_columns = shown(array.shape[0], row_limit), shown(array.shape[1], column_limit)
    drawn = [_column(array, address, shown_rows, c, precision, shaded) for c in shown_columns]
    lines = [_caption(caption), f"<thead><tr><td></td>{_heads(columns, shown_columns)}</tr></thead>", "<tbody>"]
    for r, *cells in zip(shown_rows, *drawn, strict=True):
        head = '<th scope="row">…</th>' if r is None else _head(rows, r, "row")
        lines.append(f"<tr>{head}{''.join(cells)}</tr>")
    lines.append("</tbody>")
    hidden = np.ones(array.shape, dtype=bool)
    hidden[np.ix_([r for r in shown_rows if r is not None], [c for c in shown_columns if c is not None])] = False
    return _table(lines, address, array, hidden, precision)


def vector(
    array: Any,
    address: str = "",
    tokens: Sequence[str] | None = None,
    precision: int = PRECISION,
    limit: int | tuple[int, int] = LIMIT,
    *,
    shaded: bool = False,
    caption: str = "",
) -> str:
    """A vector as a table of one row."""
    array = np.asarray(array)
    places = shown(len(array), limit if isinstance(limit, int) else limit[1])
    cells = (
        "<td>…</td>"
        if p is None
        else cell(number(array[p].item(), precision), float(array[p]), _at(address, p), shaded=shaded)
        for p in places
    )
    lines = [
        _caption(caption),
        f"<thead><tr>{_heads(tokens, places)}</tr></thead>",
        f"<tbody><tr>{''.join(cells)}</tr></tbody>",
    ]
    hidden = np.ones(array.shape, dtype=bool)
    hidden[[p for p in places if p is not None]] = False
    return _table(lines, address, array, hidden, precision)


def cell(drawn: str, value: float, address: str, *, shaded: bool = False) -> str:
    """One number in its cell, with its address."""
    where = f' data-address="{text(address)}"' if address else ""
    tint = f' class="s{min(SHADES, int(value * SHADES) + 1)}"' if shaded and 0 < value <= 1 else ""
    return f"<td{where}{tint}>{drawn}</td>"


def _column(
    array: np.ndarray, address: str, rows: Sequence[int | None], c: int | None, precision: int, shaded: bool
) -> list[str]:
    """The cells of a column, their decimal points under each other."""
    if c is None:
        return ["<td>…</td>"] * len(rows)
    places = [r for r in rows if r is not None]
    drawn = dict(zip(places, at_point([number(array[r, c].item(), precision) for r in places]), strict=True))
    return [
        "<td>…</td>" if r is None else cell(drawn[r], float(array[r, c]), _at(address, r, c), shaded=shaded)
        for r in rows
    ]


def text(raw: str) -> str:
    """Text made safe for a page, and nothing in it that is invisible."""
    return escape(visible(raw))


def _table(lines: list[str], address: str, array: np.ndarray, hidden: np.ndarray, precision: int) -> str:
    name = f' aria-label="{text(address)}"' if address else ""
    drawn = f'<div class="scroll" tabindex="0" role="region"{name}><table>{"".join(lines)}</table></div>'
    if not hidden.any():
        return drawn
    told = f"{int(hidden.sum()):,} of {array.size:,} numbers are left out here; they range from "
    return f'{drawn}<p class="left-out">{told}{value_range(array[hidden], precision).replace(" … ", " to ")}.</p>'


def _caption(caption: str) -> str:
    return f"<caption>{text(caption)}</caption>" if caption else ""


def _heads(tokens: Sequence[str] | None, places: Sequence[int | None]) -> str:
    return "".join('<th scope="col">…</th>' if p is None else _head(tokens, p, "col") for p in places)


def _head(tokens: Sequence[str] | None, place: int, scope: str) -> str:
    token = f" {text(tokens[place])}" if tokens else ""
    return f'<th scope="{scope}"><i>{place}</i>{token}</th>'


def _at(address: str, *place: int) -> str:
    """The address of one number: the index stands before the step."""
    name, at, step = address.partition("@")
    return f"{name}[{','.join(map(str, place))}]{at}{step}" if address else ""


def listing(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words, the first column as the rows' heads."""
    head = "".join(f'<th scope="col" class="word">{text(name)}</th>' for name in heads)
    lines = []
    for first, *rest in rows:
        cells = "".join(f'<td class="word">{text(part)}</td>' for part in rest)
        lines.append(f'<tr><th scope="row" class="word"><code>{text(first)}</code></th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="list"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


@dataclass(frozen=True, repr=False)
class Drawn:
    """Something to look at: text in a terminal, HTML in a notebook."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return in_notebook(self.html)


def in_notebook(html: str) -> str:
    """HTML with the few rules of style that its tables need inside somebody else's page."""
    return f'<div class="vidrio"><style>{NOTEBOOK_STYLE}</style>{html}</div>'


NOTEBOOK_STYLE = (
    ".vidrio td{text-align:right;white-space:pre;font-family:monospace}"
    ".vidrio .word{text-align:left;font-family:inherit}"
    ".vidrio th i{opacity:.6;font-style:normal;font-weight:normal}"
    ".vidrio .scroll{overflow-x:auto}"
    ".vidrio .side-by-side{display:flex;flex-wrap:wrap;gap:0 2em}"
    + "".join(f".vidrio .s{n}{{background:rgba(47,111,159,{n * 0.055:.3f})}}" for n in range(1, SHADES + 1))
)
