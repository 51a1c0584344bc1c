"""The arithmetic of the fast engine: eight bits where parameters multiply, float32 elsewhere, in its order of adding.

A row x becomes whole numbers with one factor, and so does each column of W. Their product is exact:

    factor  = 127 / max |x|
    whole   = round(x · factor)            −127 … 127
    product = whole_x whole_W              whole numbers, no rounding
    x W + b ≈ product / factor_x / factor_W + b

What is left in float32 (layer norm, softmax, queries by keys, weights by values) rounds after every addition. A last
bit that differs can tip `round` over, and that another word. So these are added in the order in which CTranslate2 4.8
adds them on an x86-64 processor (eight numbers at a time, oneDNN's matrix products). It was measured, number by number;
benchmarks/agreement.py tells how often the words agree. On other processors they agree less often.
"""

from collections.abc import Iterable, Mapping
from functools import cache, partial

import numpy as np

from vidrio.glass.paper.arithmetic import Arithmetic, Machine, Projection, Rows, Scores, WholeNumbers
from vidrio.glass.paper.maths import Array, Tap, no_tap, tap_heads
from vidrio.model.quantised import LARGEST, SUMMED

Float = float | np.float32
LANES = 8  # float32 numbers that the processor adds at once
EXACT_IN_FLOAT32 = 2**24

# --- whole numbers ----------------------------------------------------------------------------------------------------


def factors(x: Array, axis: int = -1) -> Array:
    """127 / max |x|, and 1 where all are 0: what the numbers along the axis are multiplied by."""
    largest = np.abs(x).max(axis=axis)
    return np.divide(LARGEST, largest, out=np.ones_like(largest), where=largest > 0)


def rows(x_LD: Array, name: str, tap: Tap) -> Rows:
    """Each row as whole numbers. The fast engine adds 128 before it rounds, to have them without a sign."""
    factor_L = tap(f"{name}.factor", factors(x_LD))
    shifted_LD = fused(x_LD, factor_L[..., None], 128)
    return WholeNumbers(tap(f"{name}.whole", np.rint(shifted_LD) - np.float32(128)), factor_L)


def whole_parameters(parameters: Mapping[str, Array], axes: Mapping[str, str]) -> dict[str, WholeNumbers]:
    """The matrices among the parameters, by the same rule; `axes` names those of each parameter."""
    found = {}
    for name, value in parameters.items():
        axis = SUMMED.get(axes[name])
        if axis is not None:
            factor = factors(value, axis)
            found[name] = WholeNumbers(np.rint(value * np.expand_dims(factor, axis)), factor)
    return found


def project(machine: Machine, x: Rows, to: Projection, tap: Tap) -> Array:
    """x W + b by whole numbers, for each head where there is a matrix for each."""
    assert isinstance(x, WholeNumbers)
    (whole, factor), b = machine.whole_parameters[to.weight], machine.parameters.get(to.bias)
    product, name = whole_product(x.whole, whole.T if to.transposed else whole), f"{to.name}.product"
    if whole.ndim == 2:
        y = tap(name, product) * (1 / x.factor[..., None]) / factor
        return y if b is None else y + b
    y = tap_heads(tap, name, product) * (1 / x.factor[..., None]) / factor[:, None]
    return y if b is None else y + b[:, None]


def whole_product(a: Array, b: Array) -> Array:
    """Exact: as long as every sum stays below 2²⁴, float32 holds each whole number, and float64 does far beyond."""
    if b.shape[-2] * LARGEST**2 < EXACT_IN_FLOAT32:
        return a @ b
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)


def look_up(machine: Machine, table: str, ids_L: Array) -> Array:
    whole, factor = machine.whole_parameters[table]
    return whole[ids_L] * (1 / factor[ids_L, None])


# --- float32, added in the engine's order -----------------------------------------------------------------------------


