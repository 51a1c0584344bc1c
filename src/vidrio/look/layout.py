"""Bars, and text in columns, as a terminal shows them."""

from collections.abc import Sequence
from textwrap import indent

from vidrio.look.writing import NO_BREAK, WIDTH, left, text_width

_BARS = "▁▂▃▄▅▆▇█"

# --- bars -------------------------------------------------------------------------------------------------------------


def shade(value: float) -> str:
    """A bar of eight heights for a share from 0 to 1, nearly equal ones alike; nothing for 0 and for no share."""
    if not 0 < value <= 1:
        return " "
    return _BARS[min(7, int(value * 8 + 1e-3))]


def bar(value: float, width: int = 10) -> str:
    """A bar of `width` cells for a share from 0 to 1, in eighths of a cell, padded to its width."""
    if not 0 <= value <= 1:
        return " " * width
    eighths = round(value * width * 8)
    drawn = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
    return drawn.ljust(width)


# --- text in columns --------------------------------------------------------------------------------------------------


def right(text: str, width: int) -> str:
    """Text at the right of a column."""
    return " " * max(0, width - text_width(text)) + text


def wrap(text: str, width: int = WIDTH, indent: str = "", hang: str | None = None) -> str:
    """A paragraph broken at spaces: `indent` before the first line, `hang` (else the same) before the later ones.

    A word longer than a line stays whole. A no-break space keeps what it joins on one line, and is printed as a space.
    """
    lines, line, empty = [], indent, True
    for word in text.split(" "):
        if not empty and text_width(line) + 1 + text_width(word) > width:
            lines.append(line)
            line, empty = indent if hang is None else hang, True
        line, empty = (line + word if empty else f"{line} {word}"), False
    return "\n".join([*lines, line]).replace(NO_BREAK, " ")


def table(rows: Sequence[Sequence[str]], headers: Sequence[str] = (), align: str = "", gap: str = "  ") -> str:
    """Cells in columns; `align` has one letter a column: l (left, the default), r (right), . (at the decimal point)."""
    if not rows:
        return gap.join(headers)
    n = max(len(row) for row in rows)
    align = align.ljust(n, "l")
    columns = []
    for c in range(n):
        cells = [row[c] if c < len(row) else "" for row in rows]
        if align[c] == ".":
            cells = at_point(cells)
        head = [headers[c]] if c < len(headers) else [""] if headers else []
        put = left if align[c] == "l" else right
        width = max(map(text_width, [*head, *cells]))
        columns.append([put(cell, width) for cell in [*head, *cells]])
    return "\n".join(gap.join(line).rstrip() for line in zip(*columns, strict=True))


def at_point(cells: Sequence[str]) -> list[str]:
    """Numbers as text, padded so that their decimal points stand under each other."""
    split = [cell.partition(".") for cell in cells]
    before = max((len(whole) for whole, _, _ in split), default=0)
    after = max((len(point + rest) for _, point, rest in split), default=0)
    return [right(whole, before) + left(point + rest, after) for whole, point, rest in split]


def side_by_side(heads: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> list[str]:
    """Columns, the cells of each of one width, at the right of their heads: in blocks of lines that fit the width."""
    head_width = max(map(text_width, heads))
    blocks: list[list[Sequence[str]]] = []
    used = 0
    for column in columns:
        more = 2 + text_width(column[0])
        if not blocks or head_width + used + more > width:
            blocks.append([[left(head, head_width) for head in heads]] if head_width else [])
            used = 0
        blocks[-1].append(column)
        used += more
    return ["\n".join("  ".join(line).rstrip() for line in zip(*block, strict=True)) for block in blocks]


def lying(heads: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    """A table on its side: heads at the left, as many columns beside each other as fit, the others below."""
    padded = [[left(cell, max(map(text_width, column))) for cell in column] for column in columns]
    return indent("\n\n".join(side_by_side(heads, padded, WIDTH - 2)), "  ")
