"""`glass/` against itself: one pass shows every step, the past ignores the future, keeping changes nothing."""

import numpy as np
import pytest

from parity_models import SOURCE, TARGET, make_config, make_parameters
from tolerances import SAME_CODE
from vidrio.glass import walk
from vidrio.glass.machine import KeyValueCache, Machine, build
from vidrio.glass.walk import last_row

SHAPES = ["encoder-decoder", "decoder"]


def machine(shape: str, **changes: object) -> Machine:
    config = make_config(shape=shape, **changes)
    return build(config, make_parameters(config))


def memory(of: Machine) -> np.ndarray | None:
    return walk.encode(of, SOURCE) if of.config.has_encoder else None


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_pass_is_every_step(shape: str, norm: str) -> None:
    """Row t of one pass over the whole target is what decoding computes at step t, with its keys and values kept."""
    ours = machine(shape, norm=norm)
    seen: list[dict[str, np.ndarray]] = []

    def tap(name: str, value: np.ndarray) -> np.ndarray:
        seen[-1][name] = value
        return value

    seen.append({})
    whole = walk.logits(ours.tapped(tap), walk.decode(ours.tapped(tap), TARGET, memory(ours)))
    cache = KeyValueCache()
    for t, token in enumerate(TARGET):
        seen.append({})
        step = walk.logits(ours.tapped(tap), last_row(ours.tapped(tap), [token], memory(ours), cache))[0]
        np.testing.assert_allclose(step, whole[t], rtol=0, atol=SAME_CODE)
        # Not only the result: every value on the way.
        for name in ("dec.0.self.Q.h2", "dec.1.self.head.h0", "dec.1.ffn.hidden", "dec.out"):
            np.testing.assert_allclose(seen[-1][name][-1], seen[0][name][t], rtol=0, atol=SAME_CODE, err_msg=name)
        weights = seen[0]["dec.1.self.weights.h1"][t, : t + 1]
        np.testing.assert_allclose(seen[-1]["dec.1.self.weights.h1"][0], weights, rtol=0, atol=SAME_CODE)
        assert len(cache.rows["dec.0.self.K.h0"]) == t + 1  # a row a step


@pytest.mark.parametrize("shape", SHAPES)
def test_the_past_does_not_depend_on_the_future(shape: str) -> None:
    """Changing the last three target tokens leaves the rows before them identical: not close, identical."""
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
    """The probabilities are those of the mean memory row, through the output layer, by hand."""
    ours = machine("encoder")
    p = ours.parameters
    scores = walk.encode(ours, SOURCE).mean(axis=0) @ p["out.W"] + p["out.b"]
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(walk.classify(ours, SOURCE), expected, rtol=0, atol=SAME_CODE)
