"""One number of a trace made again from the numbers it was made from: a second, independent implementation.

It reads the operation's name in `stages.py` and the input values in the trace, and writes down the arithmetic of that
one number (`expressions.py`) from the paper's formula. It shares no maths with the functions that it checks: no NumPy
arithmetic, no matrix product; each number by itself.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from vidrio.errors import AddressError
from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.proof.expressions import (
    PRECISIONS,
    Apply,
    Cell,
    Difference,
    Dot,
    Expression,
    Exps,
    InFloat64,
    Number,
    Power,
    Precision,
    Product,
    Quotient,
    Row,
    Squares,
    Sum,
    Total,
    bounded,
    evaluate,
    exponential,
)

Place = tuple[int, ...]
Pattern = tuple[int | None, ...]  # a place with an axis left free

# Which numbers of its inputs a number is made from. `ik,kj,j->ij`: number (i, j) from row i of the first input, column
# j of the second, and number j of the third. A letter on the left alone runs over its whole axis.
INDICES = {
    "scale": "ij->ij",
    "learned_positions": "ij->ij",
    "add": "ij,ij->ij",
    "project": "ik,kj,j->ij",
    "project_tied": "ik,jk,j->ij",
    "rows_dot_rows": "ik,jk->ij",
    "divide": "ij->ij",
    "divide_by": "ij->ij",
    "mask": "ij->ij",
    "zero_scores": "ij->ij",
    "softmax": "ik->ij",
    "naive_softmax": "ik->ij",
    "rows_dot_columns": "ik,kj->ij",
    "mean": "ij->i",
    "variance": "ij,i->i",
    "normalise": "ij,i,i->ij",
    "gain_and_bias": "ij,j,j->ij",
    "relu": "ij->ij",
    "gelu": "ij->ij",
    "swish": "ij->ij",
    "copy": "ij->ij",
    "column_mean": "ij->j",
}


def letters(operation: str, rank: int) -> tuple[list[str], str]:
    """The index letters of the inputs and of the number itself; without the rows where there is only one row."""
    inputs, made = INDICES[operation].split("->")
    if len(made) > rank:
        inputs, made = inputs.replace("i", ""), made.replace("i", "")
    return inputs.split(","), made


MOST_HELD = 4_000_000  # numbers kept as Python floats: a large model's columns must not fill the memory


@dataclass
class Cells:
    """The numbers of a trace as Python floats, each row fetched once."""

    trace: Trace
    rows: dict[tuple[str, Pattern], Row] = field(default_factory=dict)
    sums: dict[tuple[str, Pattern], Exps] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    held: int = 0

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

    def exps(self, name: str, pattern: Pattern, *, shifted: bool) -> Exps:
        if (name, pattern) not in self.sums:
            row = self.row(name, pattern)
            maximum = Number(row.maximum, symbol=MAXIMUM)
            self.sums[name, pattern] = Exps(row, maximum if shifted else None)
        return self.sums[name, pattern]


MAXIMUM = "max"


@dataclass(frozen=True)
class Making:
    """What an operation needs to know to write down one number."""

    cells: Cells
    stage: Stage
    place: Place
    inputs: Sequence[Number | Row]  # as INDICES says


def inputs_of(cells: Cells, stage: Stage, place: Place) -> list[Number | Row]:
    """The numbers, or rows of numbers, that one number is made from."""
    if stage.operation not in INDICES:
        return []
    wanted, made = letters(stage.operation, len(place))
    bound = dict(zip(made, place, strict=True))
    found: list[Number | Row] = []
    for name, axes in zip(stage.inputs, wanted, strict=False):  # a projection's bias may be missing
        pattern = tuple(bound.get(axis) for axis in axes)
        whole = tuple(p for p in pattern if p is not None)
        found.append(cells.number(name, whole) if len(whole) == len(pattern) else cells.row(name, pattern))
    return found


def picked_by(stage: Stage, place: Place) -> list[Cell]:
    """Numbers that do not enter the formula, but say which numbers do: the id of a looked-up row, the chosen token."""
    return [(stage.inputs[1], place[:1])] if stage.operation in ("lookup", "log_of_choice") else []


def expression(cells: Cells, stage: Stage, place: Place) -> Expression:
    """How one number is made."""
    make = OPERATIONS.get(stage.operation)
    if make is None:
        raise AddressError(f"{stage.address} is made by {stage.operation!r}, which nobody can recompute")
    return make(Making(cells, stage, place, inputs_of(cells, stage, place)))


# --- the operations ---------------------------------------------------------------------------------------------------


def _itself(m: Making) -> Expression:
    """A trained number, a token's id, or the search's choice: not computed."""
    return m.cells.number(m.stage.address, m.place)


def _same(m: Making) -> Expression:
    return _number(m, 0)


def _lookup(m: Making) -> Expression:
    table, ids = m.stage.inputs
    token = m.cells.number(ids, m.place[:1])
    return m.cells.number(table, (int(token.value), m.place[1]))


def _scale(m: Making) -> Expression:
    config = m.cells.trace.machine.config
    if not config.scale_embeddings:
        return _number(m, 0)
    return Product(Number(math.sqrt(config.d_model), symbol="√D", rounded=True), _number(m, 0))


def _wave(position: int, pair: int, d_model: int, function: str) -> Expression:
    """sin or cos of position / 10000^(2 pair / D); §3.5."""
    exponent = Quotient(Number(2.0 * pair), Number(float(d_model), symbol="D"))
    return InFloat64(Apply(function, Quotient(Number(float(position)), Power(Number(10000.0), exponent))))


def _sinusoidal(m: Making) -> Expression:
    position, column = m.place
    return _wave(position, column // 2, _width(m), "cos" if column % 2 else "sin")


def _sinusoidal_halves(m: Making) -> Expression:
    (position, column), half = m.place, _width(m) // 2
    return _wave(position, column % half, _width(m), "sin" if column < half else "cos")


def _slipped(m: Making) -> Expression:
    position, column = m.place
    return _wave(position, column, _width(m), "cos" if column % 2 else "sin")


def _none(m: Making) -> Expression:
    return Number(0.0)


def _add(m: Making) -> Expression:
    return Sum((_number(m, 0), _number(m, 1)))


def _project(m: Making) -> Expression:
    product = Dot(_row(m, 0), _row(m, 1))
    return product if len(m.inputs) == 2 else Sum((product, _number(m, 2)))


def _dot(m: Making) -> Expression:
    return Dot(_row(m, 0), _row(m, 1))


def _divide(m: Making) -> Expression:
    root = math.sqrt(m.cells.trace.machine.config.d_head)
    return Quotient(_number(m, 0), Number(root, symbol="√K", rounded=True))


def _divide_by(m: Making) -> Expression:
    return Quotient(_number(m, 0), Number(float(m.cells.trace.machine.score_divisor), rounded=True))


def _mask(m: Making) -> Expression:
    row, column = m.place
    return _number(m, 0) if column <= row else Number(-math.inf, symbol="−∞")


def _zero_scores(m: Making) -> Expression:
    row, column = m.place
    return _number(m, 0) if column <= row else Number(0.0)


def _softmax(m: Making) -> Expression:
    return _share(m, shifted=True)


def _naive_softmax(m: Making) -> Expression:
    return _share(m, shifted=False)


def _share(m: Making, *, shifted: bool) -> Expression:
    row = _row(m, 0)
    exps = m.cells.exps(row.name, row.place, shifted=shifted)
    return Quotient(exponential(row[m.place[-1]], exps.shift), exps)


def _mean(m: Making) -> Expression:
    return Quotient(Total(_row(m, 0)), Number(float(len(_row(m, 0)))))


def _variance(m: Making) -> Expression:
    return Quotient(Squares(_row(m, 0), _number(m, 1)), Number(float(len(_row(m, 0)))))


def _normalise(m: Making) -> Expression:
    epsilon = Number(m.cells.trace.machine.config.norm_epsilon, symbol="ε", rounded=True)
    return Quotient(Difference(_number(m, 0), _number(m, 1)), Apply("sqrt", Sum((_number(m, 2), epsilon))))


def _gain_and_bias(m: Making) -> Expression:
    return Sum((Product(_number(m, 0), _number(m, 1)), _number(m, 2)))


def _relu(m: Making) -> Expression:
    return Apply("max0", _number(m, 0))


def _gelu(m: Making) -> Expression:
    x = _number(m, 0)
    erf = Apply("erf", Quotient(x, Number(math.sqrt(2.0), symbol="√2", rounded=True)))
    return Product(x, Product(Number(0.5), Sum((Number(1.0), erf))))


def _swish(m: Making) -> Expression:
    """x / (1 + exp(−x)), written so that exp never overflows."""
    x = _number(m, 0)
    e = Apply("exp", Difference(Number(0.0), Apply("abs", x)))
    above = Number(1.0) if x.value >= 0 else e
    return Product(x, Quotient(above, Sum((Number(1.0), e))))


def _concat(m: Making) -> Expression:
    (row, column), width = m.place, m.cells.trace.machine.config.d_head
    return m.cells.number(m.stage.inputs[column // width], (row, column % width))


def _log_of_choice(m: Making) -> Expression:
    (step,) = m.place
    token = int(m.cells.array("out.choice")[step])
    return Apply("log", m.cells.number("out.prob", (step, token)))


def _width(m: Making) -> int:
    return m.cells.trace.machine.config.d_model


def _number(m: Making, i: int) -> Number:
    number = m.inputs[i]
    assert isinstance(number, Number)
    return number


def _row(m: Making, i: int) -> Row:
    row = m.inputs[i]
    assert isinstance(row, Row)
    return row


OPERATIONS: dict[str, Callable[[Making], Expression]] = {
    "parameter": _itself,
    "input": _itself,
    "lookup": _lookup,
    "scale": _scale,
    "sinusoidal_positions": _sinusoidal,
    "sinusoidal_halves_positions": _sinusoidal_halves,
    "slipped_positions": _slipped,
    "learned_positions": _same,
    "none_positions": _none,
    "add": _add,
    "project": _project,
    "project_tied": _project,
    "rows_dot_rows": _dot,
    "divide": _divide,
    "divide_by": _divide_by,
    "mask": _mask,
    "zero_scores": _zero_scores,
    "softmax": _softmax,
    "naive_softmax": _naive_softmax,
    "rows_dot_columns": _dot,
    "concat": _concat,
    "mean": _mean,
    "variance": _variance,
    "normalise": _normalise,
    "gain_and_bias": _gain_and_bias,
    "relu": _relu,
    "gelu": _gelu,
    "swish": _swish,
    "copy": _same,
    "column_mean": _mean,
    "choice": _itself,
    "log_of_choice": _log_of_choice,
}


# --- model and recomputation side by side -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """What the model has, what comes out again, and how far apart they may be."""

    model: float
    recomputed: float
    tolerance: float  # the most that rounding can explain

    @property
    def difference(self) -> float:
        """0 where both are NaN, or the same infinity."""
        if self.model == self.recomputed or (math.isnan(self.model) and math.isnan(self.recomputed)):
            return 0.0
        difference = abs(self.model - self.recomputed)
        return math.inf if math.isnan(difference) else difference

    @property
    def agrees(self) -> bool:
        return self.difference == 0.0 or self.difference <= self.tolerance


def precision_of(trace: Trace) -> Precision:
    """What the machine computes with."""
    array = next(iter(trace.machine.parameters.values()))
    return PRECISIONS[array.dtype.name]


def compared(cells: Cells, stage: Stage, place: Place, node: Expression | None = None) -> Compared:
    """Model and recomputation of one number, as it was computed: before a what-if put another in its place."""
    precision = precision_of(cells.trace)
    node = node or expression(cells, stage, place)
    before = cells.trace.computed.get(stage.address)
    model = float((cells.array(stage.address) if before is None else before)[place])
    recomputed = evaluate(node, precision)
    if model == recomputed:
        return Compared(model, recomputed, 0.0)
    return Compared(model, recomputed, bounded(node, precision)[1])
