"""The prose of the lessons: pages in data files, laid out in 80 columns, with computed values put in by name.

A page is written in paragraphs; the first two lines of one say how far it is indented, and the third is like the
second. Besides:

    | …                  a line by itself, neither broken nor joined with others
    1. …                 begins a paragraph, as an empty line does
    {name}               on a line of its own: a table or matrix, put in as it is
    {a.b[c]:HOW}         anywhere: a value, and how it is written (`_Values.format_field`)
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from string import Formatter
from typing import Any

from vidrio.draw import show
from vidrio.lessons.slips import flag

LISTED = re.compile(r"\d+\. ")
BLOCK = re.compile(r"\{[^{}]*\}")


def pages(name: str) -> dict[str, Any]:
    """The content of data/NAME.toml."""
    return tomllib.loads(resources.files("vidrio.lessons").joinpath(f"data/{name}.toml").read_text("utf-8"))


def laid_out(page: str, values: Mapping[str, Any], precision: int = show.PRECISION) -> str:
    """The page as text, with these values."""
    formatter = _Values(values, precision)
    return "\n".join(text for lines in _parts(page.strip("\n")) for text in _part(lines, formatter))


def _parts(page: str) -> Iterator[list[str]]:
    """Paragraphs, and lines that stand by themselves."""
    paragraph: list[str] = []
    for line in page.split("\n"):
        alone = not line or line.startswith("| ") or BLOCK.fullmatch(line)
        if paragraph and (alone or LISTED.match(line)):
            yield paragraph
            paragraph = []
        if alone:
            yield [line]
        else:
            paragraph.append(line)
    if paragraph:
        yield paragraph


def _part(lines: Sequence[str], formatter: "_Values") -> Iterator[str]:
    first = lines[0]
    if not first or BLOCK.fullmatch(first):
        yield formatter.filled(first)
    elif first.startswith("| "):
        yield formatter.filled(first[2:])
    else:
        indents = [line[: len(line) - len(line.lstrip(" "))] for line in lines]
        text = formatter.filled(" ".join(line.strip(" ") for line in lines))
        yield show.wrap(text, indent=indents[0], hang=indents[min(1, len(lines) - 1)])


class _Values(Formatter):
    """Python's own `str.format`, with some more ways to write a value.

    number [P]             with the precision asked for; P: with so many decimals; P+: with so many at least
    size                   a difference: exactly 0, or its size
    matrix ROWS COLUMNS [P]  the heads are values too; - for none, * for the bare places
    """

    def __init__(self, values: Mapping[str, Any], precision: int) -> None:
        self.values, self.precision = {**values, "slip": flag, "precision": precision}, precision

    def filled(self, text: str) -> str:
        return self.vformat(text, (), self.values)

    def format_field(self, value: Any, spec: str) -> str:
        how, *given = spec.split(" ")
        if value is flag:
            return flag(int(spec))
        if how == "size":
            return size(value)
        if how == "number":
            return show.number(float(value), self._decimals(given))
        if how == "matrix":
            return show.matrix(value, self._heads(given[0]), self._heads(given[1]), self._decimals(given[2:]))
        return str(super().format_field(value, spec))

    def _decimals(self, given: Sequence[str]) -> int:
        if not given:
            return self.precision
        return max(self.precision, int(given[0][:-1])) if given[0].endswith("+") else int(given[0])

    def _heads(self, name: str) -> Sequence[str] | None:
        return () if name == "-" else None if name == "*" else self.values[name]


def size(difference: float) -> str:
    """A difference in words: exactly 0, or its size."""
    return "0" if difference == 0 else f"{difference:.2g}"


def counted(n: int, what: str) -> str:
    """`6 layers`."""
    return f"{n} {what}" + "s" * (n != 1)
