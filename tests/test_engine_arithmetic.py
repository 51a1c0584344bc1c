"""Test the engine's arithmetic: the order of sums, float32 accuracy, and that steps match a full pass bit for bit."""

import math

import numpy as np
import pytest

from parity_models import SOURCE, TARGET
from traced import CHOICES, make_machine, run
from vidrio.glass import engine, maths, positions
from vidrio.glass.engine import IN_ORDER, INT8
from vidrio.glass.machine import KeyValueCache
from vidrio.glass.operations import OPERATIONS
from vidrio.glass.walk import encode, last_row, logits
from vidrio.model.quantised import LARGEST, to_int8

RANDOM = np.random.default_rng(5)


def float32(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def test_a_product_is_added_term_by_term_from_the_left() -> None:
    a, b = float32(3, 37), float32(37, 5)
    for i, j in np.ndindex(3, 5):
        total = np.float32(0)
        for k in range(37):
            total = np.float32(total + np.float32(a[i, k] * b[k, j]))
        assert engine.in_order(a, b)[i, j] == total


@pytest.mark.parametrize("n", [64, 3000])
def test_a_product_of_whole_numbers_is_exact(n: int) -> None:
    a, b = RANDOM.integers(-127, 128, (4, n)), RANDOM.integers(-LARGEST, LARGEST + 1, (n, 6))
    found = engine.whole_product(a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(found, (a @ b).astype(np.float32))


def test_rows_are_rounded_to_the_nearest_of_255_numbers() -> None:
    x = float32(5, 64)
    x[3] = 0
    x[4] = 1e-31
    scale = engine.scale_of_rows(x)
    whole = INT8.operations["whole_by_rows"].run(x, scale)
    assert np.abs(whole[:3]).max(axis=1).tolist() == [127.0] * 3
    assert np.all(np.abs(whole * scale[:, None] - x) <= 0.5001 * scale[:, None])
    assert scale[3:].tolist() == [1.0, 1.0]
    assert not whole[3:].any()
    assert not np.signbit(whole[whole == 0]).any()  # an integer has no −0


def test_weights_are_rounded_to_the_nearest_of_127_numbers() -> None:
    w = float32(64, 9)
    w[:, 3] = 0
    whole, scale = to_int8(w, 0)
    assert set(np.abs(whole).max(axis=0)) == {float(LARGEST), 0.0}
    assert scale[3] == np.float32(1) / np.float32(63)
    assert np.all(np.abs(whole * scale - w) <= 0.5001 * scale)


@pytest.mark.parametrize("name", ["gelu", "swish"])
def test_activations_are_right_to_float32(name: str) -> None:
    x = np.concatenate([np.linspace(-12, 12, 4801), [0, -0.0]]).astype(np.float32)
    ours, exact = (table[name].run(y) for table, y in ((IN_ORDER.operations, x), (OPERATIONS, x.astype(np.float64))))
    assert ours.dtype == np.float32
    assert np.abs(ours - exact).max() < 2e-6


def test_what_the_mask_hides_does_not_change_the_rest() -> None:
    x = float32(3, 40)
    hidden = np.concatenate([x, np.full((3, 13), -np.inf, np.float32)], axis=1)
    np.testing.assert_array_equal(engine.softmax(hidden)[:, :40], engine.softmax(x))
    np.testing.assert_allclose(engine.softmax(x), maths.softmax(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("arithmetic", [INT8, IN_ORDER], ids=lambda a: a.name)
@pytest.mark.parametrize("choice", [c for c, how in CHOICES.items() if how.get("shape") != "encoder"])
def test_steps_with_kept_keys_and_values_give_the_bits_of_one_pass(choice: str, arithmetic: object) -> None:
    machine = make_machine(choice, np.float32, arithmetic)
    trace, cache = run(machine), KeyValueCache()
    memory = encode(machine, SOURCE) if machine.config.has_encoder else None
    for step, token in enumerate(trace.array("tgt.ids")):
        np.testing.assert_array_equal(
            logits(machine, last_row(machine, [token], memory, cache))[0], trace.array("out.logits")[step]
        )


@pytest.mark.parametrize("choice", CHOICES)
def test_it_is_close_to_floating_point(choice: str) -> None:
    exact = run(make_machine(choice)).array("out.prob")
    for arithmetic, far in ((INT8, 0.1), (IN_ORDER, 1e-5)):
        found = run(make_machine(choice, np.float32, arithmetic)).array("out.prob")
        assert found.dtype == np.float32
        assert np.abs(found - exact).max() < far


def test_a_score_is_the_logarithm_of_its_probability() -> None:
    trace = run(make_machine("paper", np.float32, IN_ORDER))
    prob = trace.array("out.prob")[np.arange(len(TARGET)), trace.array("out.choice")]
    np.testing.assert_allclose(trace.array("out.score"), np.log(prob), rtol=1e-5)
    impossible = run(make_machine(), lambda name, value: value * 0 if name == "out.prob" else value)
    assert (impossible.array("out.score") == -math.inf).all()


def test_sines_and_cosines_are_right_to_the_last_bits() -> None:
    angle = np.concatenate([np.linspace(0, 7, 1001), np.linspace(0, 5000, 20_001)])
    sine, cosine = positions.sine_and_cosine(angle)
    exact = angle.astype(np.longdouble)
    assert np.abs(sine - np.sin(exact)).max() < 2.3e-16
    assert np.abs(cosine - np.cos(exact)).max() < 2.3e-16


@pytest.mark.parametrize("d_model", [4, 256, 1024])
def test_scales_are_powers_of_ten_thousand(d_model: int) -> None:
    exact = np.longdouble(10000) ** (np.arange(0, d_model, 2).astype(np.longdouble) / d_model)
    assert np.abs(positions.scales(d_model) / exact - 1).max() < 4e-15
