"""Formats expressions as text for reading, for Python or for a spreadsheet."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vidrio.glass.expressions import Apply, At, Expression, Number, Row, mapped, terms

SHOWN_FIRST, SHOWN_LAST = 4, 2  # number of terms shown at the start and at the end of a long sum
LONGEST_SUM = 8

ANYTHING, SUM, PRODUCT, POWER, ATOM = 0, 1, 2, 3, 4
# The precedence of each operation, followed by the lowest precedence at which each operand needs no brackets. The
# templates of all other operations contain brackets.
BINDING = {
    "-": (SUM, SUM, PRODUCT),
    "*": (PRODUCT, PRODUCT, POWER),
    "/": (PRODUCT, PRODUCT, POWER),
    "^": (POWER, ATOM, ATOM),
    "squared": (POWER, ATOM),
}


@dataclass(frozen=True)
class Notation:
    """How to write an expression as text."""

    number: Callable[[Number], str]
    functions: Mapping[str, str]  # templates with a `{}` for each operand
    left_out: str = ""  # replaces the omitted terms of a long sum; if empty, all terms are written


_PLAIN = {
    **{"-": "{} - {}", "*": "{}*{}", "/": "{} / {}", "^": "{}^{}", "squared": "{}²"},
    **{"exp": "exp({})", "log": "log({})", "sqrt": "√({})", "max0": "max(0, {})"},
    **{"sin": "sin({})", "cos": "cos({})", "erf": "erf({})", "abs": "|{}|", "round": "round({})"},
}
_NAMED = [name for name in _PLAIN if name.isalnum() and name != "squared"]
_PYTHON = {
    **_PLAIN,
    **{name: f"math.{name}({{}})" for name in _NAMED},
    **{"^": "{} ** {}", "squared": "{} ** 2", "max0": "max(0.0, {})", "abs": "abs({})", "round": "round({})"},
}
_SPREADSHEET = {
    **_PLAIN,
    **{name: f"{name.upper()}({{}})" for name in _NAMED},
    **{"/": "{}/{}", "squared": "{}^2", "max0": "MAX(0,{})", "log": "LN({})", "round": "ROUND({},0)"},
}


def plain(number: Callable[[float], str]) -> Notation:
    """Return a notation for reading, in which `number` formats numbers and long sums omit the terms in the middle."""
    return Notation(lambda n: number(n.value), _PLAIN, left_out="… ({} more terms) …")


def _exact(infinity: str, nan: str) -> Callable[[Number], str]:
    def number(n: Number) -> str:
        if math.isnan(n.value):
            return nan
        return repr(n.value) if math.isfinite(n.value) else f"{'-' * (n.value < 0)}{infinity}"

    return number


COPIES = {
    "python": Notation(_exact("math.inf", "math.nan"), _PYTHON),
    # Spreadsheets have no infinity, but 1E+300 has the same effect inside EXP.
    "spreadsheet": Notation(_exact("1E+300", "NA()"), _SPREADSHEET),
}


def copy_of(node: Expression, kind: str) -> str:
    """Return the expression at full precision, ready to paste into Python or a spreadsheet."""
    text = write(node, COPIES[kind])
    return f"={text}" if kind == "spreadsheet" else text


def write(node: Expression, notation: Notation) -> str:
    """Return the expression as text."""
    return _write(node, notation)[0]


def _write(node: Expression, notation: Notation) -> tuple[str, int]:
    """Return the text of an expression and its precedence."""
    match node:
        case Number():
            digits = notation.number(node)
            return digits, SUM if digits.startswith("-") else PRODUCT if " " in digits else ATOM
        case Apply("Σ") if "Σ" not in notation.functions:
            return _sum(terms(node), notation), SUM
        case Apply("float64", (inside,)):
            return _write(inside, notation)
        case Apply("+", parts):
            return _sum(parts, notation), SUM
        case Apply(function, parts):
            binds, *least = BINDING.get(function, (ATOM, ANYTHING))
            operands = [_in(part, binding, notation) for part, binding in zip(parts, least, strict=True)]
            return notation.functions[function].format(*operands), binds
    raise TypeError(f"{node} is not an expression")


def _in(node: Expression, least: int, notation: Notation) -> str:
    text, binds = _write(node, notation)
    return text if binds >= least else f"({text})"


def _sum(parts: tuple[Expression, ...], notation: Notation) -> str:
    is_cut = notation.left_out and len(parts) > LONGEST_SUM
    shown = (*parts[:SHOWN_FIRST], *parts[-SHOWN_LAST:]) if is_cut else parts
    first, *rest = [write(part, notation) for part in shown]
    pieces = [first, *(f"- {text[1:]}" if text.startswith("-") else f"+ {text}" for text in rest)]
    if is_cut:
        pieces.insert(SHOWN_FIRST, "+ " + notation.left_out.format(len(parts) - len(shown)))
    return " ".join(pieces)


def formula(node: Expression, name: Callable[[str], str]) -> str:
    """Return the formula of a number with its indices, e.g. `Σ_k Q[0,k]*K[0,k]`. `name` shortens addresses."""

    def symbol(n: Number) -> str:
        if n.at is None:
            return n.symbol or f"{n.value:g}"
        quantity, place = n.at
        return f"{name(quantity)}[{','.join('k' if p < 0 else str(p) for p in place)}]"

    def running(leaf: Number | Row) -> Number:
        place = tuple(-1 if p is None else p for p in leaf.place) if isinstance(leaf, Row) else ()
        return Number(0.0, At(leaf.name, place)) if isinstance(leaf, Row) else leaf

    return write(mapped(node, running), Notation(symbol, {**_PLAIN, "Σ": "Σ_k {}"}))
