"""Expression trees: the sums, products and functions that compute one number, represented as data.

From a number's tree, a receipt computes its value, a bound on the model's rounding error, each step of the calculation,
and a formula for Python or a spreadsheet. If the leaves of a tree are arrays, all numbers of a quantity are computed at
once (checking.py). Trees are evaluated in higher precision than the model, and share no code with the implementation
that they check.

Each operation of the model rounds once, by at most half an epsilon of its result (four epsilons for functions such as
exp). A sum of n terms rounds n times, whatever the order of the terms. Errors in the inputs propagate to the result.
`bounded` adds up all these errors. It allows a full epsilon for each rounding, to cover its own rounding as well.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from operator import mul, sub
from typing import Any, NamedTuple

import numpy as np


class At(NamedTuple):
    """The address of one number: a quantity and a position in it."""

    name: str
    place: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}[{','.join(map(str, self.place))}]" if self.place else self.name


class Precision(NamedTuple):
    """The floating-point format that the model computes in."""

    name: str
    wide: Any  # the format in which values are recomputed
    epsilon: float  # the distance from 1 to the next representable number
    tiny: float  # the largest rounding error near 0
    largest: float

    @property
    def smallest(self) -> Any:
        """The smallest positive number."""
        return np.longdouble(np.finfo(self.name).smallest_subnormal)


FLOAT64 = Precision("float64", np.longdouble, 2.0**-52, 2.0**-1074, float(np.finfo(np.float64).max))
PRECISIONS = {
    "float64": FLOAT64,
    # `tiny` covers the engine's exp, which returns 0 below −87.
    "float32": Precision("float32", np.float64, 2.0**-23, 2.0**-125, float(np.finfo(np.float32).max)),
    "float16": Precision("float16", np.float64, 2.0**-10, 2.0**-24, 65504.0),
}
FUNCTION = 4  # error allowed for exp, log, sin, …, in epsilons


class Expression:
    """A number, a row of numbers, or an operation."""

    __slots__ = ()

    def __add__(self, other: "Expression") -> "Apply":
        return apply("+", self, other)

    def __sub__(self, other: "Expression") -> "Apply":
        return apply("-", self, other)

    def __mul__(self, other: "Expression") -> "Apply":
        return apply("*", self, other)

    def __truediv__(self, other: "Expression") -> "Apply":
        return apply("/", self, other)


@dataclass(frozen=True, slots=True)
class Number(Expression):
    """A number with an address, or a constant in a formula."""

    value: Any  # a float or an array of floats
    at: At | None = None
    symbol: str = ""  # the name of the constant, e.g. √d_k or ε
    rounded: bool = False  # whether the model rounds this constant to its own precision


@dataclass(frozen=True, slots=True, eq=False)
class Row(Expression):
    """The numbers along the axis whose index is None, which is the last axis of `values`. Used only inside a Σ."""

    name: str
    place: tuple[int | None, ...]
    values: Any

    def __getitem__(self, i: int) -> Number:
        return Number(self.values[i].item(), At(self.name, tuple(i if p is None else p for p in self.place)))

    def pick(self, i: Any) -> Number:
        """Return the number at a position, or the numbers at an array of positions."""
        if self.values.ndim == 1:
            return self[int(i)]
        return Number(np.take_along_axis(self.values, np.asarray(i)[..., None], -1)[..., 0])

    def maximum(self) -> Number:
        largest = np.max(self.values, axis=-1)
        return Number(largest if largest.ndim else largest.item(), symbol="max")

    def length(self) -> Number:
        return Number(float(self.values.shape[-1]))


@dataclass(frozen=True, slots=True)
class Apply(Expression):
    """An operation applied to expressions.

    The function is one of FUNCTIONS, Σ (a sum along the rows inside it), or float64 (an expression that the model
    computes in float64 and then rounds to its own precision). The base of a power is always a constant.
    """

    function: str
    parts: tuple[Expression, ...]


def apply(function: str, *parts: Expression) -> Apply:
    return Apply(function, parts)


def where(condition: Any, a: Expression, b: Expression) -> Expression:
    """Select one of two values, element by element if the condition is an array."""
    if isinstance(condition, np.ndarray):
        return Apply("where", (Number(condition), a, b))
    return a if condition else b


def mapped(node: Expression, leaf: Callable[[Any], Expression]) -> Expression:
    """Return the tree with each leaf replaced by `leaf(…)`."""
    return apply(node.function, *(mapped(part, leaf) for part in node.parts)) if isinstance(node, Apply) else leaf(node)


def leaves(node: Expression) -> Iterator[Any]:
    """Yield the numbers and rows in a tree, in the order of the formula."""
    if isinstance(node, Apply):
        for part in node.parts:
            yield from leaves(part)
    else:
        yield node


def terms(total: Apply) -> tuple[Expression, ...]:
    """Return the terms of a Σ."""
    (inner,) = total.parts
    length = next(len(leaf.values) for leaf in leaves(inner) if isinstance(leaf, Row))

    def term(i: int) -> Expression:
        return mapped(inner, lambda leaf: leaf[i] if isinstance(leaf, Row) else leaf)

    return tuple(map(term, range(length)))


def expanded(node: Expression) -> Expression:
    """Return the tree with each Σ replaced by the sum of its terms."""
    match node:
        case Apply("Σ"):
            return Apply("+", terms(node))
        case Apply(function, parts):
            return Apply(function, tuple(map(expanded, parts)))
    return node


def step(node: Expression, precision: Precision = FLOAT64) -> Expression:
    """Evaluate the innermost operations of an expanded tree: one step of the calculation on paper."""
    if not isinstance(node, Apply):
        return node
    if all(isinstance(part, Number) for part in node.parts):
        return Number(evaluate(node, precision))
    return Apply(node.function, tuple(step(part, precision) for part in node.parts))


# --- values and rounding errors ---------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "-": sub, "*": mul, "/": np.divide, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "abs": np.abs, "round": np.rint, "max0": lambda x: np.maximum(x, 0), "where": np.where, "squared": np.square,
    "+": lambda *values: sum(values), "^": np.power,
    "erf": lambda x: np.vectorize(math.erf, otypes=[float])(np.asarray(x, float)),
}  # fmt: skip


def evaluate(node: Expression, precision: Precision = FLOAT64) -> float:
    """Return the value in float64, or ∞ if it overflows in the model's precision."""
    return bounded(node, precision)[0]


