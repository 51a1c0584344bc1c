"""Test that the table of quantities is complete and in order, and describes the computed numbers."""

import numpy as np
import pytest

from traced import CHOICES, make_machine, run
from vidrio.glass.declaration import stages_of
from vidrio.glass.engine import FLOAT, IN_ORDER, INT8
from vidrio.glass.machine import Machine
from vidrio.model.parameters import parameter_specs

KINDS = {"input", "parameter", "constant", "value", "aggregate", "choice"}


MACHINES = [(choice, arithmetic) for choice in CHOICES for arithmetic in (FLOAT, INT8, IN_ORDER)]


@pytest.fixture(params=MACHINES, ids=lambda made: f"{made[0]}, {made[1].name}")
def machine(request: pytest.FixtureRequest) -> Machine:
    choice, arithmetic = request.param
    return make_machine(choice, np.float64 if arithmetic is FLOAT else np.float32, arithmetic)


def test_what_is_computed_is_declared_and_what_is_declared_is_computed(machine: Machine) -> None:
    trace = run(machine)
    declared = [name for name, stage in trace.stages.items() if not stage.of_the_model]
    assert list(trace.values) == declared  # in the same order
    for name, stage in trace.stages.items():
        assert trace.array(name).ndim == len(stage.axes), name


def test_every_parameter_is_declared_head_by_head(machine: Machine) -> None:
    declared = {name for name, stage in stages_of(machine).items() if stage.kind == "parameter"}
    expected = set()
    for name, (axes, shape) in parameter_specs(machine.config).items():
        expected |= {f"{name}.h{h}" for h in range(shape[0])} if axes[0] == "H" else {name}
    assert declared == expected


def test_inputs_come_before_what_is_made_from_them_and_all_are_used(machine: Machine) -> None:
    known, used = set[str](), set[str]()
    for name, stage in stages_of(machine).items():
        if stage.operation == "recurrence":  # each row depends on the one before
            known.add(name)
        assert set(stage.inputs) <= known, name
        known.add(name)
        used.update(stage.inputs)
    assert known - used <= {"out.score", "out.prob"}  # the final outputs


def test_every_stage_says_what_it_is(machine: Machine) -> None:
    for stage in stages_of(machine).values():
        assert stage.kind in KINDS
        assert stage.operation in machine.operations
        assert all([stage.formula, stage.latex, stage.place, stage.says]), stage
        assert stage.latex.count("{") == stage.latex.count("}"), stage
        assert set(stage.axes) <= set("STDKFVCPE")


def test_the_choices_use_every_operation_of_the_paper_and_of_whole_numbers() -> None:
    machines = [make_machine(choice, np.float32, how) for choice in CHOICES for how in (FLOAT, INT8)]
    used = {stage.operation for machine in machines for stage in stages_of(machine).values()}
    assert {name for machine in machines for name in machine.operations} - used == {"left_out"}  # for what-ifs only
