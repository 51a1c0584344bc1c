"""Test the engine's rules for exp, log and sums: their accuracy, and the order of additions."""

import math

import numpy as np
import pytest

from vidrio.model.exact import LANES, exp, in_lanes, log

F = np.float32


def test_exp_is_within_two_units_in_the_last_place():
    x = np.linspace(-87, 88, 100_001, dtype=F)
    true = np.exp(x.astype(np.float64))
    assert np.max(np.abs(exp(x) - true) / np.spacing(true.astype(F))) < 2
    assert exp(F(0)) == 1


def test_exp_at_its_edges():
    values = exp(np.array([-np.inf, -1e30, -87.1, 88, 1e30, np.inf, np.nan], F))
    assert list(values[:3]) == [0, 0, 0]
    assert values[3] == values[4] == values[5] < np.inf
    assert math.isnan(values[6])


def test_log_is_within_two_units_in_the_last_place():
    x = np.exp(np.linspace(-80, 80, 100_001)).astype(F)
    true = np.log(x.astype(np.float64))
    assert np.max(np.abs(log(x) - true) / np.spacing(np.abs(true).clip(0.1).astype(F))) < 2
    assert log(F(1)) == 0


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 200, 12_345])
def test_in_lanes_adds_in_the_order_it_promises(length):
    rows = np.random.default_rng(length).normal(size=(3, length)).astype(F) * F(1e3)
    for row, total in zip(rows, in_lanes(rows), strict=True):
        lanes = [F(0)] * LANES
        for place, value in enumerate(row):
            lanes[place % LANES] = lanes[place % LANES] + value
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [lanes[i] + lanes[i + half] for i in range(half)]
        assert total == lanes[0]
