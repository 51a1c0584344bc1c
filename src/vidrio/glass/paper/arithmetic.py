"""How a machine multiplies and adds. One choice, made when the model is built:

FLOAT                      as the paper writes it, in floating point, sums in whatever order NumPy takes
engine.WHOLE_NUMBERS       as the engine computes: whole numbers wherever a parameter multiplies
engine.IN_ORDER            as the engine computes with matrices that stay in float32

Every other function of the machine is written once, on top of these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vidrio.glass.paper import maths
from vidrio.glass.paper.maths import Array, Tap
from vidrio.model.quantised import WholeNumbers

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


@dataclass(frozen=True, eq=False)  # each is a choice of its own
class Arithmetic:
    """The functions that differ between NumPy's floating point and the engine."""

    name: str
    rows: Callable[[Array, str, Tap], Rows]  # makes rows ready to be multiplied
    project: Callable[[Machine, Rows, Projection, Tap], Array]
    look_up: Callable[[Machine, str, Array], Array]  # rows of an embedding, by ids
    scores: Callable[[Array, Array], Array]  # Q Kᵀ
    mix: Callable[[Array, Array], Array]  # weights V
    softmax: Callable[[Array], Array]
    log_of_choice: Callable[[Array, Array, Array], Array]  # of logits, probabilities and the tokens chosen
    normalise: Callable[..., Array]
    column_mean: Callable[[Array], Array]  # of a classifier's rows
    activations: Mapping[str, Callable[[Array], Array]]


def as_they_are(x_LD: Array, name: str, tap: Tap) -> Rows:
    return x_LD


def project(machine: Machine, x: Rows, to: Projection, tap: Tap) -> Array:
    """x W + b, for each head where there is a matrix for each."""
    assert isinstance(x, np.ndarray)
    W, b = machine.parameters[to.weight], machine.parameters.get(to.bias)
    return maths.linear(x, W.T if to.transposed else W, b)


def look_up(machine: Machine, table: str, ids_L: Array) -> Array:
    return machine.parameters[table][ids_L]


def dot_products(Q_HLK: Array, K_HMK: Array) -> Array:
    """Q Kᵀ: every query with every key."""
    return Q_HLK @ K_HMK.swapaxes(-1, -2)


def mix(weights_HLM: Array, V_HMK: Array) -> Array:
    """weights V: the values, each row's shares of them added up."""
    return weights_HLM @ V_HMK


def log_of_choice(logits_TV: Array, prob_TV: Array, choice_T: Array) -> Array:
    """log p of the tokens chosen; −∞ where one has the probability 0, as a forced token may."""
    with np.errstate(divide="ignore"):
        return np.log(prob_TV[np.arange(len(choice_T)), choice_T])


def column_mean(x_LD: Array) -> Array:
    """The mean row."""
    return x_LD.mean(axis=0)


FLOAT = Arithmetic(
    name="float",
    rows=as_they_are,
    project=project,
    look_up=look_up,
    scores=dot_products,
    mix=mix,
    softmax=maths.softmax,
    log_of_choice=log_of_choice,
    normalise=maths.layer_norm,
    column_mean=column_mean,
    activations=maths.ACTIVATIONS,
)
