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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import Any

Cell = tuple[str, tuple[int, ...]]  # the name of a quantity, and the place in it


@dataclass(frozen=True)
class Precision:
    """What the model computes with."""

    name: str
    epsilon: float  # the step from 1 to the next number
    tiny: float  # the smallest number above 0
    largest: float


FLOAT64 = Precision("float64", 2.0**-52, 2.0**-1074, float.fromhex("0x1.fffffffffffffp+1023"))
PRECISIONS = {
    "float64": FLOAT64,
    "float32": Precision("float32", 2.0**-23, 2.0**-149, float.fromhex("0x1.fffffep+127")),
    "float16": Precision("float16", 2.0**-10, 2.0**-24, 65504.0),
}
FUNCTION = 4  # epsilons that exp, log, sin, … may be wrong by


@dataclass(frozen=True, slots=True)
class Number:
    """A leaf: a number that has an address, or one that the formula brings along."""

    value: float
    cell: Cell | None = None
    symbol: str = ""  # of a constant: √K, ε
    rounded: bool = False  # a constant that the model rounds to its own precision


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


@dataclass(frozen=True, slots=True)
class Sum:
    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Difference:
    a: "Expression"
    b: "Expression"


@dataclass(frozen=True, slots=True)
class Product:
    a: "Expression"
    b: "Expression"


@dataclass(frozen=True, slots=True)
class Quotient:
    a: "Expression"
    b: "Expression"


@dataclass(frozen=True, slots=True)
class Power:
    """base ^ exponent; the base is a constant, or the exponent is 2."""

    base: "Expression"
    exponent: "Expression"


@dataclass(frozen=True, slots=True)
class Apply:
    function: str  # one of FUNCTIONS
    argument: "Expression"


@dataclass(frozen=True, slots=True)
class InFloat64:
    """A part that the model computes in float64, whatever its own precision, and rounds to that at the end."""

    inside: "Expression"


# Sums over whole rows, kept short so that thousands can be worked out; `terms` spells them out for the reader.


@dataclass(frozen=True, slots=True)
class Total:
    x: Row


@dataclass(frozen=True, slots=True)
class Dot:
    a: Row
    b: Row


@dataclass(frozen=True, slots=True)
class Squares:
    """Σ (x − mean)²"""

    x: Row
    mean: Number


@dataclass(frozen=True)
class Exps:
    """Σ exp(x − shift), or Σ exp(x) without a shift; worked out once, however often it is asked for."""

    x: Row
    shift: Number | None

    @cached_property
    def known(self) -> dict[Any, Any]:
        return {}


Long = Total | Dot | Squares | Exps
Expression = Number | Sum | Difference | Product | Quotient | Power | Apply | InFloat64 | Long


def exponential(x: Number, shift: Number | None) -> Apply:
    """exp(x − shift): what `Exps` sums."""
    return Apply("exp", x if shift is None else Difference(x, shift))


def terms(node: Long) -> Sum:
    """A sum over rows, spelt out."""
    match node:
        case Total(x):
            return Sum(tuple(x.numbers()))
        case Dot(a, b):
            return Sum(tuple(map(Product, a.numbers(), b.numbers())))
        case Squares(x, mean):
            return Sum(tuple(Power(Difference(number, mean), Number(2.0)) for number in x.numbers()))
        case Exps(x, shift):
            return Sum(tuple(exponential(number, shift) for number in x.numbers()))


def children(node: Expression) -> tuple[Expression, ...]:
    match node:
        case Number():
            return ()
        case Sum(parts):
            return parts
        case Power(a, b) | Difference(a, b) | Product(a, b) | Quotient(a, b):
            return (a, b)
        case Apply(_, a) | InFloat64(a):
            return (a,)
    return terms(node).parts


def rebuilt(node: Expression, parts: tuple[Expression, ...]) -> Expression:
    """The same operation on other parts."""
    match node:
        case Apply(function, _):
            return Apply(function, parts[0])
        case Difference() | Product() | Quotient() | Power() | InFloat64():
            return type(node)(*parts)
        case Number():
            return node
    return Sum(parts)


def replaced(node: Expression, number: Callable[[Number], Number]) -> Expression:
    """The same tree with other leaves."""
    if isinstance(node, Number):
        return number(node)
    return rebuilt(node, tuple(replaced(child, number) for child in children(node)))


# --- what it comes to -------------------------------------------------------------------------------------------------
# Python stops at 1/0, at exp(1000) and at log(0), where a machine goes on with ∞ and NaN. So does this.


def total(values: list[float]) -> float:
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


FUNCTIONS: dict[str, Callable[[float], float]] = {
    **{"exp": _exp, "log": _log, "sqrt": _sqrt, "max0": _positive},
    **{"sin": math.sin, "cos": math.cos, "erf": math.erf, "abs": abs, "round": _round},
}


def evaluate(node: Expression, precision: Precision = FLOAT64) -> float:
    """The value in float64; what is beyond the precision's largest number is ∞, as it is for the model."""
    return _limited(_evaluate(node, precision), precision)


def _limited(value: float, precision: Precision) -> float:
    return math.copysign(math.inf, value) if abs(value) > precision.largest else value