def bounded(node: Expression, precision: Precision) -> tuple[Any, Any]:
    """Return the value, and the largest difference from the model's value that rounding can explain."""
    with np.errstate(all="ignore"):
        value, error = _bounded(node, precision)
    return (value, error) if np.ndim(value) else (float(value), float(error))


def _bounded(node: Expression, precision: Precision) -> tuple[Any, Any]:
    eps, tiny = precision.epsilon, precision.tiny
    match node:
        case Number(value):
            value = np.asarray(value, precision.wide)
            error = eps * np.abs(value) + tiny if node.rounded else np.zeros(value.shape)
        case Row():
            value = np.asarray(node.values, precision.wide)
            error = np.zeros(value.shape)
        case Apply("Σ", (inner,)):
            value, error = _bounded_sum(inner, precision)
            if precision.name == "float16" and not (isinstance(inner, Apply) and inner.function == "exp"):
                return value, error  # NumPy computes the mean of float16 numbers in float32
        case Apply("float64", (inside,)):
            value, error = _bounded(inside, FLOAT64)
            error = error + eps * np.abs(value) + tiny
        case Apply(function, parts):
            value, error = _bounded_function(function, [_bounded(part, precision) for part in parts], precision)
        case _:
            raise TypeError(f"{node} is not an expression")
    beyond = np.abs(value) > precision.wide(precision.largest) * (1 + eps / 4)  # rounds to ∞
    value = np.where(beyond, np.copysign(np.inf, value), value)
    value = np.where(np.abs(value) < precision.smallest / 2, 0.0, value)
    return value, np.where(np.isinf(value) | np.isnan(error), 0.0, error)  # rounding cannot change ∞


def _bounded_sum(inner: Expression, precision: Precision) -> tuple[Any, Any]:
    """Return the value and error bound of a sum over the last axis of the rows."""
    eps, tiny = precision.epsilon, precision.tiny
    match inner:
        case Apply("*", (Row(values=x), Row(values=y))):  # an array of all products might not fit in memory
            a, b = x.astype(precision.wide), y.astype(precision.wide)
            return _inner(a, b), a.shape[-1] * (eps * _inner(np.abs(a), np.abs(b)) + tiny)

    def beside_rows(leaf: Number | Row) -> Number | Row:
        return Number(leaf.value[..., None]) if isinstance(leaf, Number) and np.ndim(leaf.value) else leaf

    value, error = _bounded(mapped(inner, beside_rows), precision)
    return value.sum(-1), (error + value.shape[-1] * eps * np.abs(value)).sum(-1)


def _inner(a: Any, b: Any) -> Any:
    """Compute inner products over the last axis. With three axes, multiply every row by every column."""
    return a[:, 0] @ b[0].T if a.ndim == 3 else (a * b).sum(-1)


def _bounded_function(function: str, parts: list[tuple[Any, Any]], precision: Precision) -> tuple[Any, Any]:
    """Return the value and error bound of a function. To propagate the errors of its inputs, the function is evaluated
    at the ends of their error intervals, where a monotonic function deviates the most."""
    values, errors = zip(*parts, strict=True)
    value, eps = FUNCTIONS[function](*values), precision.epsilon
    if function == "where":
        return value, np.where(values[0], *errors[1:])
    if function == "+":
        return value, sum(errors) + (len(parts) - 1) * eps * sum(np.abs(v) + error for v, error in parts)
    carried = np.zeros_like(value)
    for signs in product((-1, 1), repeat=len(parts)) if any(map(np.any, errors)) else ():
        end = FUNCTIONS[function](*(v + sign * error for (v, error), sign in zip(parts, signs, strict=True)))
        carried = np.fmax(carried, np.abs(end - value))
    if function in ("abs", "max0", "round"):  # exact
        return value, carried
    if function == "/":
        carried = np.where(np.abs(values[1]) > errors[1], carried, np.inf)  # otherwise the divisor may be 0
    if function == "erf":
        carried = carried + 2 * FUNCTION * eps  # the absolute error of the engine's polynomial
    epsilons = 1 if function in ("-", "*", "/", "squared") else FUNCTION
    return value, carried + epsilons * eps * np.abs(value) + precision.tiny
