"""Test receipts: every number is recomputed independently within a tight bound, and can be recomputed by hand."""

import ast
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traced import CHOICES, make_machine, make_trace, run
from vidrio.glass.checking import Checked, check, check_quantity, recomputed
from vidrio.glass.expressions import PRECISIONS, Apply, At, Number, Row, apply, bounded, evaluate
from vidrio.glass.maths import softmax
from vidrio.glass.notations import COPIES, copy_of
from vidrio.glass.receipts import Compared, locate, receipt, used_by
from vidrio.glass.trace import Trace, parse_address
from vidrio.look.receipt import digits
from vidrio.look.writing import number

DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16}


def computed(trace: Trace) -> list[str]:
    return [name for name in trace.values if trace.stages[name].kind in ("value", "aggregate")]


def bill(trace: Trace, address: str):
    return receipt(trace, locate(trace, parse_address(address)))


# --- wrong numbers are caught; test_check.py covers the right ones ----------------------------------------------------


def wrong_in(trace: Trace, name: str) -> int:
    checked = Checked()
    check_quantity(trace, name, checked)
    return checked.wrong


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bound_is_not_slack(dtype: str) -> None:
    """Check that the bound is small and that the largest error exceeds a tenth of it. A loose bound catches nothing."""
    trace = make_trace("swish-learned-biases", DTYPES[dtype])
    for name in computed(trace):
        size = np.abs(trace.array(name)[np.isfinite(trace.array(name))]).max()
        assert recomputed(trace, name)[1].max() <= 300 * PRECISIONS[dtype].epsilon * max(size, 1.0), name
    assert check(trace).share > 0.1


@pytest.mark.parametrize(
    ("slip", "caught"),
    [
        ("divided by d_k, not √d_k", {"divide"}),
        ("N − 1 in the variance", {"variance"}),
        ("ε outside the root", {"normalise"}),
        ("sine and cosine exchanged", {"sinusoidal_positions"}),
        ("embeddings not scaled", {"scale"}),
        ("tanh instead of erf in gelu", {"gelu"}),
    ],
)
def test_the_slips_that_people_make_are_caught(slip: str, caught: set[str]) -> None:
    trace = make_trace("paper", activation="gelu")
    values, c = trace.values, trace.machine.config
    match slip:
        case "divided by d_k, not √d_k":
            values["enc.0.self.scaled.h0"] = values["enc.0.self.scores.h0"] / c.d_head
        case "N − 1 in the variance":
            values["enc.0.self.norm.var"] = values["enc.0.self.norm.var"] * c.d_model / (c.d_model - 1)
        case "ε outside the root":
            x, mean = values["enc.0.self.sum"], values["enc.0.self.norm.mean"]
            deviation = np.sqrt(values["enc.0.self.norm.var"])
            values["enc.0.self.norm.normed"] = (x - mean[:, None]) / (deviation[:, None] + c.norm_epsilon)
        case "sine and cosine exchanged":
            values["src.positions"] = values["src.positions"].reshape(5, -1, 2)[:, :, ::-1].reshape(5, -1)
        case "embeddings not scaled":
            values["src.scaled"] = values["src.embedding"].copy()
        case "tanh instead of erf in gelu":
            x = values["enc.0.ffn.hidden"]
            values["enc.0.ffn.active"] = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    wrong = {trace.stages[name].operation for name in computed(trace) if wrong_in(trace, name)}
    assert caught <= wrong


def test_nan_and_infinity_agree_with_themselves_only() -> None:
    assert Compared(math.nan, math.nan, 0.0).agrees
    assert Compared(math.inf, math.inf, 0.0).agrees
    for model, again in ((math.nan, 1.0), (1.0, math.nan), (math.inf, -math.inf), (math.inf, 1e308)):
        assert not Compared(model, again, 1.0).agrees


# --- the bound, against exact arithmetic ------------------------------------------------------------------------------

FLOATS32 = st.floats(-1e3, 1e3, width=32)
PAIRS = st.lists(st.tuples(FLOATS32, FLOATS32), min_size=1, max_size=40)


