"""Test that the line of NumPy shown for a step is the line that ran."""

import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from traced import CHOICES, make_machine, run
from vidrio.glass import operations
from vidrio.glass.declaration import Name, _definitions, line, stages_of, variable, variables
from vidrio.glass.engine import IN_ORDER, INT8
from vidrio.glass.machine import Machine
from vidrio.glass.trace import Trace
from vidrio.glass.whatif import parse
from vidrio.glass.words import Stage

CHANGES = [
    *(("mask", kind) for kind in ("off", "zeros")),
    *(("without", what) for what in ("layer-norm", "residual", "embedding-scale")),
    *(("softmax", "naive"), ("divisor", "30"), ("positions", "none")),
]


def machines() -> Iterator[tuple[str, Machine]]:
    for choice in CHOICES:
        yield choice, make_machine(choice)
        yield f"{choice} in int8", make_machine(choice, np.float32, INT8)
        yield f"{choice} in order", make_machine(choice, np.float32, IN_ORDER)
    paper = make_machine()
    for asked in CHANGES:
        yield " ".join(asked), parse([asked], run(paper)).apply(paper)
    cell = make_machine("recurrent")
    yield "without forget-gate", parse([("without", "forget-gate")], run(cell)).apply(cell)


@pytest.mark.parametrize(("name", "machine"), list(machines()))
def test_every_line_makes_the_bits_of_the_glass(name: str, machine: Machine) -> None:
    trace = run(machine)
    shown = [stage for stage in trace.stages.values() if stage.code]
    assert {stage.kind for stage in trace.stages.values() if not stage.code} <= {"parameter", "input", "choice"}
    for stage in shown:
        with np.errstate(divide="ignore"):  # a forced token may have probability 0
            made = worked_out(trace, stage)
        np.testing.assert_array_equal(made, trace.array(stage.address), stage.code, strict=True)


def worked_out(trace: Trace, stage: Stage) -> Any:
    """Run the line with the trace's arrays as variables, and return its result."""
    arrays: dict[str, Any] = dict(
        zip(variables(stage.inputs), map(np.copy, map(trace.array, stage.inputs)), strict=True)
    )
    sizes = {axis: trace.sizes[axis] for axis in stage.axes[:1]}
    exec(stage.code, {**sizes, **trace.operation(stage).run.__globals__}, arrays)
    return arrays[variable(stage.address)]


def with_a_loop(x: Any) -> Any:
    for _ in range(2):
        x = x + 1
    return x


def test_a_function_with_a_loop_is_shown_by_its_name() -> None:
    assert line(with_a_loop, "y", (Name("a"),)) == "y = with_a_loop(a)"


def test_arguments_are_shown_by_name_or_value() -> None:
    scaled = stages_of(make_machine())["enc.0.self.scaled.h1"]
    assert scaled.code == "scaled = scores / math.sqrt(5)"
    assert variables(["enc.0.self.head.h0", "enc.0.self.head.h1"]) == ["head_0", "head_1"]
    assert variable("enc.0.self.norm.out") == "norm_out"


def test_threads_read_the_sources_at_the_same_time() -> None:
    """In Python 3.11.7, `ast.parse` fails if a garbage collection lets another thread run in the middle of it."""
    read: Callable[..., Any] = _definitions.__wrapped__
    before, pause = gc.get_threshold(), lambda phase, info: time.sleep(0)
    gc.callbacks.append(pause)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert len(list(pool.map(read, [operations] * 8))) == 8
    finally:
        gc.callbacks.remove(pause)
        gc.set_threshold(*before)
