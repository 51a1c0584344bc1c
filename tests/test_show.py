"""Test how numbers and matrices are written: nothing is lost, nothing is invented, and columns are aligned."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.look import writing
from vidrio.look.quantities import Numbers, matrix

EVERY_FLOAT = st.floats(-1e308, 1e308) | st.sampled_from([math.nan, math.inf, -math.inf])


@pytest.mark.parametrize(
    ("value", "precision", "drawn"),
    [
        (0.25, 4, "0.2500"),
        (68.0, 0, "68"),
        (0.0, 4, "0"),
        (-0.0, 4, "0"),
        (4.676955729e-10, 4, "4.68e-10"),
        (0.00006, 4, "0.0001"),
        (1.1e7, 4, "1.1000e+07"),
        (math.nan, 4, "NaN"),
        (math.inf, 4, "inf"),
        (-math.inf, 4, "-inf"),
        (np.int64(7), 4, "7"),
    ],
)
def test_a_number(value: float, precision: int, drawn: str) -> None:
    assert writing.number(value, precision) == drawn


@given(EVERY_FLOAT, st.integers(0, 17))
def test_a_drawn_number_reads_back_near_what_it_was(value: float, precision: int) -> None:
    drawn = float(writing.number(value, precision))
    if not math.isfinite(value):
        assert drawn == value or (math.isnan(drawn) and math.isnan(value))
    else:
        assert abs(drawn - value) <= max(0.5 * 10.0**-precision, abs(value) * 0.05) * (1 + 1e-9)
        assert (drawn == 0) == (value == 0), "0 is written for an exact zero only"


def test_matrices_have_places_and_tokens_and_aligned_points() -> None:
    drawn = matrix(Numbers(np.array([[1, 30.25], [-2.5, 1e-9]]), ["hello", "world"], ["a", "b"]))
    assert drawn.splitlines() == [
        "               0          1",
        "               a          b",
        "0 hello   1.0000  30.2500",
        "1 world  -2.5000   1.00e-09",
    ]


@given(st.lists(st.lists(st.floats(-1e5, 1e5), min_size=3, max_size=3), min_size=1, max_size=6), st.integers(1, 9))
def test_decimal_points_stand_under_each_other(rows: list[list[float]], precision: int) -> None:
    array = np.array(rows)
    array[array == np.round(array)] += 0.5  # an integer has no decimal point
    lines = matrix(Numbers(array), precision, width=200).splitlines()[1:]
    assert len({tuple(match.start() for match in re.finditer(r"\.", line)) for line in lines}) == 1


def test_whole_numbers_are_drawn_whole() -> None:
    assert matrix(Numbers(np.array([[4.0, 8.0], [6.0, 0.0]]), (), ())) == "4  8\n6  0"
    assert matrix(Numbers(np.array([3, 1]), columns=["a", "b"])) == "0  1\na  b\n3  1"
    assert matrix(Numbers(np.zeros((0, 3)))) == "(nothing: 0 × 3)"
    assert writing.value_range(np.array([1.0, np.nan, -np.inf, 2.0])) == "1.0000 … 2.0000, 1 NaN, 1 -inf"


def test_what_is_left_out_is_counted_and_its_range_told() -> None:
    array = np.arange(40 * 30, dtype=float).reshape(40, 30) / 7
    drawn = matrix(Numbers(array, limit=(6, 6)))
    shown = {float(cell) for line in drawn.splitlines()[1:-1] for cell in line.split()[1:] if cell != "…"}
    hidden = [value for value in array.ravel() if round(value, 4) not in shown]
    rows, columns = map(int, re.findall(r"(\d+) more", drawn))
    assert (40 - rows) * (30 - columns) == len(shown)
    told = drawn.splitlines()[-1]
    assert told.endswith(f"range {min(hidden):.4f} … {max(hidden):.4f}")


def test_shading_stands_beside_digits() -> None:
    drawn = matrix(Numbers(np.array([[0.0, 1.0, 0.5], [1e-9, 0.124, np.nan]]), (), (), shares=True))
    assert drawn.splitlines() == ["0           1.0000 █    0.5000 ▅", "1.00e-09 ▁  0.1240 ▁  NaN"]
    assert [writing.shade(v) for v in (-0.1, 1.1, math.nan, 0.0)] == [" "] * 4


@pytest.mark.parametrize(
    ("text", "width"), [("hola", 4), ("日本語", 6), ("é", 1), ("e\u0301", 1), ("ｆｕｌｌ", 8), ("▁Hello", 6)]
)
def test_width_on_a_terminal(text: str, width: int) -> None:
    assert writing.text_width(text) == width


@given(st.text(max_size=30), st.integers(1, 20))
def test_cut_keeps_to_the_width_and_leaves_nothing_invisible(text: str, width: int) -> None:
    short = writing.cut(text, width)
    assert writing.text_width(short) <= width
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", short)
    if len(writing.visible(text)) <= width and writing.text_width(writing.visible(text)) <= width:
        assert short == writing.visible(text)


def test_control_characters_cannot_reach_the_terminal() -> None:
    assert writing.visible("a\x1b[31m\nb\u202e") == "a<U+001B>[31m\\nb<U+202E>"
    assert writing.visible("👩\u200d👧") == "👩\u200d👧"
    assert writing.visible("\u200d") == "<U+200D>"


@given(st.text(alphabet="ab c ", max_size=200), st.integers(10, 40))
def test_wrap_loses_no_word(text: str, width: int) -> None:
    wrapped = writing.wrap(text, width, "  ", "    ")
    assert wrapped.split() == text.split()
    longest = max(map(len, text.split()), default=0)
    assert all(len(line) <= max(width, longest + 4) for line in wrapped.splitlines())
