"""The prose of the lessons: pages in data files, filled with computed values, as blocks that any drawing understands.

A page is written in paragraphs; the first two lines of one say how far it is indented, and the third is like the
second. Besides:

    | …                  a line by itself, neither broken nor joined with others
    1. …, - …, {n}  …    begins a paragraph, as an empty line does; its further lines stand below its words
    | a | b |            a table, if |--|--:| follows: columns to the left, to the right --:, or at the point --.
    ~ …                  a line by itself that is broken, its further lines two columns further in
    {name}               on a line of its own: blocks, or lines of text, put in as they are
    {a.b[c]:HOW}         anywhere: a value, and how it is written (`_written`)
    % for x in a.b       what follows, up to % end, for each of them (`% for x, y in …`, of pairs)
    % if a.b             what follows, up to % end, if there is any (`% if not …`, if there is none)

Whoever corrects or translates a page needs nothing else; a value that a page names and the lesson lacks is an error.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from string import Formatter
from typing import Any, NamedTuple

from vidrio.errors import LessonError
from vidrio.lessons.slips import flag
from vidrio.look import layout, terminal, writing
from vidrio.look import matrix as show
from vidrio.look.blocks import Block, Note, Numbers, Table

LISTED = re.compile(r" *(\d+\. |- |\{[^{}]*\}  )")
ITEM = re.compile(r" *(- |\S+  )")
BLOCK = re.compile(r"\{[^{}]*\}")
ROW = re.compile(r" *\|.*\|")
ALIGNS = re.compile(r" *\|(-+[:.]?\|)+")
CELLS = re.compile(r"(?<!\\)\|")  # a bar in a cell is written \|
PATH = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")

Values = Mapping[str, Any]


class Line(NamedTuple):
    """A line of a page, and the values that it may name."""

    text: str
    values: Values


@cache
def pages(name: str) -> dict[str, Any]:
    """The content of data/NAME.toml."""
    return tomllib.loads(resources.files("vidrio.lessons").joinpath(f"data/{name}.toml").read_text("utf-8"))


def text(page: str, values: Values, precision: int = writing.PRECISION) -> str:
    """The page as text, with these values."""
    return terminal.text(blocks(page, values, precision), precision)


def blocks(page: str, values: Values, precision: int = writing.PRECISION) -> Iterator[Block]:
    """The page with these values."""
    lines = _chosen(page.strip("\n").split("\n"), {**values, "precision": precision})
    for part in _parts(list(lines)):
        yield from _part(part)


def public(measured: Any) -> dict[str, Any]:
    """What a page may name of an experiment's result."""
    named = {name: getattr(measured, name) for name in dir(measured) if not name.startswith("_")}
    return named | {"measured": measured}


# --- lines and parts --------------------------------------------------------------------------------------------------


def _chosen(lines: Sequence[str], values: Values) -> Iterator[Line]:
    """The lines, with what stands under `% for` repeated, and what stands under `% if` there or not."""
    rest = iter(lines)
    for line in rest:
        if not line.startswith("% "):
            yield Line(line, values)
            continue
        inner = list(_up_to_its_end(rest))
        if line.startswith("% for "):
            names, path = line.removeprefix("% for ").split(" in ")
            for item in value_of(path, values):
                own = dict(zip(names.split(", "), item, strict=True)) if "," in names else {names: item}
                yield from _chosen(inner, {**values, **own})
        elif bool(value_of(line.removeprefix("% if ").removeprefix("not "), values)) != line.startswith("% if not "):
            yield from _chosen(inner, values)


def _up_to_its_end(rest: Iterator[str]) -> Iterator[str]:
    depth = 1
    for line in rest:
        depth += line.startswith(("% for ", "% if ")) - (line == "% end")
        if depth == 0:
            return
        yield line


