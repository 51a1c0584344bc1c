"""How a machine multiplies and adds. One choice, made when the model is built:

FLOAT               as the paper writes it, in floating point
eight_bits(beam)    as the fast engine computes: whole numbers of eight bits wherever a parameter multiplies

Every other function of the machine is written once, on top of these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from vidrio.glass.paper import maths
from vidrio.glass.paper.maths import Array, Tap


class WholeNumbers(NamedTuple):
    """Numbers as whole ones from −127 to 127: each stands for whole / factor. A row (or a column) shares a factor."""

    whole: Array
    factor: Array


Rows = Array | WholeNumbers  # what a projection multiplies


class Machine(Protocol):
    """What arithmetic and attention need of the machine that they work in (transformer.py)."""

    @property
    def parameters(self) -> Mapping[str, Array]: ...
    @property
    def whole_parameters(self) -> Mapping[str, WholeNumbers]: ...
    @property
    def arithmetic(self) -> "Arithmetic": ...
    @property
    def score_divisor(self) -> float: ...
    @property
    def softmax(self) -> Callable[[Array], Array]: ...


@dataclass(frozen=True)
class Projection:
    """x W + b: where it belongs, and which parameters it has."""

    name: str  # of what comes out: enc.0.self.Q
    weight: str  # enc.0.self.WQ
    bias: str  # enc.0.self.bQ; a model without it has none there
    transposed: bool = False  # x Wᵀ


# Q Kᵀ; the divisor too, because the fast engine divides before it rounds.
Scores = Callable[[Array, Array, float], Array]


@dataclass(frozen=True)
class Arithmetic:
    """The functions that differ between floating point and eight bits."""

    name: str
    rows: Callable[[Array, str, Tap], Rows]  # makes rows ready to be multiplied
    project: Callable[[Machine, Rows, Projection, Tap], Array]
    look_up: Callable[[Machine, str, Array], Array]  # rows of an embedding, by ids
    encoder_scores: Scores
    decoder_scores: Scores  # in self-attention
    cross_scores: Callable[[int], Scores]  # from the decoding step that the first query stands at
    mix: Callable[[Array, Array], Array]  # weights V
    softmax: Callable[[Array], Array]
    normalise: Callable[..., Array]


def as_they_are(x_LD: Array, name: str, tap: Tap) -> Rows:
    return x_LD


def project(machine: Machine, x: Rows, to: Projection, tap: Tap) -> Array:
    """x W + b, for each head where there is a matrix for each."""
    assert isinstance(x, np.ndarray)
    W, b = machine.parameters[to.weight], machine.parameters.get(to.bias)
    return maths.linear(x, W.T if to.transposed else W, b)


def look_up(machine: Machine, table: str, ids_L: Array) -> Array:
    return machine.parameters[table][ids_L]


def dot_products(Q_HLK: Array, K_HMK: Array, divisor: float) -> Array:
    """Q Kᵀ: every query with every key."""
    return Q_HLK @ K_HMK.swapaxes(-1, -2)


def mix(weights_HLM: Array, V_HMK: Array) -> Array:
    """weights V: the values, each row's shares of them added up."""
    return weights_HLM @ V_HMK


FLOAT = Arithmetic(
    name="float",
    rows=as_they_are,
    project=project,
    look_up=look_up,
    encoder_scores=dot_products,
    decoder_scores=dot_products,
    cross_scores=lambda first_step: dot_products,
    mix=mix,
    softmax=maths.softmax,
    normalise=maths.layer_norm,
)
