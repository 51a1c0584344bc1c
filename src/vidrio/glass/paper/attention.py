"""Attention: how one row reads from others. §3.2.

L rows ask (queries), M rows are asked (keys and values); in self-attention they are the same rows.
"""

import math
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from vidrio.glass.paper.maths import Array, Tap, linear, no_tap

# `keep(name, rows)` hands back all the rows so far: those kept from earlier decoding steps, then the new ones.
Keep = Callable[[str, Array], Array]
# `mask(scaled_LM, name, tap)` hides what must not be seen.
Mask = Callable[[Array, str, Tap], Array]


class Chosen(Protocol):
    """What attention needs of the machine that it works in."""

    @property
    def parameters(self) -> Mapping[str, Array]: ...
    @property
    def n_heads(self) -> int: ...
    @property
    def score_divisor(self) -> float: ...
    @property
    def softmax(self) -> Callable[[Array], Array]: ...


def no_keep(name: str, rows: Array) -> Array:
    """Nothing is kept: the new rows are all there are."""
    return rows


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


def attention(
    machine: Chosen, Q_LK: Array, K_MK: Array, V_MK: Array, *, name: str, head: int, mask: Mask, tap: Tap
) -> Array:
    """One head: softmax(Q Kᵀ / √K) V. Eq. 1."""
    scores_LM = tap(f"{name}.scores.h{head}", Q_LK @ K_MK.T)
    scaled_LM = tap(f"{name}.scaled.h{head}", scores_LM / machine.score_divisor)
    visible_LM = mask(scaled_LM, f"{name}.masked.h{head}", tap)
    weights_LM = tap(f"{name}.weights.h{head}", machine.softmax(visible_LM))
    return tap(f"{name}.head.h{head}", weights_LM @ V_MK)


def multi_head(
    machine: Chosen, x_LD: Array, y_MD: Array, *, name: str, mask: Mask, tap: Tap = no_tap, keep: Keep = no_keep
) -> Array:
    """Rows x ask rows y: Concat(head_1, …, head_H) W^O. §3.2.2."""
    p = machine.parameters
    heads = []
    for h in range(machine.n_heads):

        def project(letter: str, rows: Array, h: int = h) -> Array:
            b_HK = p.get(f"{name}.b{letter}")
            return linear(rows, p[f"{name}.W{letter}"][h], None if b_HK is None else b_HK[h])

        Q_LK = tap(f"{name}.Q.h{h}", project("Q", x_LD))
        K_MK = tap(f"{name}.K.h{h}", keep(f"{name}.K.h{h}", project("K", y_MD)))
        V_MK = tap(f"{name}.V.h{h}", keep(f"{name}.V.h{h}", project("V", y_MD)))
        heads.append(attention(machine, Q_LK, K_MK, V_MK, name=name, head=h, mask=mask, tap=tap))
    concat_LE = tap(f"{name}.concat", np.concatenate(heads, axis=1))
    return tap(f"{name}.out", linear(concat_LE, p[f"{name}.WO"], p.get(f"{name}.bO")))


def divisor(d_head: int) -> float:
    """√K: dot products of K terms grow like √K, and large scores saturate the softmax. §3.2.1."""
    return math.sqrt(d_head)
