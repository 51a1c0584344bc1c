"""The numbers of a trace, read as Python floats: single ones, rows and columns, each fetched once."""

from dataclasses import dataclass, field
from functools import lru_cache

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.proof.expressions import PRECISIONS, Long, Number, Row

Place = tuple[int, ...]
Pattern = tuple[int | None, ...]  # a place with an axis left free

MOST_HELD = 4_000_000  # numbers kept as Python floats: a large model's columns must not fill the memory


@dataclass
class Cells:
    """Reads the numbers of one trace; rows and sums over them are fetched and worked out once."""

    trace: Trace
    arrays: dict[str, Array] = field(default_factory=dict)
    rows: dict[tuple[str, Pattern], Row] = field(default_factory=dict)
    sums: dict[tuple[str, Pattern], Long] = field(default_factory=dict)
    held: int = 0

    def __post_init__(self) -> None:
        of_a_parameter = next(iter(self.trace.machine.parameters.values())).dtype
        self.precision = PRECISIONS[of_a_parameter.name]

    def array(self, name: str) -> Array:
        if name not in self.arrays:
            self.arrays[name] = self.trace.array(name)
        return self.arrays[name]

    def number(self, name: str, place: Place) -> Number:
        return Number(self.array(name)[place].item(), (name, place))

    def row(self, name: str, pattern: Pattern) -> Row:
        row = self.rows.get((name, pattern))
        if row is None:
            if self.held > MOST_HELD:
                self.rows.clear()
                self.sums.clear()
                self.held = 0
            values = self.array(name)[tuple(slice(None) if p is None else p for p in pattern)].tolist()
            row = self.rows[name, pattern] = Row(name, pattern, values)
            self.held += len(row)
        return row

    def exps(self, row: Row, *, shifted: bool) -> Long:
        """The sum of the exponentials of a row; `shifted`: with its maximum taken off first."""
        if (row.name, row.place) not in self.sums:
            shift = Number(row.maximum, symbol="max") if shifted else None
            self.sums[row.name, row.place] = Long("exp", row, shift)
        return self.sums[row.name, row.place]


@lru_cache(maxsize=256)
def letters(indices: str, rank: int) -> tuple[tuple[str, ...], str]:
    """The index letters of the inputs and of the number itself; without the rows where there is only one row.

    `ik,kj,j->ij`: number (i, j) is made from row i of the first input, column j of the second, number j of the third. A
    letter on the left alone runs over its whole axis, but p is what the second input holds: a token's id, the token
    chosen.
    """
    inputs, made = indices.split("->")
    if len(made) > rank:
        inputs, made = inputs.replace("i", ""), made.replace("i", "")
    return tuple(inputs.split(",")), made


@dataclass(frozen=True)
class Making:
    """One number that is to be written down: where it stands, and where to read its inputs."""

    cells: Cells
    stage: Stage
    place: Place

    def token_at(self, i: int) -> str:
        """How to tell of index i of the last axis: with its token, if it stands for one."""
        tokens = self.cells.trace.axis_tokens(self.stage.address, self.stage.axes[-1]) if self.stage.axes else ()
        return f", at index {i}" + (f" {tokens[i]!r}" if i < len(tokens) else "")


def inputs_of(m: Making, indices: str) -> list[Number | Row]:
    """The numbers, or rows of numbers, that one number is made from."""
    if not indices:
        return []
    wanted, made = letters(indices, len(m.place))
    at: dict[str, int] = dict(zip(made, m.place, strict=True))
    if "p" in indices:
        at["p"] = int(m.cells.array(m.stage.inputs[1])[at["i"]])
    found: list[Number | Row] = []
    for name, axes in zip(m.stage.inputs, wanted, strict=False):  # a projection's bias may be missing
        pattern = tuple([at.get(axis) for axis in axes])
        found.append(m.cells.row(name, pattern) if None in pattern else m.cells.number(name, pattern))  # type: ignore[arg-type]
    return found
