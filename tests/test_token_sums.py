"""Test expressing the difference of two logits as a sum over the input tokens."""

import numpy as np
import pytest

from tolerances import FLOAT64
from traced import CHOICES, make_trace
from vidrio.look.parts import columns
from vidrio.look.token_sums import token_sums


@pytest.mark.parametrize("choice", CHOICES)
def test_tokens_and_biases_add_up_to_the_difference(choice: str) -> None:
    trace = make_trace(choice)
    logits = np.atleast_2d(trace.values["out.logits"])
    this, that = logits.argmax(axis=-1), logits.argmin(axis=-1)
    rows = np.arange(len(logits))
    found = token_sums(trace, rows.tolist(), columns(trace, this.tolist()) - columns(trace, that.tolist()))
    bias = trace.machine.parameters.get("out.b", np.zeros(logits.shape[1]))
    differences = logits[rows, this] - logits[rows, that] - (bias[this] - bias[that])
    sums = found.source_NS.sum(axis=1) + found.target_NT.sum(axis=1) + found.biases_N
    sizes = np.abs(found.source_NS).sum(axis=1) + np.abs(found.target_NT).sum(axis=1) + np.abs(found.biases_N)
    assert (np.abs(sums - differences) <= FLOAT64 * sizes).all()
    assert found.source_NS.any() == trace.machine.config.has_encoder
    assert not np.triu(found.target_NT, 1).any()  # no row depends on later ones


def test_one_row_is_explained_as_beside_the_others() -> None:
    trace = make_trace("paper")
    d_RD = columns(trace, [1] * 3) - columns(trace, [2] * 3)
    together, alone = token_sums(trace, [0, 1, 2], d_RD), token_sums(trace, [1], d_RD[:1])
    for all_of_them, one in zip(together, alone, strict=True):
        assert all_of_them[1] == pytest.approx(one[0], rel=1e-12)
