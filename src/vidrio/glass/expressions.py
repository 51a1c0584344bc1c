"""Arithmetic written down: a number as the small tree of additions, products and functions that it is made by.

One tree serves everything that a receipt tells: its value, how far rounding can have carried the model away from it,
the steps by which one works it out on paper, and the line to copy into Python, a spreadsheet or LaTeX. All in Python
floats, whose sums are exact until their one final rounding (`math.fsum`); nothing here calls the maths that it checks.

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

Cell = tuple[str, tuple[int, ...]]  # the name of a quantity, and the place in it


@dataclass(frozen=True)
class Precision:
    """What the model computes with."""

    name: str
    epsilon: float  # the step from 1 to the next number
    tiny: float  # what may be lost next to 0
    largest: float


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

    value: float
    cell: Cell | None = None
    symbol: str = ""  # of a constant: √K, ε
    rounded: bool = False  # a constant that the model rounds to its own precision


@dataclass(frozen=True, slots=True)
class Apply(Expression):
    """An operation, one of FUNCTIONS. Of a power the base is a constant, or the exponent is 2. `float64` is no
    operation: a part that the model computes in float64, whatever its own precision, and rounds to that at the end."""

    function: str
    parts: tuple[Expression, ...]


def apply(function: str, *parts: Expression) -> Apply:
    return Apply(function, parts)


class Row:
    """Several numbers of one quantity: those along the free axis (None) of a place."""

    def __init__(self, name: str, place: tuple[int | None, ...], values: list[float]) -> None:
        self.name, self.place, self.values = name, place, values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Number:
        return Number(self.values[i], (self.name, tuple(i if p is None else p for p in self.place)))

    def numbers(self) -> Iterator[Number]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def maximum(self) -> float:
        return math.nan if any(map(math.isnan, self.values)) else max(self.values)


@dataclass(frozen=True)
class Long(Expression):
    """A sum over whole rows, kept short so that thousands can be worked out; `terms` spells it out for the reader."""

    kind: str  # one of TERMS
    x: Row
    other: Row | Number | None = None  # a second row, or what is taken off every number

    @cached_property
    def known(self) -> dict[Precision, tuple[float, float]]:
        """Its value and bound, once they have been worked out: every number of a softmax asks for them."""
        return {}

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
# Python stops at 1/0, at exp(1000) and at log(0), where a machine goes on with ∞ and NaN. So does this.


def total(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # too large on the way, or ∞ − ∞
        return sum(values)


def divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _positive(x: float) -> float:
    return x if math.isnan(x) else max(0.0, x)


def _round(x: float) -> float:
    """To the nearest whole number, halves to the even one."""
    return float(round(x)) if math.isfinite(x) else x


def _power(base: float, exponent: float) -> float:
    return base * base if exponent == 2 else float(base**exponent)


FUNCTIONS: dict[str, Callable[..., float]] = {
    **{"+": lambda *values: total(values), "-": sub, "*": mul, "/": divided, "^": _power},
    **{"exp": _exp, "log": _log, "sqrt": _sqrt, "max0": _positive},
    **{"sin": math.sin, "cos": math.cos, "erf": math.erf, "abs": abs, "round": _round},
}


def evaluate(node: Expression, precision: Precision = FLOAT64) -> float:
    """The value in float64; what is beyond the precision's largest number is ∞, as it is for the model."""
    return bounded(node, precision)[0]


def bounded(node: Expression, precision: Precision) -> tuple[float, float]:
    """The value, and the largest distance from it that the model's rounding (and this one's) can explain."""
    eps, tiny = precision.epsilon, precision.tiny
    match node:
        case Number(value):
            error = eps * abs(value) + tiny if node.rounded else 0.0
        case Long("plain" | "square") if precision.name == "float16":
            return _bounded_long(node, precision)  # NumPy adds up in float32 what it takes the mean of
        case Long():
            value, error = _bounded_long(node, precision)
        case Apply("float64", (inside,)):
            value, error = bounded(inside, FLOAT64)
            error += eps * abs(value) + tiny
        case Apply(function, parts):
            value, error = _bounded_function(function, [bounded(part, precision) for part in parts], precision)
        case _:
            raise TypeError(f"{node} is no expression")
    value = _limited(value, precision)
    return value, 0.0 if math.isinf(value) else error  # rounding makes no other number of ∞


