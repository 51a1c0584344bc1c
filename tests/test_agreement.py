"""What is shown is what was printed: `glass/` in eight bits finds the tokens of the fast engine."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vidrio.glass.paper.decoding import stepper
from vidrio.hypothesis import Ids, default_options
from vidrio.look.run import look, open_model
from vidrio.search import Step, search

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from agreement import differing, opened, stepper_in_one_pass

BEHAVIOUR = Path(__file__).parent / "behaviour"


def sources(direction: str) -> list[str]:
    """Sentences of the behaviour cases, as they are read."""
    lines = [
        line.split("\t")[1]
        for path in sorted(BEHAVIOUR.glob(f"{direction}-*.tsv"))
        for line in path.read_text(encoding="utf-8").splitlines()[1:]
    ]
    both = opened(direction)
    usual = [line for line in lines if "\\" not in line and both.source.decode(both.source.encode(line)) == line]
    return [line for line in usual if 3 <= len(line.split()) <= 25]


@pytest.mark.parametrize("direction", ["en-es", "es-en"])
@pytest.mark.parametrize(("beam", "count"), [(1, 60), (4, 8)])
def test_both_engines_find_the_same_tokens(direction: str, beam: int, count: int) -> None:
    lines = sources(direction)
    lines = lines[:: max(1, len(lines) // count)][:count]
    assert len(lines) > count / 2
    assert list(differing(direction, beam, lines)) == []


def test_many_hypotheses_in_one_pass_have_the_numbers_of_one_after_the_other() -> None:
    both = opened("en-es", 4)
    special, options = both.machine.config.special, replace(default_options(both.machine.config), beam=4)
    for line in sources("en-es")[::200]:
        one_by_one, at_once = (make(both.machine, both.ids(line)) for make in (stepper, stepper_in_one_pass))

        def step(prefixes: Sequence[Ids], one_by_one: Step = one_by_one, at_once: Step = at_once) -> np.ndarray:
            rows = one_by_one(prefixes)
            assert np.array_equal(rows, at_once(prefixes))
            return rows

        assert search(step, special.start, special.end, options)[0].ended


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["en-es", "es-en"])
@pytest.mark.parametrize("beam", [1, 4])
def test_both_engines_find_the_same_tokens_on_all_cases(direction: str, beam: int) -> None:
    lines = sources(direction)
    assert len(list(differing(direction, beam, lines))) <= len(lines) / 500


def test_the_default_of_a_packaged_model_is_what_translating_computes_in() -> None:
    machine = look(open_model("en-es"), "Hello world").model.machine
    assert machine.arithmetic.name == "eight bits"
    assert open_model("lesson").machine.arithmetic.name == "float"
    assert open_model("en-es", np.float64).machine.arithmetic.name == "float"