def row(values) -> Row:
    return Row("x", (None,), np.array(values, float))


@given(PAIRS)
def test_sums_of_products_are_within_the_bound_of_the_exact_value(pairs) -> None:
    a, b = (np.array(side, dtype=np.float32) for side in zip(*pairs, strict=True))
    exact = sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)), Fraction(0))
    value, bound = bounded(apply("Σ", row(a) * row(b)), PRECISIONS["float32"])
    assert abs(Fraction(value) - exact) <= Fraction(bound)
    in_turn = np.float32(0)
    for x, y in zip(a, b, strict=True):
        in_turn = np.float32(in_turn + x * y)
    for model in (a @ b, np.float32((a * b).sum()), in_turn, np.float32((a * b)[::-1].sum())):
        assert abs(float(model) - value) <= bound


@given(st.lists(st.floats(-60, 60, width=32), min_size=1, max_size=40))
def test_shares_are_within_the_bound(values) -> None:
    x = np.array(values, dtype=np.float32)
    largest = Number(float(x.max()))
    exps = apply("Σ", apply("exp", row(x) - largest))
    for value, model in zip(values, softmax(x), strict=True):
        node = apply("exp", Number(float(np.float32(value))) - largest) / exps
        recomputed, bound = bounded(node, PRECISIONS["float32"])
        assert abs(float(model) - recomputed) <= bound <= 1e-3 * recomputed + 1e-30


# --- the working ------------------------------------------------------------------------------------------------------


def test_a_score_by_hand() -> None:
    node = apply("Σ", Row("Q", (0, None), np.array([8.0, 3, 3])) * Row("K", (0, None), np.array([4.0, 8, 4])))
    trace = make_trace()
    stage = trace.stages["enc.0.self.scores.h0"]
    own = bill(trace, "enc.0.self.scores.h0[0,0]")
    by_hand = type(own)(**{**vars(own), "expression": node, "stage": stage})
    assert by_hand.working(digits(4)) == ["8*4 + 3*8 + 3*4", "32 + 24 + 12", "68"]
    assert by_hand.formula == "Σ_k Q[0,k]*K[0,k]"


def test_numbers_as_printed_may_not_give_the_number_as_printed() -> None:
    """Multiply row "World" of the worked example by threes. As printed, 3 · 2.8 + 3 · 4.0 + 3 · 4.0 makes 32.4."""
    row, column = np.array([2.841470985, 3.99995, 4.0001, 6.0]), np.array([3.0, 3.0, 3.0, 0.0])
    node = apply("Σ", Row("E", (1, None), row) * Row("W", (None, 0), column))
    own = bill(make_trace(), "enc.0.self.scores.h0[0,0]")
    value = evaluate(node)
    own = type(own)(**{**vars(own), "expression": node, "compared": Compared(value, value, 0.0)})
    assert number(value, 1) == "32.5"
    assert own.from_printed(lambda v: number(v, 1)) == "32.4"
    assert own.from_printed(lambda v: number(v, 2)) is None  # both give 32.52


@pytest.mark.parametrize("choice", CHOICES)
def test_every_line_of_the_working_and_what_is_copied_come_to_the_same(choice: str) -> None:
    trace = make_trace(choice)
    for name in computed(trace):
        at = At(name, tuple(length - 1 for length in trace.array(name).shape))
        own = receipt(trace, at)
        assert own.formula
        for kind in COPIES:
            text = own.copy(kind)
            assert text.startswith("=") == (kind == "spreadsheet")
            assert calculated(text.removeprefix("=")) == pytest.approx(own.compared.recomputed, rel=1e-13, abs=1e-300)
        for line in own.working(repr):
            if "more terms" not in line and "inf" not in line:
                assert calculated(line) == pytest.approx(own.compared.recomputed, rel=1e-12, abs=1e-15), (name, line)


