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

from collections.abc import Mapping
from functools import cache, partial

import numpy as np

from vidrio.glass.paper.arithmetic import Arithmetic, Calculator, Projection, Rows, Scores, WholeNumbers
from vidrio.glass.paper.maths import Array, Tap, no_tap
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


def project(machine: Calculator, x: Rows, to: Projection, tap: Tap) -> Array:
    """x W + b by whole numbers."""
    assert isinstance(x, WholeNumbers)
    W, b = machine.whole_parameters[to.weight], machine.parameters.get(to.bias)
    head = "" if to.head is None else f".h{to.head}"
    if to.head is not None:
        W, b = WholeNumbers(W.whole[to.head], W.factor[to.head]), None if b is None else b[to.head]
    product = tap(f"{to.name}.product{head}", whole_product(x.whole, W.whole.T if to.transposed else W.whole))
    y = product * (1 / x.factor[..., None]) / W.factor
    return y if b is None else y + b


def whole_product(a: Array, b: Array) -> Array:
    """Exact: as long as every sum stays below 2²⁴, float32 holds each whole number, and float64 does far beyond."""
    if len(b) * LARGEST**2 < EXACT_IN_FLOAT32:
        return a @ b
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)


def look_up(machine: Calculator, table: str, ids_L: Array) -> Array:
    whole, factor = machine.whole_parameters[table]
    return whole[ids_L] * (1 / factor[ids_L, None])


# --- float32, added in the engine's order -----------------------------------------------------------------------------


def fused(a: Array, b: Array | Float, c: Array | Float) -> Array:
    """a · b + c, rounded once: float64 holds the product of two float32 exactly."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def added_fused(terms: Array, total: Array) -> Array:
    """Products in float64, added to `total` one after the other along the first axis, each sum rounded once."""
    for term in terms:
        np.add(term, total, out=total, casting="unsafe")
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
    lanes = np.zeros((*x.shape[:-1], LANES), np.float32)
    for i in range(0, n, LANES):
        lanes = lanes + x[..., i : i + LANES]
    total = halved(lanes)
    for i in range(n, x.shape[-1]):
        total = total + x[..., i]
    return total


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


def added_up(x: Array) -> Array:
    """The sum over the last axis, one by one."""
    total = x[..., 0]
    for i in range(1, x.shape[-1]):
        total = total + x[..., i]
    return total


def product(a: Array, b: Array) -> Array:
    """a b, each sum term by term, with one rounding a term."""
    terms = np.multiply(a.T[:, :, None], b[:, None, :], dtype=np.float64)
    return added_fused(terms, np.zeros((len(a), b.shape[1]), np.float32))


def dots(a: Array, b: Array, lanes: int) -> Array:
    """a bᵀ in as many sums side by side as there are `lanes`; these are not yet added."""
    beyond = -a.shape[1] % lanes
    if beyond:
        a, b = (np.pad(x, ((0, 0), (0, beyond))) for x in (a, b))
    a_lanes, b_lanes = (x.reshape(len(x), x.shape[1] // lanes, lanes).swapaxes(0, 1) for x in (a, b))
    terms = np.multiply(a_lanes[:, :, None], b_lanes[:, None], dtype=np.float64)
    return added_fused(terms, np.zeros((len(a), len(b), lanes), np.float32))


def one_query_at_a_time(Q_LK: Array, K_MK: Array, divisor: float) -> Array:
    """Q Kᵀ, a row at a time."""
    lanes = dots(Q_LK, K_MK, LANES)
    pairs = lanes[..., 0::2] + lanes[..., 1::2]
    sums = (pairs[..., 0] + pairs[..., 2]) + (pairs[..., 1] + pairs[..., 3])
    return unrounded(sums * np.float32(1 / divisor), divisor)


def few_queries(Q_LK: Array, K_MK: Array, divisor: float) -> Array:
    """Q Kᵀ for 2 to 15 rows that ask together: the division comes first."""
    return unrounded(halved(dots(Q_LK * np.float32(1 / divisor), K_MK, 2 * LANES)), divisor)


def many_queries(Q_LK: Array, K_MK: Array, divisor: float) -> Array:
    """Q Kᵀ for 16 and more rows that ask together."""
    return unrounded(product(Q_LK, K_MK.T) * np.float32(1 / divisor), divisor)


def unrounded(scaled_LM: Array, divisor: float) -> Array:
    """The scores whose division gives these: in float64, for the engine does not round between the two."""
    return scaled_LM * np.float64(divisor)


def asked_together(n_queries: int, n_keys: int) -> Scores:
    """The engine's matrix product for so many rows at once."""
    if n_queries == 1 or (n_queries >= 2 * LANES and n_keys == 1):
        return one_query_at_a_time
    return few_queries if n_queries < 2 * LANES else many_queries


def encoder_scores(Q_LK: Array, K_MK: Array, divisor: float) -> Array:
    """Q Kᵀ: all the rows of the source ask at once."""
    return asked_together(len(Q_LK), len(K_MK))(Q_LK, K_MK, divisor)


def cross_scores(beam: int, first_step: int) -> Scores:
    """Q Kᵀ: the hypotheses of a beam ask the memory together, at the first step there is but one."""

    def scores(Q_LK: Array, K_MK: Array, divisor: float) -> Array:
        alone = 1 if first_step == 0 else 0
        ways = (one_query_at_a_time, Q_LK[:alone]), (asked_together(beam, len(K_MK)), Q_LK[alone:])
        return np.concatenate([way(rows_LK, K_MK, divisor) for way, rows_LK in ways if len(rows_LK)])

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
