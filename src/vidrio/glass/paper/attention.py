"""Attention: how one row reads from others. §3.2.

L rows ask (queries), M rows are asked (keys and values); in self-attention they are the same rows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from vidrio.glass.paper.arithmetic import Calculator, Projection, Rows, Scores, dot_products
from vidrio.glass.paper.maths import Array, Tap, no_tap

Make = Callable[[], Array]
# `keep(name, make)` gives the keys or values of all rows that are asked, and calls `make` for those that are new.
Keep = Callable[[str, Make], Array]
# `mask(scaled_LM, name, tap)` hides what must not be seen.
Mask = Callable[[Array, str, Tap], Array]


class Keeping(Protocol):
    """What the decoder keeps from one step to the next (decoding.py)."""

    length: int  # target tokens so far

    def grow(self, name: str, make: Make) -> Array:
        """Self-attention: the kept rows, and under them those of the new tokens."""
        ...

    def once(self, name: str, make: Make) -> Array:
        """Cross-attention: the memory stays, so its rows are made at the first step only."""
        ...


def all_new(name: str, make: Make) -> Array:
    """Nothing is kept: the new rows are all there are."""
    return make()


class NothingKept:
    """One pass over all rows."""

    length = 0
    grow = staticmethod(all_new)
    once = staticmethod(all_new)


NOTHING_KEPT = NothingKept()


def see_all(scaled_LM: Array, name: str, tap: Tap) -> Array:
    """No mask: every row may see every row (encoder, cross-attention)."""
    return scaled_LM


def causal(scaled_LM: Array, name: str, tap: Tap) -> Array:
    """Row t sees rows 0 … t: the later ones get −∞, which softmax turns into exactly 0. §3.2.3."""
    return tap(name, np.where(allowed_LM(*scaled_LM.shape), scaled_LM, -np.inf))


def allowed_LM(n_queries: int, n_keys: int) -> Array:
    """True where the query row may see the key row; the queries are the last rows of the keys' sequence."""
    first = n_keys - n_queries
    return np.arange(n_keys)[None, :] <= first + np.arange(n_queries)[:, None]


class Machine(Calculator, Protocol):
    """What attention needs of the machine that it works in."""

    @property
    def n_heads(self) -> int: ...
    @property
    def score_divisor(self) -> float: ...
    @property
    def softmax(self) -> Callable[[Array], Array]: ...


@dataclass(frozen=True)
class Attention:
    """One attention of the model: whose parameters it has, who sees whom, and what is kept from step to step."""

    name: str  # enc.0.self
    mask: Mask = see_all
    scores: Scores = dot_products  # Q Kᵀ
    keep: Keep = all_new


def one_head(machine: Machine, kind: Attention, Q_LK: Array, K_MK: Array, V_MK: Array, head_tap: Tap) -> Array:
    """softmax(Q Kᵀ / √K) V. Eq. 1."""
    scores_LM = head_tap("scores", kind.scores(Q_LK, K_MK, machine.score_divisor))
    scaled_LM = head_tap("scaled", (scores_LM / machine.score_divisor).astype(Q_LK.dtype, copy=False))
    visible_LM = kind.mask(scaled_LM, "masked", head_tap)
    weights_LM = head_tap("weights", machine.softmax(visible_LM))
    return head_tap("head", machine.arithmetic.mix(weights_LM, V_MK))


def multi_head(machine: Machine, kind: Attention, x_LD: Array, y_MD: Array, tap: Tap = no_tap) -> Array:
    """Rows x ask rows y: Concat(head_1, …, head_H) W^O. §3.2.2."""
    name, to_rows, project = kind.name, machine.arithmetic.rows, machine.arithmetic.project
    x = to_rows(x_LD, f"{name}.x", tap)
    y = x if y_MD is x_LD else to_rows(y_MD, f"{name}.y", tap)
    heads = []
    for h in range(machine.n_heads):

        def head_tap(quantity: str, value: Array, h: int = h) -> Array:
            return tap(f"{name}.{quantity}.h{h}", value)

        def projected(letter: str, rows: Rows, h: int = h) -> Array:
            return project(
                machine, rows, Projection(f"{name}.{letter}", f"{name}.W{letter}", f"{name}.b{letter}", h), tap
            )

        Q_LK = head_tap("Q", projected("Q", x))
        K_MK = head_tap("K", kind.keep(f"{name}.K.h{h}", partial(projected, "K", y)))
        V_MK = head_tap("V", kind.keep(f"{name}.V.h{h}", partial(projected, "V", y)))
        heads.append(one_head(machine, kind, Q_LK, K_MK, V_MK, head_tap))
    concat = to_rows(tap(f"{name}.concat", np.concatenate(heads, axis=1)), f"{name}.concat", tap)
    return tap(f"{name}.out", project(machine, concat, Projection(f"{name}.out", f"{name}.WO", f"{name}.bO"), tap))


def divisor(d_head: int) -> float:
    """√K: dot products of K terms grow like √K, and large scores saturate the softmax. §3.2.1."""
    return math.sqrt(d_head)
