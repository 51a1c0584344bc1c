"""Logit lens: computes what the decoder would predict if it stopped after each sub-layer."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace
from vidrio.glass.walk import logits, norm
from vidrio.search import largest

LIKELIEST = 5


class After(NamedTuple):
    """The prediction after a sub-layer."""

    name: str
    tokens: tuple[tuple[int, float], ...]  # the most probable tokens and their probabilities
    difference: float  # the word's logit minus its rival's


def after_each(trace: Trace, row: int, this: int, that: int) -> list[After]:
    """Return what a decoder row predicts after each sub-layer."""
    names, logits_NV = _logits(trace, row)
    prob_NV = trace.machine.operations["softmax"].run(logits_NV)
    return [
        After(
            name,
            tuple((int(i), float(prob_V[i])) for i in largest(prob_V, LIKELIEST)),
            float(logits_V[this]) - float(logits_V[that]),
        )
        for name, logits_V, prob_V in zip(names, logits_NV, prob_NV, strict=True)
    ]


def overtakes(found: list[After]) -> str | None:
    """Return the first sub-layer after which the word stays ahead of its rival, or None if it does not end up ahead."""
    name = None
    for after in reversed(found):
        if after.difference <= 0:
            break
        name = after.name
    return name


def _logits(trace: Trace, row: int) -> tuple[list[str], Array]:
    machine = trace.machine.tapped(lambda name, value: value)
    post = machine.config.norm == "post"
    names = list(_sub_layers(trace))
    rows_ND = np.stack([trace.values[f"{name}.norm.out" if post else f"{name}.sum"][row] for name in names])
    return names, logits(machine, rows_ND if post else norm(machine, rows_ND, "dec.norm"))


def _sub_layers(trace: Trace) -> Iterator[str]:
    return (name.removesuffix(".sum") for name in trace.values if name.startswith("dec.") and name.endswith(".sum"))
