"""Compare the batched greedy search used in training with the usual search over the reference implementation."""

import numpy as np
import pytest
import torch

from parity_models import make_config, make_parameters
from vidrio import search
from vidrio.glass import machine as glass
from vidrio.glass import walk
from vidrio.hypothesis import Options, default_options
from vidrio.learn import model, validate
from vidrio.learn.batches import Examples, in_memory
from vidrio.learn.parameters import Parameters
from vidrio.learn.validate import translate
from vidrio.model.config import SpecialIds

RECURRENT = {"decoder_cell": "ssru", "special": SpecialIds(pad=1, start=-1)}


def engines(seed: int, **changes: object) -> tuple[glass.Machine, model.Network]:
    config = make_config(max_positions=40, output_bias=True, **changes)
    parameters = make_parameters(config, seed)
    parameters["out.b"][config.special.end] += 3  # a random model rarely produces the end token
    return glass.build(config, parameters), model.build(Parameters.from_arrays(config, parameters, torch.float64))


def sources() -> list[list[int]]:
    random = np.random.default_rng(3)
    return [random.integers(4, 29, size=length).tolist() for length in (5, 2, 9, 4, 7, 1)]


def examples(sources: list[list[int]]) -> Examples:
    return in_memory([(source, [4]) for source in sources])


@pytest.mark.parametrize("changes", [{}, RECURRENT], ids=["attention", "recurrent"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_same_translations_as_search_over_glass(seed: int, changes: dict[str, object]) -> None:
    machine, net = engines(seed, **changes)
    special = machine.config.special
    ours = translate(net, examples(sources()))
    for source, ids in zip(sources(), ours, strict=True):
        ended = [*source, special.end]
        options = Options(beam=1, max_length=39, suppressed=default_options(machine.config).suppressed)
        best = search.search(walk.stepper(machine, ended), special.start, special.end, options)[0]
        assert ids == list(best.ids)[: 2 * len(ended) + 20]


def test_company_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, net = engines(1)
    together = translate(net, examples(sources()))
    assert together == [translate(net, examples([source]))[0] for source in sources()]
    monkeypatch.setattr(validate, "ROOM", 30)  # small batches
    assert together == translate(net, examples(sources()))


def test_what_is_longer_than_the_model_has_no_translation() -> None:
    _, net = engines(1)
    assert translate(net, examples([[5] * 40, [5, 6]]))[0] == []
    assert translate(net, examples([])) == []