def _parts(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Paragraphs, tables, and lines that stand by themselves."""
    start = 0
    for n, (line, _) in enumerate(lines):
        if n < start:
            continue
        if n + 1 < len(lines) and ALIGNS.fullmatch(lines[n + 1].text):
            rows = next((i for i in range(n, len(lines)) if not ROW.fullmatch(lines[i].text)), len(lines))
            yield from ([lines[start:n]] if start < n else [])
            yield lines[n:rows]
            start = rows
        elif _alone(line) or LISTED.match(line) or (n > start + 1 and _indent(line) != _indent(lines[start + 1].text)):
            yield from ([lines[start:n]] if start < n else [])
            start = n
            if _alone(line):
                yield [lines[n]]
                start = n + 1
    yield from ([lines[start:]] if start < len(lines) else [])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _alone(line: str) -> bool:
    return not line or line.startswith(("| ", "~ ")) or bool(BLOCK.fullmatch(line))


def _part(lines: Sequence[Line]) -> Iterator[Block]:
    first, values = lines[0]
    if len(lines) > 1 and ALIGNS.fullmatch(lines[1].text):
        yield _table(lines)
    elif BLOCK.fullmatch(first):
        yield from _put_in(*first[1:-1].partition(":")[::2], values)
    elif not first or first.startswith("| "):
        yield filled(first[2:], values).rstrip()
    elif first.startswith("~ "):
        yield Note(filled(first[2:], values), hang=2)
    else:
        indents = [_indent(line.text) for line in lines]
        words = " ".join(filled(line.text.strip(" "), line.values) for line in lines)
        words = " " * indents[0] + words
        item = ITEM.match(words) if len(lines) == 1 and LISTED.match(first) else None
        yield Note(words[indents[0] :], indents[0], len(item[0]) if item else indents[min(1, len(lines) - 1)])


def _table(lines: Sequence[Line]) -> Table:
    heads, *rows = (
        [filled(cell.strip().replace(r"\|", "|"), line.values) for cell in CELLS.split(line.text.strip())[1:-1]]
        for line in [lines[0], *lines[2:]]
    )
    aligns = {"-": "l", ":": "r", ".": "."}
    align = "".join(aligns[dashes[-1]] for dashes in lines[1].text.strip().strip("|").split("|"))
    return Table(rows, heads if any(heads) else (), align, _indent(lines[0].text))


def _put_in(path: str, how: str, values: Values) -> Iterator[Block]:
    """What stands on a line of its own: a slip, a matrix, blocks, or lines of text."""
    if path == "slip":
        yield from flag(int(how))
        return
    value = value_of(path, values)
    if how.startswith("matrix "):
        heads, decimals = how.split(" ")[1:3], how.split(" ")[3:]
        rows, columns = (() if name == "-" else None if name == "*" else value_of(name, values) for name in heads)
        numbers = Numbers(value, rows=rows, columns=columns)
        yield show.matrix(numbers, _decimals(decimals, values["precision"])) if decimals else numbers
    elif how or isinstance(value, str):
        yield _written(value, how, values["precision"])
    else:
        yield from [value] if hasattr(value, "_fields") else value


# --- values -----------------------------------------------------------------------------------------------------------


def value_of(path: str, values: Values) -> Any:
    """`a.b[c]`: of an object or a mapping; c is a value of the page, a number, or a key as it stands."""
    try:
        value: Any = values
        for attribute, key in PATH.findall(f".{path}"):
            if key:
                value = value[_key(key, values)]
            else:
                value = value[attribute] if isinstance(value, Mapping) else getattr(value, attribute)
    except (LookupError, AttributeError, TypeError):
        raise LessonError(f"the page names {{{path}}}, and the lesson computes nothing of that name") from None
    return value


def _key(key: str, values: Values) -> Any:
    if key in values:
        return values[key]
    return int(key) if key.lstrip("-").isdigit() else key


def filled(text: str, values: Values) -> str:
    """The text with its values put in."""
    return "".join(
        literal + ("" if path is None else _written(value_of(path, values), how or "", values["precision"]))
        for literal, path, how, _ in Formatter().parse(text)
    )


def _written(value: Any, how: str, precision: int) -> str:
    """A value as a page asks for it; what is not named here is Python's own `format`.

    number [P]          with the precision asked for; P: with so many decimals; P+: with so many at least
    size                a difference: exactly 0, or its size
    short [P]           a number of any size in few characters
    shape               2 × 4
    bar N               a share from 0 to 1 as a bar of N columns
    visible, cut N      a word with nothing invisible in it, in N columns at most
    list, joined SIGN   numbers with commas, or with this sign, between them
    row P               numbers side by side, all with P decimals
    count               how many there are
    percent, factor     32.5 %, × 1.7
    of what is or is not: `words/other words`; None is a dash
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return how.partition("/")[0 if value else 2]
    way, *given = how.split(" ")
    match way:
        case "number":
            return writing.number(float(value), _decimals(given, precision))
        case "list" | "joined":
            sign = f" {given[0]} " if given else ", "
            return sign.join(writing.number(float(number), precision) for number in value)
        case "visible":
            return writing.visible(value)
        case "row":
            return " ".join(f"{number:.{given[0]}f}" for number in value)
        case "percent":
            return f"{100 * value:.4g} %"
        case "factor":
            return f"× {value:.3g}"
        case "size":
            return size(value)
        case "short":
            return short(value, _decimals(given, precision))
        case "count":
            return str(len(value))
        case "shape":
            return writing.shape(value)
        case "bar":
            return layout.bar(float(value), int(given[0]))
        case "cut":
            return writing.cut(value, int(given[0]))
    return format(value, how)


def _decimals(given: Sequence[str], precision: int) -> int:
    if not given:
        return precision
    return max(precision, int(given[0][:-1])) if given[0].endswith("+") else int(given[0])


def size(difference: float) -> str:
    """A difference in words: exactly 0, or its size."""
    return "0" if difference == 0 else f"{difference:.2g}"


def short(value: float, precision: int = 3) -> str:
    """A number of any size in few characters."""
    precision = max(1, precision)
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{max(1, precision - 1)}e}"
    return f"{value:.{precision}g}" if abs(value) < 10 else f"{value:.{precision + 1}g}"


def counted(n: int, what: str) -> str:
    """`6 layers`."""
    return f"{n} {what}" + "s" * (n != 1)
