"""Arithmetic written down: a number as the small tree of additions, products and functions that it is made by.

One tree serves everything that a receipt tells: its value, how far rounding can have carried the model away from it,
the steps by which one works it out on paper, and the line to copy into Python or a spreadsheet. Leaves may be whole
arrays, for all numbers of a quantity at once (checking.py). It is worked out in a wider kind of number than the
model's; nothing here calls the maths that it checks.

How far can rounding carry? Every operation of the model rounds once, by at most half an epsilon relative to its
result (functions such as exp: by at most four epsilons), a sum of n terms n times, in whatever order it is taken; what
came in wrong goes on by the derivative. `bounded` adds this up along the tree. It counts a whole epsilon for each
half, which leaves room for the roundings of the recomputation itself.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter, mul, sub
from typing import Any

import numpy as np

Cell = tuple[str, tuple[int, ...]]  # the name of a quantity, and the place in it


@dataclass(frozen=True)
class Precision:
    """What the model computes with."""

    name: str
    epsilon: float  # the step from 1 to the next number
    tiny: float  # what may be lost next to 0
    largest: float

    @property
    def smallest(self) -> Any:
        """Above 0."""
        return np.longdouble(np.finfo(self.name).smallest_subnormal)

    @property
    def wide(self) -> type:
        """What it is checked in."""
        return np.longdouble if self.name == "float64" else np.float64


FLOAT64 = Precision("float64", 2.0**-52, 2.0**-1074, float.fromhex("0x1.fffffffffffffp+1023"))
PRECISIONS = {
    "float64": FLOAT64,
    # The engine's exp is 0 below −87, which leaves out less than this.
    "float32": Precision("float32", 2.0**-23, 2.0**-125, float.fromhex("0x1.fffffep+127")),
    "float16": Precision("float16", 2.0**-10, 2.0**-24, 65504.0),
}
FUNCTION = 4  # epsilons that exp, log, sin, … may be wrong by


class Expression:
    """A number, an operation on others, or a sum over rows. Python's signs put them together."""

    __slots__ = ()

    def __add__(self, other: "Expression") -> "Apply":
        return apply("+", self, other)

    def __sub__(self, other: "Expression") -> "Apply":
        return apply("-", self, other)

    def __mul__(self, other: "Expression") -> "Apply":
        return apply("*", self, other)

    def __truediv__(self, other: "Expression") -> "Apply":
        return apply("/", self, other)

    def squared(self) -> "Apply":
        return apply("^", self, Number(2.0))


@dataclass(frozen=True, slots=True)
class Number(Expression):
    """A leaf: a number that has an address, or one that the formula brings along."""

    value: Any  # a float, or an array of them
    cell: Cell | None = None
    symbol: str = ""  # of a constant: √d_k, ε
    rounded: bool = False  # a constant that the model rounds to its own precision


@dataclass(frozen=True, slots=True)
class Apply(Expression):
    """An operation, one of FUNCTIONS. Of a power the base is a constant, or the exponent is 2. `float64` is no
    operation: a part that the model computes in float64, whatever its own precision, and rounds to that at the end."""

    function: str
    parts: tuple[Expression, ...]


def apply(function: str, *parts: Expression) -> Apply:
    return Apply(function, parts)


def where(condition: Any, a: Expression, b: Expression) -> Expression:
    """One or the other; in an array, each where the condition says so."""
    if isinstance(condition, np.ndarray):
        return Apply("where", (Number(condition), a, b))
    return a if condition else b


class Row:
    """Several numbers of one quantity: those along the free axis (None) of a place; or, in an array, along the last."""

    def __init__(self, name: str, place: tuple[int | None, ...], values: Any) -> None:
        self.name, self.place, self.values = name, place, values

    def __len__(self) -> int:
        return int(np.shape(self.values)[-1])

    def pick(self, i: Any) -> Number:
        """The number at a place; of an array, those at an array of places."""
        if isinstance(self.values, list):
            return self[int(i)]
        return Number(np.take_along_axis(self.values, np.asarray(i)[..., None], -1)[..., 0])

    def __getitem__(self, i: int) -> Number:
        return Number(self.values[i], (self.name, tuple(i if p is None else p for p in self.place)))

    def numbers(self) -> Iterator[Number]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def maximum(self) -> Any:
        largest = np.max(self.values, axis=-1)
        return largest if largest.ndim else largest.item()


