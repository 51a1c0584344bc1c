"""Batched greedy search while learning, against the search that knows ids only, driven by glass."""

import numpy as np
import pytest
import torch

from parity_models import make_config, make_parameters
from vidrio import search
from vidrio.glass import machine as glass
from vidrio.glass import walk
from vidrio.hypothesis import Options
from vidrio.learn import model, validate
from vidrio.learn.batches import Examples, in_memory
from vidrio.learn.parameters import Parameters
from vidrio.learn.validate import translate


def engines(seed: int) -> tuple[glass.Machine, model.Network]:
    config = make_config(max_positions=40, output_bias=True)
    parameters = make_parameters(config, seed)
    parameters["out.b"][config.special.end] += 3  # random models hardly ever end by themselves
    return glass.build(config, parameters), model.build(Parameters.from_arrays(config, parameters, torch.float64))


def sources() -> list[list[int]]:
    random = np.random.default_rng(3)
    return [random.integers(4, 29, size=length).tolist() for length in (5, 2, 9, 4, 7, 1)]


def examples(sources: list[list[int]]) -> Examples:
    return in_memory([(source, [4]) for source in sources])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_same_translations_as_search_over_glass(seed: int) -> None:
    machine, net = engines(seed)
    special = machine.config.special
    ours = translate(net, examples(sources()))
    compared = 0
    for source, ids in zip(sources(), ours, strict=True):
        ended = [*source, special.end]
        options = Options(beam=1, max_length=39, suppressed=(special.pad, special.start))
        best = search.search(walk.stepper(machine, ended), special.start, special.end, options)[0]
        if best.ended and len(best.ids) < 2 * len(ended):
            assert ids == list(best.ids)
            compared += 1
    assert compared >= 3


def test_company_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, net = engines(1)
    together = translate(net, examples(sources()))
    assert together == [translate(net, examples([source]))[0] for source in sources()]
    monkeypatch.setattr(validate, "ROOM", 30)  # few at a time
    assert together == translate(net, examples(sources()))


def test_what_is_longer_than_the_model_has_no_translation() -> None:
    _, net = engines(1)
    assert translate(net, examples([[5] * 40, [5, 6]]))[0] == []
    assert translate(net, examples([])) == []