def _limited(value: float, precision: Precision) -> float:
    return math.copysign(math.inf, value) if abs(value) > precision.largest else value


def _bounded_long(node: Long, precision: Precision) -> tuple[float, float]:
    eps, tiny, n = precision.epsilon, precision.tiny, len(node.x)
    match node:
        case Long("plain", x):
            return total(x.values), n * eps * total(list(map(abs, x.values)))
        case Long("product", a, Row() as b):
            products = list(map(mul, a.values, b.values))
            return total(products), n * (eps * total(list(map(abs, products))) + tiny)
        case Long("square", x, Number(mean)):
            value = total([_limited((v - mean) * (v - mean), precision) for v in x.values])
            return value, (n + 3) * (eps * value + tiny)
    if precision not in node.known:
        shift = node.other.value if isinstance(node.other, Number) else None
        shifted = node.x.values if shift is None else [v - shift for v in node.x.values]
        exps = [_limited(_exp(v), precision) for v in shifted]
        away = [0.0 if shift is None or v == -math.inf else abs(v) for v in shifted]
        error = total([e * (d + FUNCTION + n) * eps for e, d in zip(exps, away, strict=True)]) + n * tiny
        node.known[precision] = total(exps), error
    return node.known[precision]


def _bounded_function(function: str, parts: Sequence[tuple[float, float]], precision: Precision) -> tuple[float, float]:
    """Of numbers and what they may be wrong by."""
    (x, dx), (y, dy), *_ = *parts, (0.0, 0.0)
    value, eps, epsilons = FUNCTIONS[function](*[x for x, _ in parts]), precision.epsilon, 1
    match function:
        case "max0" | "abs":
            return value, dx  # exact
        case "round":
            return value, max(_round(x + dx) - value, value - _round(x - dx))
        case "+":
            sizes = total([abs(v) + e for v, e in parts])
            return value, total([e for _, e in parts]) + (len(parts) - 1) * eps * sizes
        case "-":
            carried = dx + dy
        case "*":
            carried = abs(x) * dy + abs(y) * dx + dx * dy
        case "/":
            carried = divided(dx + abs(value) * dy, abs(y) - dy) if abs(y) > dy else math.inf
        case "^":
            carried = abs(value) * (abs(y) * divided(dx, abs(x)) + (_log(abs(x)) * dy if dy else 0.0) + FUNCTION * eps)
        case "exp":
            carried, epsilons = value * math.expm1(min(dx, 700.0)), FUNCTION
        case "log":
            carried, epsilons = divided(dx, x - dx) if x > dx else math.inf, FUNCTION
        case "sqrt":
            carried, epsilons = divided(dx, 2 * _sqrt(x - dx)) if x > dx else _sqrt(dx), FUNCTION
        case "erf":  # the engine's is a polynomial, right to so much anywhere
            carried = dx * 2 / math.sqrt(math.pi) + 2 * FUNCTION * eps
        case _:  # sin, cos
            carried, epsilons = dx, FUNCTION
    return value, carried + epsilons * eps * abs(value) + precision.tiny


# --- working it out step by step --------------------------------------------------------------------------------------


def step(node: Expression, precision: Precision = FLOAT64) -> Expression:
    """The same with its innermost operations done, as on paper."""
    if isinstance(node, Number):
        return node
    parts = children(node)
    if all(isinstance(part, Number) for part in parts):
        return Number(evaluate(node, precision))
    return rebuilt(node, tuple(step(part, precision) for part in parts))
