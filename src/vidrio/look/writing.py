"""How a number, a shape and a word are written: plain text that needs no colour and moves no cursor."""

import math
import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

WIDTH = 80  # columns of a terminal
PRECISION = 4  # decimals
NO_BREAK = "\N{NO-BREAK SPACE}"

_JOINERS = "\u200c\u200d"


def number(value: float, precision: int = PRECISION) -> str:
    """A number with `precision` decimals, such that Python reads it back.

    Only an exact zero is written 0. What would round to zero, and what is very large, is written with an exponent.
    """
    if isinstance(value, int | np.integer):
        return str(int(value))
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value:.{max(2, precision)}e}"
    fixed = f"{value:.{precision}f}"
    return f"{value:.{max(1, precision - 2)}e}" if float(fixed) == 0 else fixed


def value_range(array: Any, precision: int = PRECISION) -> str:
    """`-3.2100 … 4.0700` over the finite values, and how many are not finite."""
    array = np.asarray(array)
    finite = array[np.isfinite(array)]
    parts = [f"{number(finite.min(), precision)} … {number(finite.max(), precision)}"] if finite.size else []
    for name, test in (("NaN", np.isnan), ("inf", np.isposinf), ("-inf", np.isneginf)):
        count = int(test(array).sum()) if array.dtype.kind == "f" else 0
        parts += [f"{count} {name}"] if count else []
    return ", ".join(parts) or "nothing"


def shape(array: Any) -> str:
    """`2 × 4`."""
    return " × ".join(map(str, np.shape(array))) or "one number"


def visible(text: str) -> str:
    """Text without anything that could move a terminal's cursor: control and direction characters are written out.

    The joiners of Persian, of Indic scripts and of emoji stay where they join.
    """
    return "".join(
        c
        if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        or (c in _JOINERS and 0 < i < len(text) - 1)
        else _written_out(c)
        for i, c in enumerate(text)
    )


def _written_out(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, f"<U+{ord(character):04X}>")


def text_width(text: str) -> int:
    """How many columns a text takes on a terminal: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns; what is cut off leaves a `…`."""
    text = visible(text)
    if text_width(text) <= width:
        return text
    kept = sum(used < width for used in accumulate(map(text_width, text)))
    return text[:kept] + "…"


def clock(minutes: float) -> str:
    """Minutes in few characters: 0.25, 2.5, 31."""
    return f"{minutes:,.0f}" if minutes >= 10 or minutes == 0 else f"{minutes:.2g}"


def minute_at(minutes: Sequence[tuple[float, float]], step: float) -> float:
    """When a step was, on straight lines between those of which it is known."""
    steps, times = zip(*minutes, strict=True)
    return float(np.interp(step, steps, times))


def clip(text: str, most: int = 120) -> str:
    """Texts of a young model go on and on."""
    return text if len(text) <= most else f"{text[:most]}…"


def left(text: str, width: int) -> str:
    """Text at the left of a column."""
    return text + " " * max(0, width - text_width(text))