@dataclass(frozen=True)
class Long(Expression):
    """A sum over whole rows, kept short so that thousands can be worked out; `terms` spells it out for the reader."""

    kind: str  # one of TERMS
    x: Row
    other: Row | Number | None = None  # a second row, or what is taken off every number

    def term(self, of: Callable[[Row], Number]) -> Expression:
        """One of its terms, with these numbers of its rows."""
        return TERMS[self.kind](of(self.x), of(self.other) if isinstance(self.other, Row) else self.other)


def exponential(x: Expression, shift: Expression | None) -> Apply:
    """exp(x − shift), or exp(x) without a shift."""
    return apply("exp", x if shift is None else x - shift)


TERMS: dict[str, Callable[[Any, Any], Expression]] = {
    "plain": lambda x, _: x,
    "product": lambda a, b: a * b,
    "square": lambda x, mean: (x - mean).squared(),
    "exp": exponential,
}


def terms(node: Long) -> Apply:
    """A sum over rows, spelt out."""
    return Apply("+", tuple(node.term(itemgetter(i)) for i in range(len(node.x))))


def children(node: Expression) -> tuple[Expression, ...]:
    if isinstance(node, Long):
        return terms(node).parts
    return node.parts if isinstance(node, Apply) else ()


def rebuilt(node: Expression, parts: tuple[Expression, ...]) -> Expression:
    """The same operation on other parts."""
    if isinstance(node, Number):
        return node
    return Apply(node.function if isinstance(node, Apply) else "+", parts)


def replaced(node: Expression, number: Callable[[Number], Number]) -> Expression:
    """The same tree with other leaves."""
    if isinstance(node, Number):
        return number(node)
    return rebuilt(node, tuple(replaced(child, number) for child in children(node)))


def leaves(node: Expression) -> Iterator[Number]:
    """The numbers that it is made from, in the formula's order."""
    if isinstance(node, Number):
        yield node
    for child in children(node):
        yield from leaves(child)


# --- what it comes to, and how far rounding can carry -----------------------------------------------------------------

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "-": sub, "*": mul, "/": np.divide, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "abs": np.abs, "round": np.rint, "max0": lambda x: np.maximum(x, 0), "where": np.where,
    "+": lambda *values: sum(values), "^": lambda base, exponent: np.power(base, exponent),
    "erf": lambda x: np.vectorize(math.erf, otypes=[float])(np.asarray(x, float)),
}  # fmt: skip


def evaluate(node: Expression, precision: Precision = FLOAT64) -> float:
    """The value in float64; what is beyond the precision's largest number is ∞, as it is for the model."""
    return bounded(node, precision)[0]


def bounded(node: Expression, precision: Precision) -> tuple[Any, Any]:
    """The value, and the largest distance from it that the model's rounding (and this one's) can explain."""
    with np.errstate(all="ignore"):
        value, error = _bounded(node, precision)
    return (value, error) if np.ndim(value) else (float(value), float(error))


def _bounded(node: Expression, precision: Precision) -> tuple[Any, Any]:
    eps, tiny = precision.epsilon, precision.tiny
    match node:
        case Number(value):
            value = np.asarray(value, precision.wide)
            error = eps * np.abs(value) + tiny if node.rounded else np.zeros(value.shape)
        case Long("plain" | "square") if precision.name == "float16":
            return _sum(node, precision)  # NumPy adds up in float32 what it takes the mean of
        case Long():
            value, error = _sum(node, precision)
        case Apply("float64", (inside,)):
            value, error = _bounded(inside, FLOAT64)
            error = error + eps * np.abs(value) + tiny
        case Apply(function, parts):
            value, error = _bounded_function(function, [_bounded(part, precision) for part in parts], precision)
        case _:
            raise TypeError(f"{node} is no expression")
    value = _limited(value, precision)
    return value, np.where(np.isinf(value) | np.isnan(error), 0.0, error)  # rounding makes no other number of ∞


