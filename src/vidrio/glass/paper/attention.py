"""Attention: how one row reads from others. §3.2.

L rows ask (queries), M rows are asked (keys and values); in self-attention they are the same rows. All H heads stand
side by side along the first axis; the tap is told of each by itself.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from vidrio.glass.paper.arithmetic import Machine, Projection, Rows
from vidrio.glass.paper.maths import Array, Tap, no_tap, tap_heads

Make = Callable[[], Array]
# `keep(name, make)` gives the keys or values of all rows that are asked, and calls `make` for those that are new.
Keep = Callable[[str, Make], Array]
# `mask(scaled_HLM, name, tap)` hides what must not be seen.
Mask = Callable[[Array, str, Tap], Array]


def all_new(name: str, make: Make) -> Array:
    """Nothing is kept: the new rows are all there are."""
    return make()


@dataclass
class Kept:
    """What the decoder keeps from one step to the next: keys and values, all heads."""

    length: int = 0  # target tokens so far
    rows: dict[str, Array] = field(default_factory=dict)
    reused: dict[str, int] = field(default_factory=dict)  # how many rows of each were there at the latest step

    def grow(self, name: str, make: Make) -> Array:
        """Self-attention: the kept rows, and under them those of the new tokens."""
        old_rows, new_rows = self.rows.get(name), make()
        self.reused[name] = 0 if old_rows is None else old_rows.shape[1]
        self.rows[name] = new_rows if old_rows is None else np.concatenate([old_rows, new_rows], axis=1)
        return self.rows[name]

    def once(self, name: str, make: Make) -> Array:
        """Cross-attention: the memory stays, so its rows are made at the first step only."""
        self.reused[name] = self.rows[name].shape[1] if name in self.rows else 0
        if name not in self.rows:
            self.rows[name] = make()
        return self.rows[name]

    def branch(self) -> "Kept":
        """A copy to go on from; the arrays are shared, since nobody writes into them."""
        return Kept(self.length, dict(self.rows), dict(self.reused))


def see_all(scaled_HLM: Array, name: str, tap: Tap) -> Array:
    """No mask: every row may see every row (encoder, cross-attention)."""
    return scaled_HLM


def causal(scaled_HLM: Array, name: str, tap: Tap) -> Array:
    """Row t sees rows 0 … t: the later ones get −∞, which softmax turns into exactly 0. §3.2.3."""
    return tap(name, np.where(allowed_LM(*scaled_HLM.shape[-2:]), scaled_HLM, -np.inf))


def allowed_LM(n_queries: int, n_keys: int) -> Array:
    """True where the query row may see the key row; the queries are the last rows of the keys' sequence."""
    first = n_keys - n_queries
    return np.arange(n_keys)[None, :] <= first + np.arange(n_queries)[:, None]


@dataclass(frozen=True)
class Attention:
    """One attention of the model: whose parameters it has, who sees whom, and what is kept from step to step."""

    name: str  # enc.0.self
    mask: Mask = see_all
    keep: Keep = all_new


def attend(machine: Machine, kind: Attention, Q_HLK: Array, K_HMK: Array, V_HMK: Array, tap: Tap) -> Array:
    """softmax(Q Kᵀ / √K) V, of each head by itself. Eq. 1."""
    scores_HLM = tap("scores", machine.arithmetic.scores(Q_HLK, K_HMK))
    scaled_HLM = tap("scaled", scores_HLM / machine.score_divisor)
    visible_HLM = kind.mask(scaled_HLM, "masked", tap)
    weights_HLM = tap("weights", machine.softmax(visible_HLM))
    return tap("head", machine.arithmetic.mix(weights_HLM, V_HMK))


def multi_head(machine: Machine, kind: Attention, x_LD: Array, y_MD: Array, tap: Tap = no_tap) -> Array:
    """Rows x ask rows y: Concat(head_1, …, head_H) W^O. §3.2.2."""
    name, to_rows, project = kind.name, machine.arithmetic.rows, machine.arithmetic.project
    x = to_rows(x_LD, f"{name}.x", tap)
    y = x if y_MD is x_LD else to_rows(y_MD, f"{name}.y", tap)

    def of_heads(quantity: str, values: Array) -> Array:
        return tap_heads(tap, f"{name}.{quantity}", values)

    def projected(letter: str, rows: Rows) -> Array:
        return project(machine, rows, Projection(f"{name}.{letter}", f"{name}.W{letter}", f"{name}.b{letter}"), tap)

    Q_HLK = of_heads("Q", projected("Q", x))
    K_HMK = of_heads("K", kind.keep(f"{name}.K", partial(projected, "K", y)))
    V_HMK = of_heads("V", kind.keep(f"{name}.V", partial(projected, "V", y)))
    heads_HLK = attend(machine, kind, Q_HLK, K_HMK, V_HMK, of_heads)
    concat_LE = tap(f"{name}.concat", np.concatenate([*heads_HLK], axis=1))
    to_out = Projection(f"{name}.out", f"{name}.WO", f"{name}.bO")
    return tap(f"{name}.out", project(machine, to_rows(concat_LE, f"{name}.concat", tap), to_out, tap))


def divisor(d_head: int) -> float:
    """√K: dot products of K terms grow like √K, and large scores saturate the softmax. §3.2.1."""
    return math.sqrt(d_head)
