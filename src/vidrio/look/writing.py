"""How numbers, words, paragraphs and tables are written: plain text in 80 columns, without colour.

It is readable in logs, in pipes and by screen readers, and contains nothing that moves a terminal's cursor.
"""

import math
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

WIDTH = 80  # columns of a terminal
PRECISION = 4  # decimals
NO_BREAK = "\N{NO-BREAK SPACE}"

_JOINERS = "\u200c\u200d"


def number(value: float, precision: int = PRECISION) -> str:
    """A number with `precision` decimals, in a form that Python can read.

    Only an exact zero is written 0. Numbers that would round to zero, and very large ones, have an exponent.
    """
    if isinstance(value, int | np.integer):
        return str(int(value))
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value:.{max(2, precision)}e}"
    fixed = f"{value:.{precision}f}"
    return f"{value:.{max(1, precision - 2)}e}" if float(fixed) == 0 else fixed


def value_range(array: Any, precision: int = PRECISION) -> str:
    """`-3.2100 … 4.0700` for the finite values, and the number of others."""
    array = np.asarray(array)
    finite = array[np.isfinite(array)]
    parts = [f"{number(finite.min(), precision)} … {number(finite.max(), precision)}"] if finite.size else []
    for name, test in (("NaN", np.isnan), ("inf", np.isposinf), ("-inf", np.isneginf)):
        count = int(test(array).sum()) if array.dtype.kind == "f" else 0
        parts += [f"{count} {name}"] if count else []
    return ", ".join(parts) or "nothing"


def shape(array: Any) -> str:
    """`2 × 4`."""
    return " × ".join(map(str, np.shape(array))) or "one number"


def visible(text: str) -> str:
    """Text with control and direction characters, which could move a terminal's cursor, written as escapes.

    The joiners of Persian, of Indic scripts and of emoji are kept between the characters that they join.
    """
    return "".join(
        c
        if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        or (c in _JOINERS and 0 < i < len(text) - 1)
        else _written_out(c)
        for i, c in enumerate(text)
    )


def _written_out(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, f"<U+{ord(character):04X}>")


def text_width(text: str) -> int:
    """The number of columns of a text on a terminal: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns; `…` marks a cut."""
    text = visible(text)
    if text_width(text) <= width:
        return text
    kept = sum(used < width for used in accumulate(map(text_width, text)))
    return text[:kept] + "…"


# --- bars -------------------------------------------------------------------------------------------------------------

_BARS = "▁▂▃▄▅▆▇█"


def shade(value: float) -> str:
    """A bar of eight heights for a share from 0 to 1; nothing for 0 and for no share."""
    if not 0 < value <= 1:
        return " "
    return _BARS[min(7, int(value * 8 + 1e-3))]


# --- text in columns --------------------------------------------------------------------------------------------------


def left(text: str, width: int) -> str:
    """Left-aligned text of a column."""
    return text + " " * max(0, width - text_width(text))


def right(text: str, width: int) -> str:
    """Right-aligned text of a column."""
    return " " * max(0, width - text_width(text)) + text


def note(text: str, indent: int = 0, hang: int | None = None) -> str:
    """A paragraph with an indent of `indent` before its first line and `hang` before the others (by default the
    same)."""
    return wrap(visible(text), WIDTH, " " * indent, None if hang is None else " " * hang)


def apart(parts: Iterable[Iterable[str]]) -> Iterator[str]:
    """The parts one after the other, separated by empty lines."""
    for n, part in enumerate(parts):
        if n:
            yield ""
        yield from part


def wrap(text: str, width: int = WIDTH, indent: str = "", hang: str | None = None) -> str:
    """A paragraph wrapped at spaces: `indent` before the first line, `hang` (by default the same) before the others.

    Words longer than a line are not broken. A no-break space keeps its neighbours on one line, and is printed as a
    space.
    """
    lines, line, empty = [], indent, True
    for word in text.split(" "):
        if not empty and text_width(line) + 1 + text_width(word) > width:
            lines.append(line)
            line, empty = indent if hang is None else hang, True
        line, empty = (line + word if empty else f"{line} {word}"), False
    return "\n".join([*lines, line]).replace(NO_BREAK, " ")


def table(rows: Sequence[Sequence[str]], headers: Sequence[str] = (), align: str = "", indent: int = 0) -> str:
    """Cells in columns; `align` has one letter per column: l (left, the default), r (right), . (at the decimal
    point)."""
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
    return "\n".join(" " * indent + "  ".join(line).rstrip() for line in zip(*columns, strict=True))


def at_point(cells: Sequence[str]) -> list[str]:
    """Numbers as text, padded so that their decimal points align."""
    split = [cell.partition(".") for cell in cells]
    before = max((len(whole) for whole, _, _ in split), default=0)
    after = max((len(point + rest) for _, point, rest in split), default=0)
    return [right(whole, before) + left(point + rest, after) for whole, point, rest in split]


def side_by_side(heads: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> list[str]:
    """Columns of equal width with headings, in blocks that fit the width."""
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


# --- command lines that lead on from a view, written so that they can be copied -------------------------------------


@dataclass(frozen=True)
class CommandLine:
    """The same text and model, with another question."""

    text: str
    options: tuple[str, ...] = ()  # options to repeat: --model, what-ifs

    def look(self, *arguments: str) -> str:
        return " ".join(["vidrio look", quoted(self.text), *map(quoted, (*self.options, *arguments))])

    def why(self, address: str) -> str:
        return " ".join(["vidrio why", quoted(address), quoted(self.text), *map(quoted, self.options)])


def quoted(argument: str) -> str:
    """A shell argument, in double quotes if that is safe, since they are easier to read. Characters that move a cursor
    are escaped."""
    argument = visible(argument)
    if (argument and not set(argument) & set(" \"'$`\\!*?[]{}()<>|&;#~")) or argument.startswith("--"):
        return argument
    return f'"{argument}"' if not set(argument) & set('"$`\\!') else shlex.quote(argument)
