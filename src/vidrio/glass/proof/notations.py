"""An expression as text: for reading, for a calculator, for Python, for a spreadsheet, for LaTeX."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from vidrio.glass.proof.expressions import (
    Apply,
    Difference,
    Dot,
    Expression,
    Exps,
    InFloat64,
    Number,
    Power,
    Product,
    Quotient,
    Row,
    Squares,
    Sum,
    Total,
    exponential,
    terms,
)

SHOWN_FIRST, SHOWN_LAST = 4, 2  # terms of a sum that is too long to read
LONGEST_SUM = 8

# How tightly an operation binds; what binds less needs brackets.
SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4


@dataclass(frozen=True)
class Notation:
    """One way of writing; `{}` stands for the operands."""

    number: Callable[[Number], str]
    functions: dict[str, str]
    product: str = "{}*{}"
    quotient: str = "{} / {}"
    power: str = "{}^{}"
    square: str = "{}^2"
    left_out: str = ""  # how to tell of the terms of a long sum that are left out; empty: write them all
    bracketed: str = "({})"
    fraction: bool = False  # the quotient's line is bracket enough


_PLAIN = {
    **{"exp": "exp({})", "log": "log({})", "sqrt": "√({})", "max0": "max(0, {})"},
    **{"sin": "sin({})", "cos": "cos({})", "erf": "erf({})", "abs": "|{}|", "round": "round({})"},
}
_CALCULATOR = {**_PLAIN, "sqrt": "sqrt({})", "log": "ln({})", "abs": "abs({})"}
_PYTHON = {name: f"math.{name}({{}})" for name in _PLAIN} | {
    "max0": "max(0.0, {})",
    "abs": "abs({})",
    "round": "round({})",
}
_SPREADSHEET = {name: f"{name.upper()}({{}})" for name in _PLAIN} | {
    "max0": "MAX(0,{})",
    "log": "LN({})",
    "round": "ROUND({},0)",
}
_LATEX = {
    **{"exp": "e^{{{}}}", "log": r"\log\left({}\right)", "sqrt": r"\sqrt{{{}}}", "max0": r"\max\left(0, {}\right)"},
    **{"sin": r"\sin\left({}\right)", "cos": r"\cos\left({}\right)", "abs": r"\left|{}\right|"},
    "erf": r"\operatorname{{erf}}\left({}\right)",
    "round": r"\operatorname{{round}}\left({}\right)",
}


def plain(number: Callable[[float], str]) -> Notation:
    """To read: numbers as `number` shows them, long sums with the middle left out and counted."""
    return Notation(lambda n: number(n.value), _PLAIN, square="{}²", left_out="… ({} more terms) …", quotient="{} / {}")


def _exact(infinity: str, nan: str) -> Callable[[Number], str]:
    def number(n: Number) -> str:
        if math.isnan(n.value):
            return nan
        return repr(n.value) if math.isfinite(n.value) else f"{'-' * (n.value < 0)}{infinity}"

    return number


def _latex_number(n: Number) -> str:
    mantissa, _, exponent = _exact(r"\infty", r"\mathrm{NaN}")(n).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


COPIES = {
    "calculator": Notation(_exact("inf", "nan"), _CALCULATOR),
    "python": Notation(_exact("math.inf", "math.nan"), _PYTHON, power="{} ** {}", square="{} ** 2"),
    # A spreadsheet knows no infinity; 1E+300 does what one does in EXP.
    "spreadsheet": Notation(_exact("1E+300", "NA()"), _SPREADSHEET, quotient="{}/{}"),
    "latex": Notation(
        _latex_number, _LATEX, product=r"{} \cdot {}", quotient=r"\frac{{{}}}{{{}}}", power="{}^{{{}}}",
        bracketed=r"\left({}\right)", fraction=True,
    ),
}  # fmt: skip


def copy_of(node: Expression, kind: str) -> str:
    """The expression at full precision, to paste into a calculator, Python, a spreadsheet or LaTeX."""
    text = write(node, COPIES[kind])
    return f"={text}" if kind == "spreadsheet" else text


def write(node: Expression, notation: Notation) -> str:
    """The expression as text."""
    return _write(node, notation)[0]


def _write(node: Expression, notation: Notation) -> tuple[str, int]:
    """The text, and how tightly it binds."""
    match node:
        case Number():
            digits = notation.number(node)
            return digits, SUM if digits.startswith("-") else PRODUCT if " " in digits else ATOM
        case InFloat64(inside):
            return _write(inside, notation)
        case Sum(parts):
            return _sum([write(part, notation) for part in _shown(parts, notation)], len(parts), notation), SUM
        case Difference(a, b):
            return f"{_in(a, SUM, notation)} - {_in(b, PRODUCT, notation)}", SUM
        case Product(a, b):
            return notation.product.format(_in(a, PRODUCT, notation), _in(b, POWER, notation)), PRODUCT
        case Quotient(a, b) if notation.fraction:
            return notation.quotient.format(write(a, notation), write(b, notation)), ATOM
        case Quotient(a, b):
            return notation.quotient.format(_in(a, PRODUCT, notation), _in(b, POWER, notation)), PRODUCT
        case Power(a, Number(value)) if value == 2:
            return notation.square.format(_in(a, ATOM, notation)), POWER
        case Power(a, b):
            raised = write(b, notation) if notation.fraction else _in(b, ATOM, notation)
            return notation.power.format(_in(a, ATOM, notation), raised), POWER
        case Apply(function, argument):
            return notation.functions[function].format(write(argument, notation)), ATOM
    return _write(terms(node), notation)


def _in(node: Expression, least: int, notation: Notation) -> str:
    text, binds = _write(node, notation)
    return text if binds >= least else notation.bracketed.format(text)


def _shown(parts: tuple[Expression, ...], notation: Notation) -> tuple[Expression, ...]:
    if not notation.left_out or len(parts) <= LONGEST_SUM:
        return parts
    return (*parts[:SHOWN_FIRST], *parts[-SHOWN_LAST:])


def _sum(written: list[str], length: int, notation: Notation) -> str:
    pieces = []
    for i, text in enumerate(written):
        if len(written) < length and i == SHOWN_FIRST:
            pieces.append("+ " + notation.left_out.format(length - len(written)))
        pieces.append(text if i == 0 else f"- {text[1:]}" if text.startswith("-") else f"+ {text}")
    return " ".join(pieces)


def formula(node: Expression, name: Callable[[str], str]) -> str:
    """The formula of one number, with indices: `Σ_k Q[0,k]*K[0,k]`. `name` shortens the quantities' addresses."""

    def symbol(n: Number) -> str:
        if n.cell is None:
            return n.symbol or f"{n.value:g}"
        quantity, place = n.cell
        return f"{name(quantity)}[{','.join('k' if p < 0 else str(p) for p in place)}]"

    def running(row: Row) -> Number:
        return Number(0.0, (row.name, tuple(-1 if p is None else p for p in row.place)))

    def short(whole: Expression) -> Expression:
        match whole:
            case Total(x):
                return Apply("sum", running(x))
            case Dot(a, b):
                return Apply("sum", Product(running(a), running(b)))
            case Squares(x, mean):
                return Apply("sum", Power(Difference(running(x), mean), Number(2.0)))
            case Exps(x, shift):
                return Apply("sum", exponential(running(x), shift))
            case Sum(parts):
                return Sum(tuple(map(short, parts)))
            case Difference(a, b) | Product(a, b) | Quotient(a, b) | Power(a, b):
                return type(whole)(short(a), short(b))
            case Apply(function, a):
                return Apply(function, short(a))
            case InFloat64(a):
                return short(a)
        return whole

    return write(short(node), Notation(symbol, {**_PLAIN, "sum": "Σ_k {}"}, square="{}²"))