def fused(a: Array, b: Array | Float, c: Array | Float) -> Array:
    """a · b + c, rounded once: float64 holds the product of two float32 exactly."""
    return np.add(np.multiply(a, b, dtype=np.float64), c).astype(np.float32)


def added_fused(pairs: Iterable[tuple[Array, Array]], total: Array) -> Array:
    """Products added to `total` one after the other, each sum rounded once."""
    for a, b in pairs:
        np.add(np.multiply(a, b, dtype=np.float64), total, out=total, casting="unsafe")
    return total


def halved(x: Array) -> Array:
    """The sum over the last axis, a power of two long: its upper half is added to its lower one, again and again."""
    while x.shape[-1] > 1:
        middle = x.shape[-1] // 2
        x = x[..., :middle] + x[..., middle:]
    return x[..., 0]


def in_lanes(x: Array) -> Array:
    """The sum over the last axis: in eight sums side by side, then these; what is left over at the end one by one."""
    n = x.shape[-1] - x.shape[-1] % LANES
    if n == 0:
        return added_up(x)
    groups = x[..., :n].reshape(*x.shape[:-1], n // LANES, LANES)
    total = halved(np.add.accumulate(groups, axis=-2)[..., -1, :])
    return total if n == x.shape[-1] else added_up(np.concatenate([total[..., None], x[..., n:]], axis=-1))


def added_up(x: Array) -> Array:
    """The sum over the last axis, one by one."""
    return np.add.accumulate(x, axis=-1)[..., -1]


def layer_norm(x_LD: Array, gain_D: Array, bias_D: Array, epsilon: float, name: str, tap: Tap = no_tap) -> Array:
    """γ (x − μ) / √(σ² + ε) + β with σ² = Σ x² / D − μ². `normed` stays unrounded, for γ is in its divisor."""
    d = np.float32(x_LD.shape[-1])
    mean_L = tap(f"{name}.mean", in_lanes(x_LD) / d)
    var_L = tap(f"{name}.var", np.maximum(in_lanes(x_LD * x_LD) / d - mean_L * mean_L, np.float32(0)))
    stretch_LD = (1 / np.sqrt(var_L + np.float32(epsilon)))[:, None] * gain_D
    gain = np.where(gain_D == 0, np.float64(1), gain_D)
    normed_LD = tap(f"{name}.normed", (x_LD - mean_L[:, None]) * (stretch_LD / gain))
    return tap(f"{name}.out", fused(normed_LD, gain_D, bias_D))


def exp(x: Array) -> Array:
    """exp x, x ≤ 0, as the engine has it: 2ⁿ eʳ with |r| ≤ log 2 / 2, and a polynomial of degree 7 for eʳ (Cephes)."""
    x = np.maximum(x, np.float32(-88.3762626647949))
    n = np.floor(fused(x, np.float32(1.44269504088896341), np.float32(0.5)))
    r = fused(-n, np.float32(-2.12194440e-4), fused(-n, np.float32(0.693359375), x))
    y = np.full_like(r, 1.9875691500e-4)
    for coefficient in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        y = fused(y, r, np.float32(coefficient))
    y = fused(y, r * r, r) + np.float32(1)
    return np.where(n < -126, np.float32(0), np.ldexp(y, n.astype(np.int32)))


def softmax(x: Array) -> Array:
    """exp(xᵢ) / Σⱼ exp(xⱼ) over the last axis. What the mask hides at a row's end is not added: the engine never
    computes it, and eight sums side by side would come out otherwise."""
    exps = exp(x - x.max(axis=-1, keepdims=True))
    lengths = x.shape[-1] - np.argmax(np.isfinite(x)[..., ::-1], axis=-1)
    total = np.zeros(x.shape[:-1], np.float32)
    for n in set(lengths.ravel().tolist()):
        here = lengths == n
        total[here] = in_lanes(exps[here][..., :n]) if n > LANES else added_up(exps[here][..., :n])
    return exps * (1 / total)[..., None]


def product(a: Array, b: Array) -> Array:
    """a b, each sum term by term, with one rounding a term."""
    pairs = ((a[..., m, None], b[..., m, None, :]) for m in range(b.shape[-2]))
    return added_fused(pairs, np.zeros((*a.shape[:-1], b.shape[-1]), np.float32))


def dots(a: Array, b: Array, lanes: int) -> Array:
    """a bᵀ in as many sums side by side as there are `lanes`; these are not yet added."""
    beyond = -a.shape[-1] % lanes
    if beyond:
        a, b = (np.concatenate([x, np.zeros((*x.shape[:-1], beyond), np.float32)], axis=-1) for x in (a, b))
    groups = (slice(i, i + lanes) for i in range(0, a.shape[-1], lanes))
    pairs = ((a[..., :, None, group], b[..., None, :, group]) for group in groups)
    return added_fused(pairs, np.zeros((*a.shape[:-1], b.shape[-2], lanes), np.float32))


def one_query_at_a_time(Q_HLK: Array, K_HMK: Array, divisor: float) -> Array:
    """Q Kᵀ, a row at a time."""
    lanes = dots(Q_HLK, K_HMK, LANES)
    pairs = lanes[..., 0::2] + lanes[..., 1::2]
    sums = (pairs[..., 0] + pairs[..., 2]) + (pairs[..., 1] + pairs[..., 3])
    return unrounded(sums * np.float32(1 / divisor), divisor)


def few_queries(Q_HLK: Array, K_HMK: Array, divisor: float) -> Array:
    """Q Kᵀ for 2 to 15 rows that ask together: the division comes first."""
    return unrounded(halved(dots(Q_HLK * np.float32(1 / divisor), K_HMK, 2 * LANES)), divisor)


def many_queries(Q_HLK: Array, K_HMK: Array, divisor: float) -> Array:
    """Q Kᵀ for 16 and more rows that ask together."""
    return unrounded(product(Q_HLK, K_HMK.swapaxes(-1, -2)) * np.float32(1 / divisor), divisor)


def unrounded(scaled_HLM: Array, divisor: float) -> Array:
    """The scores whose division gives these: in float64, for the engine does not round between the two."""
    return scaled_HLM * np.float64(divisor)


def asked_together(n_queries: int, n_keys: int) -> Scores:
    """The engine's matrix product for so many rows at once."""
    if n_queries == 1 or (n_queries >= 2 * LANES and n_keys == 1):
        return one_query_at_a_time
    return few_queries if n_queries < 2 * LANES else many_queries


def encoder_scores(Q_HLK: Array, K_HMK: Array, divisor: float) -> Array:
    """Q Kᵀ: all the rows of the source ask at once."""
    return asked_together(Q_HLK.shape[-2], K_HMK.shape[-2])(Q_HLK, K_HMK, divisor)


def cross_scores(beam: int, first_step: int) -> Scores:
    """Q Kᵀ: the hypotheses of a beam ask the memory together, at the first step there is but one."""

    def scores(Q_HLK: Array, K_HMK: Array, divisor: float) -> Array:
        alone = 1 if first_step == 0 else 0
        together = asked_together(beam, K_HMK.shape[-2])
        ways = (one_query_at_a_time, Q_HLK[:, :alone]), (together, Q_HLK[:, alone:])
        return np.concatenate([way(rows, K_HMK, divisor) for way, rows in ways if rows.shape[1]], axis=1)

    return scores


@cache
def eight_bits(beam: int) -> Arithmetic:
    """As the fast engine computes when it searches with this beam."""
    return Arithmetic(
        name="eight bits",
        rows=rows,
        project=project,
        look_up=look_up,
        encoder_scores=encoder_scores,
        decoder_scores=one_query_at_a_time,
        cross_scores=partial(cross_scores, beam),
        mix=product,
        softmax=softmax,
        normalise=layer_norm,
    )
