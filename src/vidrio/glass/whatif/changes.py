"""A machine with something changed: each change is a function from a machine to another one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from vidrio.errors import ConfigError
from vidrio.glass.numbers.stages import without_head
from vidrio.glass.paper import attention, positions, variants
from vidrio.glass.paper.arithmetic import FLOAT, Arithmetic
from vidrio.glass.paper.engine import WHOLE_NUMBERS
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import Machine
from vidrio.model.parameters import parameter_specs
from vidrio.model.quantised import SUMMED, in_whole_numbers, whole_numbers


def with_softmax(machine: Machine, kind: str) -> Machine:
    return replace(machine, softmax={"naive": variants.naive_softmax, "stable": machine.arithmetic.softmax}[kind])


def with_mask(machine: Machine, kind: str) -> Machine:
    """Those that work after the softmax let everything through here; `whatif.py` changes the weights."""
    return replace(
        machine, mask={"causal": attention.causal, "zeros": variants.zero_scores}.get(kind, variants.unmasked)
    )


def without_layer_norm(machine: Machine) -> Machine:
    return replace(machine, normalise=variants.unnormalised)


def without_residual(machine: Machine) -> Machine:
    return replace(machine, add_residual=variants.no_residual)


def with_divisor(machine: Machine, divisor: float) -> Machine:
    return replace(machine, score_divisor=divisor)


def without_embedding_scale(machine: Machine) -> Machine:
    return replace(machine, config=replace(machine.config, scale_embeddings=False), embedding_scale=1.0)


def with_norm_epsilon(machine: Machine, epsilon: float) -> Machine:
    """ConfigError if no model may have it."""
    return replace(machine, config=replace(machine.config, norm_epsilon=epsilon))


def with_positions(machine: Machine, kind: str) -> Machine:
    """One of config.POSITIONS, or `seed`: the worked example's slip."""
    if kind == machine.config.positions:
        return machine
    if kind == "learned":
        raise ConfigError(
            "this model has no learned positions", found=machine.config.positions, do="train one that has"
        )
    config = replace(machine.config, positions="sinusoidal" if kind == "seed" else kind)
    make = variants.slipped_sinusoidal if kind == "seed" else positions.TABLES[kind]
    table_PD = make(config.max_positions, config.d_model).astype(machine.source_positions_PD.dtype)
    return replace(
        machine,
        config=config,
        parameters={name: p for name, p in machine.parameters.items() if not name.endswith(".pos")},
        source_positions_PD=table_PD,
        target_positions_PD=table_PD,
    )


def with_whole_numbers(machine: Machine) -> Machine:
    """Parameters multiply as the engine multiplies them in a large model."""
    machine = with_arithmetic(machine, WHOLE_NUMBERS, np.float32)
    return replace(machine, whole_parameters=in_whole_numbers(machine.parameters, machine.config))


def with_dtype(machine: Machine, dtype: type) -> Machine:
    """Everything in NumPy's floating point of this kind."""
    return with_arithmetic(machine, FLOAT, dtype)


def with_arithmetic(machine: Machine, arithmetic: Arithmetic, dtype: type) -> Machine:
    """What another what-if has put in the place of the arithmetic's functions stays there."""
    was = machine.arithmetic
    with np.errstate(over="ignore"):  # beyond float16's 65504 is ∞, and that is the lesson
        return replace(
            machine,
            arithmetic=arithmetic,
            softmax=arithmetic.softmax if machine.softmax is was.softmax else machine.softmax,
            normalise=arithmetic.normalise if machine.normalise is was.normalise else machine.normalise,
            activate=arithmetic.activations[machine.config.activation],
            parameters={name: p.astype(dtype) for name, p in machine.parameters.items()},
            source_positions_PD=machine.source_positions_PD.astype(dtype),
            target_positions_PD=machine.target_positions_PD.astype(dtype),
            whole_parameters={},
        )


def with_parameter(machine: Machine, name: str, change: Callable[[Array], Array]) -> Machine:
    """One parameter (one head of it, where its address says so) altered in a copy."""
    whole, head = without_head(name)
    if whole not in machine.parameters:
        return machine  # learned positions, in whose place another what-if has put others
    array = machine.parameters[whole].copy()
    part = int(head.removeprefix(".h")) if head else ...
    array[part] = change(array[part])
    whole_parameters = machine.whole_parameters
    if whole in whole_parameters:
        changed = whole_numbers(array, SUMMED[parameter_specs(machine.config)[whole].axes])
        whole_parameters = {**whole_parameters, whole: changed}
    return replace(
        machine,
        parameters={**machine.parameters, whole: array},
        whole_parameters=whole_parameters,
        source_positions_PD=array if whole == "src.pos" else machine.source_positions_PD,
        target_positions_PD=array if whole == "tgt.pos" else machine.target_positions_PD,
    )
