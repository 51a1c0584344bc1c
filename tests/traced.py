"""Traces of random machines of every shape and option, for tests of receipts, what-ifs and checks."""

from typing import Any

import numpy as np

from parity_models import SOURCE, TARGET, make_config, make_parameters
from vidrio.glass.engine import FLOAT, Arithmetic
from vidrio.glass.machine import Machine, build
from vidrio.glass.maths import Array, Tap, no_tap
from vidrio.glass.trace import Trace
from vidrio.glass.walk import classify, translate_forced
from vidrio.model.config import SpecialIds

# Together these cover every option, with axis sizes that are all different.
CHOICES: dict[str, dict[str, Any]] = {
    "paper": {"tying": "all"},
    "pre-gelu-halves": {"norm": "pre", "activation": "gelu", "positions": "sinusoidal-halves", "tying": "output"},
    "swish-learned-biases": {
        **{"activation": "swish", "positions": "learned", "scale_embeddings": False},
        **{"attention_bias": True, "output_bias": True},
    },
    "no-positions": {"positions": "none", "norm": "pre"},
    "classifier": {"shape": "encoder", "target_vocabulary": 0},
    "classifier-pre-biases": {
        **{"shape": "encoder", "target_vocabulary": 0, "norm": "pre", "attention_bias": True},
        "positions": "sinusoidal-marian",
    },
    "decoder-alone": {"shape": "decoder", "source_vocabulary": 0, "n_classes": 0, "tying": "output"},
    "recurrent": {
        **{"decoder_cell": "ssru", "positions": "sinusoidal-marian", "tying": "output", "attention_bias": True},
        **{"output_bias": True, "special": SpecialIds(pad=1, unk=1, start=-1, end=0)},
    },
    "recurrent-decoder-pre": {
        **{"shape": "decoder", "source_vocabulary": 0, "decoder_cell": "ssru", "norm": "pre"},
        **{"activation": "gelu", "special": SpecialIds(pad=-1, start=-1)},
    },
    "decoder-learned": {"shape": "decoder", "source_vocabulary": 0, "positions": "learned", "output_bias": True},
}


def make_machine(
    choice: str = "paper", dtype: type = np.float64, arithmetic: Arithmetic = FLOAT, **changes: Any
) -> Machine:
    config = make_config(**{**CHOICES[choice], **changes})
    return build(config, make_parameters(config, 7), dtype, arithmetic)


def run(machine: Machine, change: Tap = no_tap, trace: Trace | None = None) -> Trace:
    """Trace one pass with the output forced to TARGET."""
    config = machine.config
    trace = trace or blank(machine)
    edit = machine.tap  # the tap of a what-if
    machine = machine.tapped(trace.tap_through(lambda name, value: change(name, edit(name, value))))
    if config.shape == "encoder":
        classify(machine, SOURCE)
        return trace
    target = [config.special.start, *(i % config.target_vocabulary for i in TARGET[1:])]
    translate_forced(machine, SOURCE, target)
    choices = [*target[1:], 3]
    trace.take(choices)
    return trace


def blank(machine: Machine) -> Trace:
    """Return an empty trace. Its tokens are named after their ids (s3 or t3), and SOURCE contains one twice."""
    config = machine.config
    source = [f"s{i}" for i in range(config.source_vocabulary)]
    target = [f"t{i}" for i in range(config.target_vocabulary)]
    ids = [config.special.start, *(i % config.target_vocabulary for i in TARGET[1:])] if target else []
    return Trace(
        machine,
        source_tokens=[source[i] for i in SOURCE] if source else [],
        target_tokens=["∅" if i < 0 else target[i] for i in ids],
        chosen_tokens=[target[i] for i in [*ids[1:], 3]] if target else [],
        vocabulary=target,
        source_vocabulary=source,
        labels=[f"class {c}" for c in range(config.n_classes)],
    )


def make_trace(
    choice: str = "paper", dtype: type = np.float64, arithmetic: Arithmetic = FLOAT, **changes: Any
) -> Trace:
    return run(make_machine(choice, dtype, arithmetic, **changes))


def cells(array: Array) -> list[tuple[int, ...]]:
    return list(np.ndindex(array.shape))