def _limited(value: Any, precision: Precision) -> Any:
    """∞ beyond the model's largest number, 0 below half its smallest."""
    beyond = np.abs(value) > precision.wide(precision.largest) * (1 + precision.epsilon / 4)  # which rounds to ∞
    value = np.where(beyond, np.copysign(np.inf, value), value)
    return np.where(np.abs(value) < precision.smallest / 2, 0.0, value)


def _sum(node: Long, precision: Precision) -> tuple[Any, Any]:
    eps, tiny, n = precision.epsilon, precision.tiny, len(node.x)
    x: Any = np.asarray(node.x.values, precision.wide)
    other = node.other
    if isinstance(other, Row):
        b: Any = np.asarray(other.values, precision.wide)
        return _inner(x, b), n * (eps * _inner(np.abs(x), np.abs(b)) + tiny)
    away = x if other is None else x - np.asarray(other.value, precision.wide)[..., None]
    match node.kind:
        case "plain":
            return x.sum(-1), n * eps * np.abs(x).sum(-1)
        case "square":
            value = _limited(away * away, precision).sum(-1)
            return value, (n + 3) * (eps * value + tiny)
    exps = _limited(np.exp(away), precision)
    far = np.where(np.isneginf(x), 0.0, np.abs(away)) if other else 0.0
    return exps.sum(-1), (exps * (far + FUNCTION + n) * eps).sum(-1) + n * tiny


def _inner(a: Any, b: Any) -> Any:
    """Of the last axes; every row with every column at once."""
    return a[:, 0] @ b[0].T if a.ndim == 3 else (a * b).sum(-1)


def _bounded_function(function: str, parts: Sequence[tuple[Any, Any]], precision: Precision) -> tuple[Any, Any]:
    """Of numbers and what they may be wrong by."""
    (x, dx), (y, dy), *_ = *parts, (0.0, 0.0)
    value, eps, epsilons = FUNCTIONS[function](*[x for x, _ in parts]), precision.epsilon, 1
    match function:
        case "max0" | "abs":
            return value, dx  # exact
        case "where":
            return value, np.where(x, dy, parts[2][1])
        case "round":
            return value, np.maximum(np.rint(x + dx) - value, value - np.rint(x - dx))
        case "+":
            sizes = sum(np.abs(v) + e for v, e in parts)
            return value, sum(e for _, e in parts) + (len(parts) - 1) * eps * sizes
        case "-":
            carried = dx + dy
        case "*":
            carried = np.abs(x) * dy + np.abs(y) * dx + dx * dy
        case "/":
            carried = np.where(np.abs(y) > dy, (dx + np.abs(value) * dy) / (np.abs(y) - dy), np.inf)
        case "^":
            of_exponent = np.where(dy > 0, np.log(np.abs(x)) * dy, 0.0)
            of_base = np.where(dx > 0, np.abs(y) * dx / np.abs(x), 0.0)
            carried = np.abs(value) * (of_base + of_exponent + FUNCTION * eps)
        case "exp":
            carried, epsilons = value * np.expm1(np.minimum(dx, 700.0)), FUNCTION
        case "log":
            carried, epsilons = np.where(x > dx, dx / (x - dx), np.inf), FUNCTION
        case "sqrt":
            carried, epsilons = np.where(x > dx, dx / (2 * np.sqrt(x - dx)), np.sqrt(dx)), FUNCTION
        case "erf":  # the engine's is a polynomial, right to so much anywhere
            carried = dx * 2 / math.sqrt(math.pi) + 2 * FUNCTION * eps
        case _:  # sin, cos
            carried, epsilons = dx, FUNCTION
    return value, carried + epsilons * eps * np.abs(value) + precision.tiny


# --- working it out step by step --------------------------------------------------------------------------------------


def step(node: Expression, precision: Precision = FLOAT64) -> Expression:
    """The same with its innermost operations done, as on paper."""
    if isinstance(node, Number):
        return node
    parts = children(node)
    if all(isinstance(part, Number) for part in parts):
        return Number(evaluate(node, precision))
    return rebuilt(node, tuple(step(part, precision) for part in parts))
