"""Test `glass/` against itself: later rows never affect earlier rows, and only positions convey order.

test_engine_arithmetic.py checks that single steps and a full pass give the same bits.
"""

import numpy as np
import pytest

from parity_models import SOURCE, TARGET, make_config, make_parameters
from tolerances import SAME_CODE
from vidrio.glass import walk
from vidrio.glass.machine import Machine, build

SHAPES = ["encoder-decoder", "decoder"]


def machine(shape: str, **changes: object) -> Machine:
    config = make_config(shape=shape, **changes)
    return build(config, make_parameters(config))


def memory(of: Machine) -> np.ndarray | None:
    return walk.encode(of, SOURCE) if of.config.has_encoder else None


@pytest.mark.parametrize("shape", SHAPES)
def test_the_past_does_not_depend_on_the_future(shape: str) -> None:
    """Check that changing the last three target tokens leaves the earlier rows exactly equal, not just close."""
    ours = machine(shape)
    before = walk.decode(ours, TARGET, memory(ours))
    after = walk.decode(ours, [*TARGET[:4], 30, 1, 17], memory(ours))
    np.testing.assert_array_equal(after[:4], before[:4])
    assert not np.array_equal(after[4:], before[4:])


def test_without_positions_order_is_invisible_to_the_encoder() -> None:
    ours = machine("encoder-decoder", positions="none")
    forward, backward = walk.encode(ours, SOURCE), walk.encode(ours, SOURCE[::-1])
    np.testing.assert_allclose(forward, backward[::-1], rtol=0, atol=SAME_CODE)
    ours = machine("encoder-decoder", positions="sinusoidal")
    assert np.abs(walk.encode(ours, SOURCE) - walk.encode(ours, SOURCE[::-1])[::-1]).max() > 1e-3


def test_encoder_alone_classifies() -> None:
    """Check the probabilities against the output layer and softmax, applied here to the mean memory row."""
    ours = machine("encoder")
    p = ours.parameters
    scores = walk.encode(ours, SOURCE).mean(axis=0) @ p["out.W"] + p["out.b"]
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(walk.classify(ours, SOURCE), expected, rtol=0, atol=SAME_CODE)