def calculated(line: str) -> float:
    """Evaluate a line in any of the notations."""
    line = line.replace("²", "**2").replace("^", "**").replace("√", "sqrt")
    line = re.sub(r"\|([^|]*)\|", r"abs(\1)", line)
    line = re.sub(r"\b(EXP|SQRT|MAX|SIN|COS|ERF|ABS|LN)\b", lambda match: match[0].lower(), line)
    names = {name: getattr(math, name) for name in ("exp", "sqrt", "sin", "cos", "erf", "log", "inf", "nan")}
    names |= {"math": math, "max": max, "abs": abs, "ln": math.log}
    return float(eval(compile(ast.parse(line, mode="eval"), "line", "eval"), {"__builtins__": {}}, names))


def test_signs_and_brackets() -> None:
    minus = Number(-2.0)
    half = Number(1.0) / (Number(2.0) * minus)
    assert copy_of(Apply("+", (minus, minus, minus * minus)), "python") == "-2.0 - 2.0 + (-2.0)*(-2.0)"
    assert copy_of(minus - (minus + Number(1.0)), "python") == "-2.0 - (-2.0 + 1.0)"
    assert copy_of(half, "python") == "1.0 / (2.0*(-2.0))"
    assert copy_of(apply("squared", minus), "python") == "(-2.0) ** 2"
    assert copy_of(Number(-math.inf), "python") == "-math.inf"
    assert copy_of(apply("float64", apply("sin", Number(1.0))), "spreadsheet") == "=SIN(1.0)"
    assert set(COPIES) == {"python", "spreadsheet"}


def test_long_sums_say_how_many_terms_they_leave_out() -> None:
    line = bill(make_trace(), "enc.0.ffn.out[0,0]").working(digits(2))[0]
    assert "… (14 more terms) …" in line  # 20 products (six are shown) and the bias


# --- inputs and uses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", CHOICES)
def test_inputs_are_addresses_that_name_those_numbers_and_lead_back(choice: str) -> None:
    trace = make_trace(choice)
    for name in computed(trace):
        at = At(name, tuple(length // 2 for length in trace.array(name).shape))
        own = receipt(trace, at)
        assert own.inputs or trace.stages[name].operation.endswith("positions")
        for source, value in own.inputs:
            assert trace.number(parse_address(str(source))) == value
            uses = [parse_address(use) for use in used_by(trace, source)]
            assert any(use.name == name and covers(use.index, at.place) for use in uses), (name, source)


def covers(index: tuple[str, ...], place: tuple[int, ...]) -> bool:
    return all(i in (":", str(p)) for i, p in zip(index, place, strict=True))


def test_a_number_that_nobody_used_says_so() -> None:
    trace = make_trace()
    assert list(used_by(trace, At("embed", (13, 0)))) == ["out.logits[:,13]"]  # not in the text, but tied to the output
    assert list(used_by(trace, At("dec.0.self.scaled.h0", (0, 1)))) == []  # masked
    assert list(used_by(trace, At("dec.0.self.scaled.h0", (1, 0)))) == ["dec.0.self.masked.h0[1,0]"]
    learned = make_trace("decoder-learned")
    assert list(used_by(learned, At("tgt.pos", (6, 0)))) == ["tgt.positions[6,0]"]
    assert list(used_by(learned, At("tgt.pos", (7, 0)))) == []  # the text has seven tokens


# --- numbers edited by a what-if --------------------------------------------------------------------------------------


def test_an_edited_number_tells_both_what_was_computed_and_what_went_on() -> None:
    def change(name, value):
        if name != "enc.0.self.weights.h0":
            return value
        value = value.copy()
        value[1, 2] = 0.5
        return value

    trace = run(make_machine(), change)
    own = bill(trace, "enc.0.self.weights.h0[1,2]")
    assert own.edited
    assert own.value == 0.5
    assert own.compared.agrees
    assert not bill(trace, "enc.0.self.weights.h0[1,1]").edited
    assert bill(trace, "enc.0.self.head.h0[1,0]").compared.agrees  # computed from the edited 0.5