def _evaluate(node: Expression, precision: Precision) -> float:
    match node:
        case Number(value):
            return value
        case Dot() | Total() | Squares() | Exps():
            return _evaluate_long(node, precision)
        case Sum(parts):
            return total([evaluate(part, precision) for part in parts])
        case Difference(a, b):
            return evaluate(a, precision) - evaluate(b, precision)
        case Product(a, b):
            return evaluate(a, precision) * evaluate(b, precision)
        case Quotient(Total() | Squares() as sum_of_mean, b) if precision.name == "float16":  # NumPy's is in float32
            return divided(_evaluate_long(sum_of_mean, precision), evaluate(b, precision))
        case Quotient(a, b):
            return divided(evaluate(a, precision), evaluate(b, precision))
        case Power(a, b):
            return _power(evaluate(a, precision), evaluate(b, precision))
        case Apply(function, argument):
            return FUNCTIONS[function](evaluate(argument, precision))
        case InFloat64(inside):
            return evaluate(inside)


def _evaluate_long(node: Long, precision: Precision) -> float:
    match node:
        case Dot(a, b):
            return total(list(map(mul, a.values, b.values)))
        case Total(x):
            return total(x.values)
        case Squares(x, mean):
            squares = ((v - mean.value) * (v - mean.value) for v in x.values)
            return total([s if s <= precision.largest else s * math.inf for s in squares])
        case Exps(x, shift):
            if precision not in node.known:
                exps = map(_exp, x.values if shift is None else [v - shift.value for v in x.values])
                node.known[precision] = total([e if e <= precision.largest else e * math.inf for e in exps])
            return float(node.known[precision])


# --- how far rounding can carry ---------------------------------------------------------------------------------------


def bounded(node: Expression, precision: Precision) -> tuple[float, float]:
    """The value, and the largest distance from it that the model's rounding (and this one's) can explain."""
    eps, tiny = precision.epsilon, precision.tiny
    match node:
        case Number(value):
            return value, eps * abs(value) + tiny if node.rounded else 0.0
        case Dot() | Total() | Squares() | Exps():
            return _bounded_long(node, precision)
        case InFloat64(inside):
            value, error = bounded(inside, FLOAT64)
            return value, error + eps * abs(value) + tiny
        case Sum(parts):
            pairs = [bounded(part, precision) for part in parts]
            sizes = total([abs(v) + e for v, e in pairs])
            return total([v for v, _ in pairs]), total([e for _, e in pairs]) + (len(pairs) - 1) * eps * sizes
        case Apply(function, argument):
            return _bounded_function(function, *bounded(argument, precision), precision)
    a, b = children(node)
    (x, dx), (y, dy) = bounded(a, precision), bounded(b, precision)
    match node:
        case Difference():
            value, error = x - y, dx + dy
        case Product():
            value, error = x * y, abs(x) * dy + abs(y) * dx + dx * dy
        case Quotient():
            value = divided(x, y)
            error = divided(dx + abs(value) * dy, abs(y) - dy) if abs(y) > dy else math.inf
        case _:  # a power: its base is a constant, or its exponent is 2
            value = _power(x, y)
            error = abs(value) * (abs(y) * divided(dx, abs(x)) + (_log(abs(x)) * dy if dy else 0.0) + FUNCTION * eps)
    return value, error + eps * abs(value) + tiny


def _bounded_long(node: Long, precision: Precision) -> tuple[float, float]:
    eps, tiny = precision.epsilon, precision.tiny
    match node:
        case Dot(a, b):
            products = list(map(mul, a.values, b.values))
            return total(products), len(a) * (eps * total(list(map(abs, products))) + tiny)
        case Total(x):
            return total(x.values), len(x) * eps * total(list(map(abs, x.values)))
        case Squares(x):
            value = _evaluate_long(node, precision)
            return value, (len(x) + 3) * (eps * value + tiny)
        case Exps(x, shift):
            if (precision, "bound") not in node.known:
                value, n = _evaluate_long(node, precision), len(x)
                away = [0.0 if shift is None or v == -math.inf else abs(v - shift.value) for v in x.values]
                exps = (_exp(v if shift is None else v - shift.value) for v in x.values)
                error = total([e * (d + FUNCTION + n) * eps for e, d in zip(exps, away, strict=True)]) + n * tiny
                node.known[precision, "bound"] = value, error
            known: tuple[float, float] = node.known[precision, "bound"]
            return known


def _bounded_function(function: str, x: float, dx: float, precision: Precision) -> tuple[float, float]:
    value, eps = FUNCTIONS[function](x), precision.epsilon
    match function:
        case "max0" | "abs":
            return value, dx  # exact
        case "round":
            return value, max(_round(x + dx) - value, value - _round(x - dx))
        case "exp":
            carried = value * math.expm1(min(dx, 700.0))
        case "log":
            carried = divided(dx, x - dx) if x > dx else math.inf
        case "sqrt":
            carried = divided(dx, 2 * _sqrt(x - dx)) if x > dx else _sqrt(dx)
        case "erf":
            carried = dx * 2 / math.sqrt(math.pi)
        case _:  # sin, cos
            carried = dx
    return value, carried + FUNCTION * eps * abs(value) + precision.tiny


# --- working it out step by step --------------------------------------------------------------------------------------


def step(node: Expression, precision: Precision = FLOAT64) -> Expression:
    """The same with its innermost operations done, as on paper."""
    parts = children(node)
    if isinstance(node, Number):
        return node
    if all(isinstance(part, Number) for part in parts):
        return Number(evaluate(node, precision))
    return rebuilt(node, tuple(step(part, precision) for part in parts))


def leaves(node: Expression) -> Iterator[Number]:
    """The numbers that it is made from, in the formula's order."""
    if isinstance(node, Number):
        yield node
    for child in children(node):
        yield from leaves(child)
