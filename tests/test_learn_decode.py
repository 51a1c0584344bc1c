"""Batched greedy search while learning, against the search that knows ids only, driven by glass."""

import numpy as np
import pytest
import torch

from parity_models import make_config, make_parameters
from vidrio import search
from vidrio.glass import machine as glass
from vidrio.glass import walk
from vidrio.hypothesis import Options
from vidrio.learn import model
from vidrio.learn.parameters import Parameters
from vidrio.learn.validate import translate


def engines(seed: int) -> tuple[glass.Machine, model.Network]:
    config = make_config(max_positions=40, output_bias=True)
    parameters = make_parameters(config, seed)
    parameters["out.b"][config.special.end] += 3  # random models hardly ever end by themselves
    return glass.build(config, parameters), model.build(Parameters.from_arrays(config, parameters, torch.float64))


def sources() -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.integers(4, 29, size=length) for length in (5, 2, 9, 4, 7, 1)]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_same_translations_as_search_over_glass(seed: int) -> None:
    machine, net = engines(seed)
    special = machine.config.special
    ours = translate(net, sources())
    compared = 0
    for source, ids in zip(sources(), ours, strict=True):
        ended = [*source.tolist(), special.end]
        options = Options(beam=1, max_length=39, suppressed=(special.pad, special.start))
        best = search.search(walk.stepper(machine, ended), special.start, special.end, options)[0]
        if best.ended and len(best.ids) < 2 * len(ended):
            assert ids == list(best.ids)
            compared += 1
    assert compared >= 3


def test_company_changes_nothing() -> None:
    _, net = engines(1)
    together = translate(net, sources())
    alone = [translate(net, [source])[0] for source in sources()]
    few_at_a_time = translate(net, sources(), room=12)
    assert together == few_at_a_time
    assert together == alone


def test_empty_source_gives_empty_translation() -> None:
    config = make_config(source_end=False)
    net = model.build(Parameters.from_arrays(config, make_parameters(config), torch.float64))
    assert translate(net, [np.zeros(0, np.int64), np.array([5, 6])])[0] == []
    assert translate(net, []) == []
