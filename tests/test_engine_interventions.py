"""Test interventions in the engine: many variants in one batch give the same bits as the NumPy what-ifs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from small_models import random_sources, write_model
from test_engine_glass import MODELS, Both, Step, bits
from vidrio.engine.interventions import places_of
from vidrio.errors import InputError
from vidrio.glass.machine import Machine
from vidrio.glass.trace import Trace
from vidrio.glass.walk import decode, encode, logits, stepper, translate_forced
from vidrio.glass.whatif import parse
from vidrio.hypothesis import HeadOff, Hidden, Intervention, Interventions, RowSet, default_options
from vidrio.model.folder import read_config, read_parameters, write_config, write_parameters
from vidrio.model.quantised import quantise
from vidrio.search import search

WITH_DECODER = [name for name in MODELS if name != "encoder"]


@pytest.fixture(scope="module", params=WITH_DECODER)
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("model")
    config = write_model(folder, seed=len(request.param), **MODELS[request.param])
    if len(request.param) % 2:
        write_parameters(folder, quantise(read_parameters(folder), config))
        write_config(folder, *read_config(folder))
    return Both(folder)


def variants_of(both: Both, source: list[int], rows: int, seed: int) -> list[Interventions]:
    """Return variants that disable each head, hide each position, replace a row in each place, or combine these."""
    config, rng = both.config, np.random.default_rng(seed)
    found: list[Intervention] = [Hidden(row) for row in range(len(source) - 1)]
    for place in places_of(config):
        side, _, part = place.partition(".")
        if part.endswith("self") or (part.endswith("cross") and config.has_encoder):
            found += [HeadOff(place, head) for head in range(config.n_heads)]
        if not part.endswith("cross") or config.has_encoder:
            values = rng.normal(size=config.d_model).astype(np.float32).tolist()
            found.append(RowSet(place, int(rng.integers(len(source) if side == "enc" else rows)), values))
    mixed = [tuple(found[i] for i in rng.choice(len(found), 3, replace=False)) for _ in range(6)]
    mixed = [some for some in mixed if sum(isinstance(one, Hidden) for one in some) < len(source)]
    return [(), *((one,) for one in found), *mixed]


def changed(both: Both, source: list[int], target: list[int], some: Interventions) -> tuple[Trace, Machine]:
    """Return the trace of the unchanged run, and the machine of the NumPy what-if."""
    trace = Trace(both.machine, [str(i) for i in range(len(source))])
    post = both.config.norm == "post"
    translate_forced(both.machine.tapped(trace.tap), source, [both.config.special.start, *target])
    asked = []
    for one in some:
        if isinstance(one, Hidden):
            asked.append(("hide", str(one.row)))
        elif isinstance(one, HeadOff):
            asked.append(("heads-off", f"{one.sub_layer}.h{one.head}"))
        else:
            name = one.place if one.place.endswith(".in") else one.place + (".norm.out" if post else ".sum")
            asked.append(("set", f"{name}[{one.row},*]={list(map(float, one.values))}"))
    return trace, parse(asked, trace).apply(both.machine)


def test_each_variant_has_the_bits_of_the_what_if_in_numpy(small: Both) -> None:
    config = small.config
    source = random_sources(config, 1, longest=7)[0] if config.has_encoder else []
    target = [4 + n % 7 for n in range(5)]
    variants = variants_of(small, source, len(target) + 1, 3)
    asked = [(token, (token + 1) % 9) for token in (*target, config.special.end)]
    found = small.engine.forced_changed((source, target), asked, variants)
    assert len(found) == len(variants) > 5
    for variant, rows in zip(variants, found, strict=True):
        before, machine = changed(small, source, target, variant)
        after = Trace(machine, before.source_tokens)
        translate_forced(machine.tapped(after.tap_through(machine.tap)), source, [config.special.start, *target])
        quantities = small.engine.quantities(source, target, variant)
        assert not [name for name in quantities if bits(quantities[name]) != bits(after.values[name])]
        log_softmax = machine.operations["log_softmax_of_choice"].run
        for side in (0, 1):
            expected = log_softmax(after.values["out.logits"], np.array([pair[side] for pair in asked]))
            assert bits(expected) == bits([row[side] for row in rows])


def test_a_search_of_each_variant_finds_what_numpy_finds(small: Both) -> None:
    config = small.config
    source = random_sources(config, 1, longest=7)[0] if config.has_encoder else []
    variants = variants_of(small, source, 6, 4)[::6]
    for more in ({"beam": 1}, {"beam": 3, "n_best": 2, "prefix": (5, 9)}):
        options = replace(default_options(config), max_length=9, **more)  # type: ignore[arg-type]
        found = small.engine.search_changed(tuple(source), options, variants)
        for variant, hypotheses in zip(variants, found, strict=True):
            _, machine = changed(small, source, [5] * 5, variant)
            step = stepper(machine, source or None) if machine.can_cache else afresh(machine, source)
            expected = search(step, config.special.start, config.special.end, options)
            assert [h._replace(attention=None) for h in hypotheses] == [h._replace(attention=None) for h in expected]


def afresh(machine: Machine, source: list[int]) -> Step:
    """Return a stepper that recomputes every row of a prefix, because a row in the middle may be changed."""
    memory = encode(machine, source) if source else None
    return lambda prefixes: np.stack([logits(machine, decode(machine, ids, memory))[-1] for ids in prefixes])


def test_a_batch_of_any_size_gives_the_same_bits(small: Both) -> None:
    source = random_sources(small.config, 1, longest=7)[0] if small.config.has_encoder else []
    pair, asked = (source, [5, 6]), [(5, -1), (-1, -1), (6, 7)]
    variants = variants_of(small, source, 3, 5)
    together = small.engine.forced_changed(pair, asked, variants * 9)
    one_by_one = [small.engine.forced_changed(pair, asked, [variant])[0] for variant in variants]
    assert together == one_by_one * 9
    assert {rows[1] for rows in together} == {(0.0, 0.0)}
    with pytest.raises(ValueError, match="zip"):
        small.engine.forced_changed(pair, asked[1:], variants)


def test_variants_that_are_searched_together_find_what_each_finds_alone(small: Both) -> None:
    """Search more variants than the decoder takes at once. Some are encoded with the others, then wait."""
    source = tuple(random_sources(small.config, 1, longest=7)[0]) if small.config.has_encoder else ()
    options = replace(default_options(small.config), beam=4, max_length=7)
    variants = variants_of(small, list(source), 6, 6)
    together = small.engine.search_changed(source, options, variants * 2)
    alone = [small.engine.search_changed(source, options, [variant])[0] for variant in variants]
    assert [[h._replace(attention=None) for h in found] for found in together] == [
        [h._replace(attention=None) for h in found] for found in alone * 2
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        (Hidden(99),),
        (Hidden(-1),),
        tuple(map(Hidden, range(50))),
        (HeadOff("enc.0.ffn", 0),),
        (HeadOff("dec.0.self", 99),),
        (HeadOff("dec.0.self", -1),),
        (HeadOff("dec.9.self", 0),),
        (RowSet("enc.in", 99, [0.0] * 16),),
        (RowSet("enc.in", -1, [0.0] * 16),),
        (RowSet("dec.in", 10_000, [0.0] * 16),),
        (RowSet("enc.in", 0, [float("nan")] * 16),),
        (RowSet("enc.in", 0, [float("inf")] * 16),),
        (RowSet("enc.in", 0, [0.0] * 15),),
    ],
    ids=str,
)
def test_what_is_not_there_is_refused(wrong: Interventions, tmp_path: Path) -> None:
    config = write_model(tmp_path, d_model=16)
    both, source = Both(tmp_path), (5, 6, config.special.end)
    wrong = tuple(Hidden(row) for row in range(len(source))) if len(wrong) > 1 else wrong
    for ask in (
        lambda: both.engine.forced_changed((source, (5,)), [(5, -1)] * 2, [(), wrong]),
        lambda: both.engine.search_changed(source, default_options(config), [wrong]),
        lambda: both.engine.quantities(source, (5,), wrong),
    ):
        with pytest.raises(InputError, match=r"interventions|sub-layer|a row of"):
            ask()
