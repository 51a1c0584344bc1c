"""Formats numbers, paragraphs and tables as plain text, 80 columns wide and without colour.

The output is suitable for logs, pipes and screen readers, and contains no cursor-control sequences.
"""

import math
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

WIDTH = 80  # width of a terminal, in columns
PRECISION = 4  # decimal places
NO_BREAK = "\N{NO-BREAK SPACE}"

_JOINERS = "\u200c\u200d"


def number(value: float, precision: int = PRECISION) -> str:
    """Format a number with `precision` decimal places, in a form that Python can parse.

    Only an exact zero is written as 0. Very large numbers, and small ones that would round to zero, are written in
    exponential notation.
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
    """Format the range of the finite values (`-3.2100 … 4.0700`) and the counts of NaN and infinities, if any."""
    array = np.asarray(array)
    finite = array[np.isfinite(array)]
    parts = [f"{number(finite.min(), precision)} … {number(finite.max(), precision)}"] if finite.size else []
    for name, test in (("NaN", np.isnan), ("inf", np.isposinf), ("-inf", np.isneginf)):
        count = int(test(array).sum()) if array.dtype.kind == "f" else 0
        parts += [f"{count} {name}"] if count else []
    return ", ".join(parts) or "nothing"


def shape(array: Any) -> str:
    """Format the shape of an array, e.g. `2 × 4`."""
    return " × ".join(map(str, np.shape(array))) or "one number"


def visible(text: str) -> str:
    """Escape control and formatting characters, which could move a terminal's cursor or reorder its text.

    Zero-width joiners and non-joiners, which Persian, Indic scripts and emoji need, are kept between characters.
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
    """Return the width of a text in columns. Wide East Asian characters count as two, and combining marks as zero."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, width: int) -> str:
    """Truncate a text to `width` columns. The result ends in `…` if anything was removed."""
    text = visible(text)
    if text_width(text) <= width:
        return text
    kept = sum(used < width for used in accumulate(map(text_width, text)))
    return text[:kept] + "…"


# --- bars -------------------------------------------------------------------------------------------------------------

_BARS = "▁▂▃▄▅▆▇█"


def shade(value: float) -> str:
    """Return a bar whose height represents a value from 0 to 1, or a space if the value is 0 or out of range."""
    if not 0 < value <= 1:
        return " "
    return _BARS[min(7, int(value * 8 + 1e-3))]


# --- text in columns --------------------------------------------------------------------------------------------------


def left(text: str, width: int) -> str:
    """Left-align a text in a column of this width."""
    return text + " " * max(0, width - text_width(text))


def right(text: str, width: int) -> str:
    """Right-align a text in a column of this width."""
    return " " * max(0, width - text_width(text)) + text


def note(text: str, indent: int = 0, hang: int | None = None) -> str:
    """Escape and wrap a paragraph. The first line is indented by `indent` columns, and later lines by `hang` (default:
    `indent`)."""
    return wrap(visible(text), WIDTH, " " * indent, None if hang is None else " " * hang)


def apart(parts: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of each part, with a blank line between parts."""
    for n, part in enumerate(parts):
        if n:
            yield ""
        yield from part


def wrap(text: str, width: int = WIDTH, indent: str = "", hang: str | None = None) -> str:
    """Wrap a paragraph at spaces. The first line starts with `indent`, and later lines with `hang` (default: `indent`).

    A word longer than a line is not broken. Words joined by a no-break space stay on one line, and an ordinary space
    is printed between them.
    """
    lines, line, empty = [], indent, True
    for word in text.split(" "):
        if not empty and text_width(line) + 1 + text_width(word) > width:
            lines.append(line)
            line, empty = indent if hang is None else hang, True
        line, empty = (line + word if empty else f"{line} {word}"), False
    return "\n".join([*lines, line]).replace(NO_BREAK, " ")


def table(rows: Sequence[Sequence[str]], headers: Sequence[str] = (), align: str = "", indent: int = 0) -> str:
    """Format a table. `align` has one character per column: l (left, the default), r (right) or . (at the decimal
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
    """Pad formatted numbers so that their decimal points align."""
    split = [cell.partition(".") for cell in cells]
    before = max((len(whole) for whole, _, _ in split), default=0)
    after = max((len(point + rest) for _, point, rest in split), default=0)
    return [right(whole, before) + left(point + rest, after) for whole, point, rest in split]


def side_by_side(heads: Sequence[str], columns: Sequence[Sequence[str]], width: int) -> list[str]:
    """Lay out columns next to the row headings, starting a new block whenever the width is exceeded."""
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


# --- command lines for the user to copy -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CommandLine:
    """Builds commands that repeat a text and its options."""

    text: str
    options: tuple[str, ...] = ()  # options to repeat in each command: --model, what-ifs

    def look(self, *arguments: str) -> str:
        return self._command("look", (self.text,), arguments)

    def why(self, address: str) -> str:
        return self._command("why", (address, self.text))

    def _command(self, verb: str, words: Sequence[str], arguments: Sequence[str] = ()) -> str:
        options = (*self.options, *arguments)
        # A text that begins with - would be taken for an option.
        ordered = (*options, "--", *words) if self.text.startswith("-") else (*words, *options)
        return " ".join(["vidrio", verb, *map(quoted, ordered)])


def quoted(argument: str) -> str:
    """Escape control characters, and quote a shell argument if necessary. Double quotes, which are easier to
    read, are used unless the shell would interpret a character inside them."""
    argument = visible(argument)
    if argument and not set(argument) & set(" \"'$`\\!*?[]{}()<>|&;#~"):
        return argument
    return f'"{argument}"' if not set(argument) & set('"$`\\!') else shlex.quote(argument)
