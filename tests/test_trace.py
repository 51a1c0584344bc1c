"""Test parsing and resolving addresses, the errors for invalid ones, and the values that a trace accepts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traced import blank, make_machine, make_trace
from vidrio.errors import AddressError
from vidrio.glass.trace import Address, parse_address

# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("memory", Address("memory")),
        ("enc.0.self.scores.h1[3,0]", Address("enc.0.self.scores.h1", ("3", "0"))),
        ("out.prob[0,hola]", Address("out.prob", ("0", "hola"))),
        ('out.prob[0,","]', Address("out.prob", ("0", '","'))),
        ('out.prob["]"]', Address("out.prob", ('"]"',))),
        ("enc.0.self.weights.h1[ world , hello ]", Address("enc.0.self.weights.h1", ("world", "hello"))),
    ],
)
def test_addresses_are_taken_apart(text: str, address: Address) -> None:
    assert parse_address(text) == address


@given(
    st.from_regex(r"[a-z]+(\.[a-z0-9]+){0,4}", fullmatch=True),
    st.lists(st.one_of(st.integers(0, 99).map(str), st.from_regex(r'"[^"\s][^"]*"', fullmatch=True)), max_size=3),
)
def test_an_address_written_and_read_is_the_same(name: str, index: list[str]) -> None:
    address = Address(name, tuple(index))
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["", "][", "enc.0[", "enc.0]1[", "out.prob[hola]@0", "enc 0", "[1,2]", "@1", "a[]"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError, match="is not an address"):
        parse_address(text)


TRACE = make_trace()


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("enc.0.self.wieghts.h0[0,0]", "enc.0.self.weights.h0"),  # misspelled name
        ("enc.7.self.Q.h0[0,0]", "enc.1.self.Q.h0"),  # no such layer
        ("enc.0.self.Q.h3[0,0]", "enc.0.self.Q.h2"),  # no such head
        ("enc.0.self.Q[0,0]", "enc.0.self.Q.h0, enc.0.self.Q.h1, enc.0.self.Q.h2"),  # head missing
        ("enc.0", "enc.0.self.WQ.h0"),
        ("enc.0.self.scores.h0[5,0]", "0 to 4"),  # index out of range
        ("enc.0.self.scores.h0[0]", "enc.0.self.scores.h0[0,0]"),  # too few indices
        ("enc.0.self.scores.h0[s27,0]", "s28"),  # no such token
        ("out.prob[0,s3]", "t3"),
        ("out.prob[0,0,t3]", "out.prob[0,0]"),
    ],
)
def test_a_wrong_address_is_answered_with_the_nearest_right_ones(text: str, offered: str) -> None:
    with pytest.raises(AddressError) as told:
        TRACE.number(parse_address(text))
    assert offered in str(told.value)


def test_a_token_that_stands_twice_does_not_say_which_row() -> None:
    with pytest.raises(AddressError, match="more than one position") as told:
        TRACE.number(parse_address("memory[s7,0]"))
    assert "[1, 4]" in str(told.value)


def test_tokens_and_places_name_the_same_numbers() -> None:
    def number(text: str) -> float:
        return TRACE.number(parse_address(text))

    assert number("enc.0.self.weights.h1[s3,s28]") == number("enc.0.self.weights.h1[0,3]")
    assert number("out.prob[2,t9]") == number("out.prob[2,9]") == number('out.prob[2,"t9"]')
    assert number("embed[t5,2]") == TRACE.machine.parameters["embed"][5, 2]
    assert number("dec.0.self.WQ.h1[2,4]") == TRACE.machine.parameters["dec.0.self.WQ"][1, 2, 4]


def test_a_quoted_number_is_a_token() -> None:
    trace = make_trace()
    trace.vocabulary = ["1", "0", *trace.vocabulary[2:]]
    assert trace.position(parse_address('out.prob[0,"0"]')) == (0, 1)
    assert trace.position(parse_address("out.prob[0,0]")) == (0, 0)
    trace.vocabulary = [",", '"', *trace.vocabulary[2:]]
    assert trace.position(parse_address('out.prob[0,","]')) == (0, 0)
    assert trace.position(parse_address('out.prob[0,"""]')) == (0, 1)


# --- values that a trace accepts --------------------------------------------------------------------------------------


def test_a_trace_refuses_what_is_not_declared_and_wrong_axes() -> None:
    trace = blank(make_machine())
    with pytest.raises(AddressError, match="not declared"):
        trace.tap("enc.0.self.secret", np.zeros((5, 12)))
    trace.tap("src.embedding", np.zeros((5, 12)))
    for shape in ((12, 5), (5,), (6, 12)):
        with pytest.raises(AddressError, match="has shape"):
            trace.tap("enc.in", np.zeros(shape))
