"""What a view shows, as data: a view is a list of blocks, and `terminal.py` makes text, `page.py` a page of it.

    ""                  an empty line
    "vidrio look …"     a line that is never broken: something to copy, an address with its value
    Note("A sentence")  a paragraph

`Numbers` and `Value` hold the numbers themselves with their addresses; how many decimals are drawn is for the drawing
to say. Texts are as they are: the drawing makes what is invisible visible. What only a terminal shows, and no page, is
written as lines (layout.py) where it is made.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from vidrio.glass.cells import Stage
from vidrio.glass.maths import Array
from vidrio.look.measures import Candidate

LIMIT = 12  # rows or columns drawn before the rest is left out

# --- cells ------------------------------------------------------------------------------------------------------------


class Value(NamedTuple):
    """A number of the trace."""

    value: float
    address: str = ""
    share: bool = False  # between 0 and 1: it is shaded beside its digits
    label: str = ""  # before it, where no head says what it is


class Bar(NamedTuple):
    """A share from 0 to 1 as a bar."""

    share: float
    width: int = 10  # columns of a terminal


class Words(NamedTuple):
    """Words in a table; a bare string is a figure, or whatever stands well at the right of a narrow column."""

    words: str
    kind: Literal["word", "said", "note", "code"] = "word"
    bold: bool = False


Cell = str | Value | Bar | Words
Rows = list[list[Cell]]

# --- blocks -----------------------------------------------------------------------------------------------------------


class Title(NamedTuple):
    """The line above what belongs together."""

    text: str


class Note(NamedTuple):
    """A paragraph. On a page, what stands in `backticks` is code."""

    text: str
    indent: int = 0  # columns, on a terminal: of its first line,
    hang: int | None = None  # and of the others, if that is another number
    tone: Literal["", "warning", "quiet"] = ""


class Table(NamedTuple):
    """Rows of cells below their heads; `align` has a letter a column: l, r, or . for the decimal point."""

    rows: Sequence[Sequence[Cell]]
    heads: Sequence[str] = ()
    align: str = ""
    indent: int = 2
    name: str = ""
    row_heads: bool = True  # the first cell of a row says what the others are of
    whole: Sequence[Sequence[Cell]] = ()  # all rows, where `rows` are some: a page keeps them as CSV


class Numbers(NamedTuple):
    """A vector or matrix with the tokens of its rows and columns (None: bare places; empty: no heads at all)."""

    array: Array
    address: str = ""
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    limit: tuple[int, int] = (LIMIT, LIMIT)  # rows and columns drawn
    shares: bool = False
    caption: str = ""
    largest: bool = False  # of a row over a vocabulary only the largest numbers, and the sum or range of the others


class Quantity(NamedTuple):
    """A quantity of the trace: what it is, how it is made, and its numbers."""

    address: str
    axes: str  # L × M
    stage: Stage
    numbers: Numbers


class Prediction(NamedTuple):
    """A decoding step: what it starts from, the token taken, its log p, and the likeliest tokens."""

    after: str
    token: str
    log_p: float
    candidates: Sequence[Candidate]
    given: bool = False  # by the prompt


class Predictions(NamedTuple):
    """Every decoding step; `drawn` by their probabilities, or the likeliest by search."""

    steps: Sequence[Prediction]
    drawn: bool = False


# --- blocks that only a page has --------------------------------------------------------------------------------------


class Beside(NamedTuple):
    """Tables and pictures that stand beside each other where there is room."""

    blocks: Sequence["Block"]


class Fold(NamedTuple):
    """Something that is shown only when it is asked for."""

    title: str
    blocks: Sequence["Block"]


class Pairs(NamedTuple):
    """Names and what they stand for."""

    pairs: Sequence[tuple[str, str]]


class Curve(NamedTuple):
    """One line of a picture: (step, value), in order. A few values are marked one by one."""

    name: str
    points: Sequence[tuple[float, float]]
    marked: bool = False


class Curves(NamedTuple):
    """Some curves against steps, with the minutes below: (step, minute)."""

    title: str
    lines: Sequence[Curve]
    minutes: Sequence[tuple[float, float]]
    from_zero: bool = False


class Heat(NamedTuple):
    """Shares from 0 to 1 as a shaded picture; a row sums to 1."""

    weights: Array
    rows: Sequence[str]
    columns: Sequence[str]
    caption: str


class Ages(NamedTuple):
    """One sentence at every age of a model, to go through from random to trained (look/history.py as data)."""

    history: Mapping[str, Any]


Block = str | Title | Note | Table | Numbers | Quantity | Predictions | Beside | Fold | Pairs | Curves | Heat | Ages


class Section(NamedTuple):
    """A part of a page; one without blocks is left out."""

    anchor: str
    title: str
    blocks: Sequence[Block]


class Page(NamedTuple):
    """A whole page: a heading with what must be read first, sections, and the checksums of what it tells of."""

    title: str
    header: Sequence[Block]
    sections: Iterable[Section]
    checksums: Sequence[tuple[str, str]]


def apart(parts: Iterable[Iterable[Block]]) -> Iterator[Block]:
    """The parts one after the other, an empty line between them."""
    for n, part in enumerate(parts):
        if n:
            yield ""
        yield from part
