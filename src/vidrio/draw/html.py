"""Blocks as HTML: one file with its style in it, no network, no script. Nothing is computed here, only drawn.

Every cell that holds a number of the trace says in `data-address` which one. The heads are real `<th>`; shading comes
beside the digits, never instead of them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby

import numpy as np

from vidrio._version import __version__
from vidrio.draw import svg
from vidrio.draw.show import PRECISION, at_point, number, shape, shown, value_range
from vidrio.draw.svg import words
from vidrio.draw.terminal import text as plain
from vidrio.look import blocks as b

SHADES = 8


def page(told: b.Page, precision: int = PRECISION, styles: Sequence[str] = ("page.css", "training.css")) -> str:
    """A whole page."""
    sections = [section for section in told.sections if section.blocks]
    every = [block for section in sections for block in section.blocks]
    render = _Rendering(precision, set(_addresses(every))).blocks
    contents = "".join(f'<li><a href="#{anchor}">{words(name)}</a></li>' for anchor, name, _ in sections)
    css = "".join(files("vidrio.draw").joinpath(name).read_text("utf-8") for name in styles)
    long = ' class="long"' * (len(told.title) > 80)
    checksums = "".join(f"<br><code>{name} {checksum}</code>" for name, checksum in told.checksums)
    lines = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        # Nothing may be fetched, by this page or by anything put into it.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{words(told.title)}</title>\n<style>\n{css}</style>\n</head>\n<body>",
        f"<header>\n<h1{long}>{words(told.title)}</h1>\n{render(told.header)}\n</header>",
        f'<nav aria-label="Contents"><ol>{contents}</ol></nav>\n<main>',
        *(f'<section id="{at}">\n<h2>{words(name)}</h2>\n{render(parts)}\n</section>' for at, name, parts in sections),
        f'</main>\n<footer class="status"><p>Made by vidrio {__version__}{words(told.footer)}; its files have these '
        f"sha256 checksums:{checksums}</p><p>This page needs no network and runs no script.</p></footer>",
        "</body>\n</html>",
    ]
    return "\n".join(lines) + "\n"


def fragment(blocks: Iterable[b.Block], precision: int = PRECISION) -> str:
    """Some blocks inside another page."""
    return _Rendering(precision, ()).blocks(blocks)


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


def _addresses(blocks: Iterable[b.Block]) -> Iterator[str]:
    """The quantities that a page holds, so that links lead to them."""
    for block in blocks:
        match block:
            case b.Quantity(address):
                yield address
            case b.Heads(quantities=parts) | b.Beside(blocks=parts) | b.Fold(blocks=parts):
                yield from _addresses(parts)


class _Rendering:
    """Blocks with so many decimals; `linked` are the quantities that links may lead to."""

    def __init__(self, precision: int, linked: Collection[str]) -> None:
        self.precision, self.linked = precision, linked

    def blocks(self, blocks: Iterable[b.Block]) -> str:
        """Each block; lines that follow each other stand in one frame."""
        drawn = []
        for is_line, some in groupby(blocks, key=lambda block: isinstance(block, str)):
            if is_line:
                lines = "\n".join(map(str, some)).strip("\n")
                drawn += [f"<pre>{words_of_lines(lines)}</pre>"] if lines else []
            else:
                drawn += map(self.block, some)
        return "\n".join(drawn)

    def block(self, block: b.Block) -> str:
        match block:
            case b.Title(title):
                return f"<h3>{words(title)}</h3>"
            case b.Note(note, kind=kind):
                style = {"": "", "warning": ' class="warning"', "quiet": ' class="left-out"'}[kind]
                with_code = re.sub("`([^`]+)`", r"<code>\1</code>", words(note))
                return f"<p{style}>{with_code}</p>"
            case b.Table():
                return self.table(block)
            case b.Numbers():
                return self.numbers(block)
            case b.Quantity():
                anchor = f'<div class="quantity" id="{block.address}">'
                return f"{anchor}{self.title(block)}{self.about(block)}{self.block(block.numbers)}</div>"
            case b.Heads(quantities):
                heads = "".join(
                    f'<div id="{head.address}">{self.title(head)}<p>{self.made_from(head)}</p>'
                    f"{self.block(head.numbers)}</div>"
                    for head in quantities
                )
                about = self.about(quantities[0], inputs=False)
                return f'<div class="quantity">{about}<div class="side-by-side">{heads}</div></div>'
            case b.Beside(parts):
                return f'<div class="side-by-side">{self.blocks(parts)}</div>'
            case b.Fold(title, about, parts, anchor):
                summary = f"{words(title)} <span>{words(about)}</span>" if about else words(title)
                at = f' id="{anchor}"' if anchor else ""
                return f"<details{at}><summary>{summary}</summary>{self.blocks(parts)}</details>"
            case b.Pairs(pairs):
                return f"<dl>{''.join(f'<dt>{words(name)}</dt><dd>{words(value)}</dd>' for name, value in pairs)}</dl>"
            case b.Predictions(steps):
                return self.table(_as_table(steps))
            case b.Curves():
                return svg.curves(block)
            case b.Heat():
                return svg.heat(block)
        return f"<pre>{escape(plain([block], self.precision))}</pre>"

    # --- quantities ---------------------------------------------------------------------------------------------------

    def title(self, quantity: b.Quantity) -> str:
        name, sizes = quantity.address, f"{' × '.join(quantity.axes)} = {shape(quantity.numbers.array)}"
        return f'<h4><a href="#{name}"><code>{name}</code></a> {sizes}</h4>'

    def about(self, quantity: b.Quantity, *, inputs: bool = True) -> str:
        formula = f' = <span class="formula">{words(quantity.formula)}</span>' if quantity.inputs else ""
        made = f" {self.made_from(quantity)}" if inputs else ""
        says = f'<span class="says">{words(quantity.says)}</span>'
        return f'<p>{says}{formula}{made} <span class="place">{words(quantity.place)}</span></p>'

    def made_from(self, quantity: b.Quantity) -> str:
        def link(name: str) -> str:
            return f'<a href="#{name}"><code>{name}</code></a>' if name in self.linked else f"<code>{name}</code>"

        return f"from {', '.join(map(link, quantity.inputs))}" if quantity.inputs else ""

    # --- tables -------------------------------------------------------------------------------------------------------

    def table(self, block: b.Table) -> str:
        """A table for reading, in a frame that scrolls where the page is too narrow for it."""
        heads = [f'<th scope="col" class="word">{words(head)}</th>' if head else "<td></td>" for head in block.heads]
        thead = f"<thead><tr>{''.join(heads)}</tr></thead>" if heads else ""
        labels = [f' data-label="{words(head)}"' for head in block.heads] if not block.row_heads else []
        rows = []
        for row in block.rows:
            cells = [self.cell(c, labels[i] if i < len(labels) else "") for i, c in enumerate(row)]
            if block.row_heads:
                cells[0] = re.sub("^<td(.*)</td>$", r'<th scope="row"\1</th>', cells[0])
            rows.append(f"<tr>{''.join(cells)}</tr>")
        frame = f'<div class="scroll" tabindex="0" role="region" aria-label="{words(block.name or "table")}">'
        table = f'{frame}<table class="large">{thead}<tbody>{"".join(rows)}</tbody></table></div>'
        return table if block.row_heads else f'<div class="samples">{table}</div>'

    def cell(self, cell: b.Cell, label: str = "") -> str:
        match cell:
            case b.Value(value, address, share):
                return _cell(number(value, self.precision), value, address, shaded=share)
            case b.Bar(share):
                return f"<td>{svg.bar(share)}</td>"
            case b.Words(raw, kind, bold):
                drawn = f"<b>{words(raw)}</b>" if bold else words(raw)
                if kind == "code":
                    return f'<td class="signature"><code>{drawn}</code></td>'
                return f'<td class="{kind}"{label}>{drawn}</td>'
        return f"<td{label}>{words(cell)}</td>"

    def numbers(self, block: b.Numbers) -> str:
        """A matrix as a table, a vector as one row of it: of a large one the first and the last rows and columns, and
        the range of the others."""
        array = np.asarray(block.array)
        grid = array if array.ndim == 2 else array.reshape(1, -1)
        shown_rows, shown_columns = (shown(n, limit) for n, limit in zip(grid.shape, block.limit, strict=True))
        columns = [self._column(block, grid, shown_rows, c) for c in shown_columns]
        corner = "<td></td>" if array.ndim == 2 else ""
        heads = "".join(
            '<th scope="col">…</th>' if c is None else _head(block.columns, c, "col") for c in shown_columns
        )
        lines = []
        for r, *cells in zip(shown_rows, *columns, strict=True):
            head = _head(block.rows, r, "row")
            lines.append(f"<tr>{head if array.ndim == 2 else ''}{''.join(cells)}</tr>")
        caption = f"<caption>{words(block.caption)}</caption>" if block.caption else ""
        name = f' aria-label="{words(block.address)}"' if block.address else ""
        drawn = (
            f'<div class="scroll" tabindex="0" role="region"{name}><table>{caption}'
            f"<thead><tr>{corner}{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        )
        hidden = np.ones(grid.shape, dtype=bool)
        hidden[np.ix_([r for r in shown_rows if r is not None], [c for c in shown_columns if c is not None])] = False
        if not hidden.any():
            return drawn
        left_out = f"{int(hidden.sum()):,} of {grid.size:,} numbers are left out here; they range from "
        told = value_range(grid[hidden], self.precision).replace(" … ", " to ")
        return f'{drawn}<p class="left-out">{left_out}{told}.</p>'

    def _column(self, block: b.Numbers, grid: np.ndarray, rows: Sequence[int | None], c: int | None) -> list[str]:
        """The cells of a column, their decimal points under each other."""
        if c is None:
            return ["<td>…</td>"] * len(rows)
        places = [r for r in rows if r is not None]
        drawn = dict(zip(places, at_point([number(grid[r, c].item(), self.precision) for r in places]), strict=True))
        at = _addresser(block.address, flat=np.ndim(block.array) < 2)
        return [
            "<td>…</td>" if r is None else _cell(drawn[r], float(grid[r, c]), at(r, c), shaded=block.shares)
            for r in rows
        ]


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


def words_of_lines(lines: str) -> str:
    return "\n".join(words(line) for line in lines.split("\n"))


def _cell(drawn: str, value: float, address: str, *, shaded: bool = False) -> str:
    """One number in its cell, with its address."""
    where = f' data-address="{words(address)}"' if address else ""
    tint = f' class="s{min(SHADES, int(value * SHADES) + 1)}"' if shaded and 0 < value <= 1 else ""
    return f"<td{where}{tint}>{drawn}</td>"


def _head(tokens: Sequence[str] | None, place: int | None, scope: str) -> str:
    if place is None:
        return f'<th scope="{scope}">…</th>'
    token = f" {words(tokens[place])}" if tokens else ""
    return f'<th scope="{scope}"><i>{place}</i>{token}</th>'


def _addresser(address: str, *, flat: bool) -> Callable[[int, int], str]:
    """The address of one number by its row and column: the index stands before the step."""
    name, at, step = address.partition("@")
    if not address:
        return lambda r, c: ""
    return lambda r, c: f"{name}[{c if flat else f'{r},{c}'}]{at}{step}"
