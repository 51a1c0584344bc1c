"""The table of quantities is complete, in order, and about the numbers that are computed."""

from collections.abc import Sequence

import numpy as np
import pytest

from traced import CHOICES, make_machine, run
from vidrio.glass.numbers.stages import stages_of, without_head
from vidrio.glass.paper.arithmetic import FLOAT
from vidrio.glass.paper.engine import IN_ORDER, WHOLE_NUMBERS
from vidrio.glass.paper.transformer import Machine
from vidrio.glass.proof.operations import OPERATIONS
from vidrio.model.parameters import parameter_specs

KINDS = {"input", "parameter", "constant", "value", "aggregate", "choice"}


MACHINES = [(choice, arithmetic) for choice in CHOICES for arithmetic in (FLOAT, WHOLE_NUMBERS, IN_ORDER)]


@pytest.fixture(params=MACHINES, ids=lambda made: f"{made[0]}, {made[1].name}")
def machine(request: pytest.FixtureRequest) -> Machine:
    choice, arithmetic = request.param
    return make_machine(choice, np.float64 if arithmetic is FLOAT else np.float32, arithmetic)


def quantities(names: Sequence[str]) -> list[str]:
    """Each once, where its first head comes."""
    return list(dict.fromkeys(without_head(name)[0] for name in names))


def test_what_is_computed_is_declared_and_what_is_declared_is_computed(machine: Machine) -> None:
    trace = run(machine)
    declared = [name for name, stage in trace.stages.items() if not stage.of_the_model]
    assert sorted(trace.values) == sorted(declared)
    computed = list(trace.values)
    assert quantities(computed) == quantities(declared)  # in this order too, all heads of each together
    for place, name in enumerate(computed):
        inputs = [source for source in trace.stages[name].inputs if source in trace.values]
        assert set(inputs) <= set(computed[:place]), name
    for name, stage in trace.stages.items():
        assert trace.array(name).ndim == len(stage.axes), name


def test_every_parameter_is_declared_head_by_head(machine: Machine) -> None:
    declared = {name for name, stage in stages_of(machine).items() if stage.kind == "parameter"}
    expected = set()
    for name, (axes, shape) in parameter_specs(machine.config).items():
        expected |= {f"{name}.h{h}" for h in range(shape[0])} if axes[0] == "H" else {name}
    assert declared == expected


def test_inputs_come_before_what_is_made_from_them(machine: Machine) -> None:
    known: set[str] = set()
    for name, stage in stages_of(machine).items():
        assert set(stage.inputs) <= known, name
        known.add(name)


def test_every_parameter_and_input_is_used(machine: Machine) -> None:
    table = stages_of(machine)
    used = {name for stage in table.values() for name in stage.inputs}
    assert set(table) - used <= {"out.score", "out.prob"}  # the ends of the way


def test_every_stage_says_what_it_is(machine: Machine) -> None:
    for stage in stages_of(machine).values():
        assert stage.kind in KINDS
        assert stage.operation in OPERATIONS
        assert all([stage.formula, stage.latex, stage.place, stage.says]), stage
        assert stage.latex.count("{") == stage.latex.count("}"), stage
        assert set(stage.axes) <= set("STDKFVCPE")


def test_the_choices_use_every_operation_of_the_paper_and_of_whole_numbers() -> None:
    machines = [make_machine(choice, np.float32, how) for choice in CHOICES for how in (FLOAT, WHOLE_NUMBERS)]
    used = {stage.operation for machine in machines for stage in stages_of(machine).values()}
    # The others are what-ifs': tests/test_whatif.py.
    assert set(OPERATIONS) - used == {"divide_by", "naive_softmax", "slipped_positions", "zero_scores"}
