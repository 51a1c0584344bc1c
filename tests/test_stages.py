"""The table of quantities is complete, in order, and about the numbers that are computed."""

import pytest

from traced import CHOICES, make_machine, make_trace
from vidrio.glass.numbers.stages import stages
from vidrio.glass.proof import recompute
from vidrio.model.parameters import parameter_specs

KINDS = {"input", "parameter", "value", "aggregate", "choice"}


@pytest.fixture(params=CHOICES)
def choice(request: pytest.FixtureRequest) -> str:
    return request.param


def test_what_is_computed_is_declared_and_what_is_declared_is_computed(choice: str) -> None:
    trace = make_trace(choice)
    declared = [name for name, stage in trace.stages.items() if stage.kind != "parameter"]
    assert list(trace.values) == declared  # in this order too


def test_every_parameter_is_declared_head_by_head(choice: str) -> None:
    machine = make_machine(choice)
    declared = {name for name, stage in stages(machine.config).items() if stage.kind == "parameter"}
    expected = set()
    for name, (axes, shape) in parameter_specs(machine.config).items():
        expected |= {f"{name}.h{h}" for h in range(shape[0])} if axes[0] == "H" else {name}
    assert declared == expected


def test_inputs_come_before_what_is_made_from_them(choice: str) -> None:
    known: set[str] = set()
    for name, stage in stages(make_machine(choice).config).items():
        assert set(stage.inputs) <= known, name
        known.add(name)


def test_every_parameter_and_input_is_used(choice: str) -> None:
    table = stages(make_machine(choice).config)
    used = {name for stage in table.values() for name in stage.inputs}
    assert set(table) - used <= {"out.score", "out.prob"}  # the ends of the way


def test_every_stage_says_what_it_is(choice: str) -> None:
    for stage in stages(make_machine(choice).config).values():
        assert stage.kind in KINDS
        assert stage.operation in recompute.OPERATIONS
        assert all([stage.formula, stage.latex, stage.place, stage.says]), stage
        assert stage.latex.count("{") == stage.latex.count("}"), stage
        assert set(stage.axes) <= set("STDKFVCPE")


def test_the_choices_use_every_operation_of_the_paper() -> None:
    used = {stage.operation for choice in CHOICES for stage in stages(make_machine(choice).config).values()}
    # The others are what-ifs': tests/test_whatif.py.
    assert set(recompute.OPERATIONS) - used == {"divide_by", "naive_softmax", "slipped_positions", "zero_scores"}
