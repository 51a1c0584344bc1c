"""Explains why the model chose one word over another, by splitting their logit difference into an exact sum.

    d · LayerNorm(u) = (γ∘d − mean(γ∘d)) / √(σ² + ε) · u + d · β

With its variance held fixed, layer norm is an affine function of its input u. The vector d, the difference between two
columns of the output matrix, can therefore be propagated back through the last stack of layers. Every vector that was
added to a row of that stack contributes one part: its dot product with d at that point. A decoder's parts explain a
single step. A classifier's parts are summed over all rows.

The engine rounds rows to int8 before multiplying them by a matrix. The parts named `….whole` are the effect of this
rounding. The part `rounding` is the remainder, caused by floating-point arithmetic. All other parts are rounded to
multiples of a power of two, so that float64 adds them exactly in any order.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace
from vidrio.model.parameters import output_is_tied, target_table
from vidrio.model.quantised import summed_axes

RELATIVE = 100  # maximum acceptable `rounding`, as a multiple of ε times the sum of the parts' absolute values
SOURCE, TARGET = "source", "target"
ROUNDING = "rounding"
CHANGED = "rounding and what-ifs"  # remainder after a what-if: replaced values do not follow from their inputs

_summed_axes = lru_cache(maxsize=8)(summed_axes)


class Part(NamedTuple):
    """One part of the difference between two logits."""

    name: str  #: the head, sub-layer or parameter that the part comes from
    value: float
    reads: str = ""  #: "source" or "target" if the part comes from a single token, otherwise empty
    row: int = -1  #: the position of that token, or −1


class Neuron(NamedTuple):
    """A hidden unit of a feed-forward network, and its contribution to the difference."""

    name: str
    unit: int
    value: float
    pushes: Array  # the unit's contribution to each logit


Label = tuple[str, str, int]  # the fields of a Part other than its value: name, reads, row


@dataclass(frozen=True)
class Decision:
    """The difference between the logits of two tokens, `this` and `that`, at one row, and its parts."""

    row: int
    this: int
    that: int
    difference: float
    labels: Sequence[Label]
    values: Array  # one value per label

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        values = self.values.tolist()
        return tuple(Part(name, v, reads, row) for (name, reads, row), v in zip(self.labels, values, strict=True))


@dataclass(frozen=True)
class _Summand:
    """A part of the difference at every row. If `reads` is set, each row has one number per token that it reads."""

    name: str
    values: Array
    reads: str = ""


@dataclass(frozen=True)
class _Block:
    """A feed-forward network, with d at its output and the norms between its output and the logits."""

    name: str
    d_RD: Array
    norms: tuple[str, ...]


def runner_up(trace: Trace, row: int, this: int) -> int:
    """Return the token, other than `this`, with the largest logit."""
    logits_V = np.array(_logits(trace)[row], float)
    logits_V[this] = -np.inf
    return int(np.argmax(logits_V))


def decisions(trace: Trace, this: Sequence[int], that: Sequence[int]) -> list[Decision]:
    """Split the difference between the logits of `this` and `that` at each row. A classifier has one row."""
    d_RD = columns(trace, this) - columns(trace, that)
    logits = _logits(trace).astype(float)
    found = [
        _Summand("out.b", bias[list(this)] - bias[list(that)])
        for bias in [np.asarray(trace.machine.parameters.get("out.b", ()), float)]
        if bias.size
    ]
    last = "dec.out" if trace.machine.config.has_decoder else "out.pooled"
    found += _of_int8(trace, "out.x", np.atleast_2d(trace.values[last]), d_RD)
    if trace.machine.config.has_decoder:
        found += (made for made in _carried_back(trace, "dec", d_RD) if isinstance(made, _Summand))
    else:
        rows = len(trace.values["memory"])
        of_rows = _carried_back(trace, "enc", np.repeat(d_RD / rows, rows, axis=0))
        found += (_summed(made) for made in of_rows if isinstance(made, _Summand))
    rows_R = np.arange(len(this))
    differences_R = logits[rows_R, list(this)] - logits[rows_R, list(that)]
    labels, values_RP = _exact(found, differences_R)
    rest = CHANGED if trace.machine.changes or trace.computed else ROUNDING
    labels.append((rest, "", -1))
    later = [row if reads == TARGET else -1 for _, reads, row in labels]
    shown_RP = (np.array(later) <= rows_R[:, None]) | (values_RP != 0)  # unless unmasked, later rows contribute nothing
    return [
        Decision(
            row,
            this[row],
            that[row],
            float(differences_R[row]),
            [label for label, shown in zip(labels, shown_RP[row].tolist(), strict=True) if shown],
            values_RP[row, shown_RP[row]],
        )
        for row in range(len(this))
    ]


def explained_share(trace: Trace) -> tuple[int, float]:
    """Return how many tokens have an exact sum, and the largest `rounding` as a fraction of the acceptable maximum."""
    this = trace.values["out.choice"].tolist() if "out.choice" in trace.values else [int(_logits(trace)[0].argmax())]
    made = decisions(trace, this, [runner_up(trace, row, token) for row, token in enumerate(this)])
    made = [one for one in made if one.labels[-1][0] == ROUNDING]
    most = [RELATIVE * np.finfo(trace.machine.dtype).eps * np.abs(one.values[:-1]).sum() for one in made]
    return len(made), max((abs(one.values[-1]) / limit for one, limit in zip(made, most, strict=True)), default=0.0)


def neurons(trace: Trace, decision: Decision, count: int) -> list[Neuron]:
    """Return the `count` hidden units of the decoder with the largest absolute contributions."""
    if not trace.machine.config.has_decoder:
        return []
    row = decision.row
    d_RD = np.zeros((len(_logits(trace)), trace.machine.config.d_model))
    d_RD[row] = (columns(trace, [decision.this]) - columns(trace, [decision.that]))[0]
    found = []
    for block in _carried_back(trace, "dec", d_RD):
        if isinstance(block, _Block):
            W2_FD = parameter(trace, f"{block.name}.W2")
            active_F = trace.values[f"{block.name}.active"][row].astype(float)
            value_F = active_F * (W2_FD @ block.d_RD[row])
            for unit in np.argsort(-np.abs(value_F))[:count].tolist():
                added_D = _through_norms(trace, active_F[unit] * W2_FD[unit], block.norms, row)
                found.append((block.name, unit, float(value_F[unit]), added_D))
    if not found:  # the model has no feed-forward networks
        return []
    found = sorted(found, key=lambda one: -abs(one[2]))[:count]
    pushes_NV = np.stack([added_D for *_, added_D in found]) @ columns(trace).T
    return [Neuron(*one[:3], pushes_V) for one, pushes_V in zip(found, pushes_NV, strict=True)]


# --- backward through the layers --------------------------------------------------------------------------------------


def _carried_back(trace: Trace, side: str, d_RD: Array) -> Iterator[_Summand | _Block]:
    """Propagate d back through a stack of layers, and yield everything that was added to its rows, last first."""
    machine, config, values = trace.machine, trace.machine.config, trace.values
    norms: tuple[str, ...] = ()
    post = config.norm == "post"
    own, embedded = (TARGET, "tgt") if side == "dec" else (SOURCE, "src")
    if not post:
        d_RD, norms = yield from _norm(trace, d_RD, f"{side}.norm", norms)
    layers = config.n_decoder_layers if side == "dec" else config.n_encoder_layers
    for layer in reversed(range(layers)):
        kinds = [kind for kind in ("ffn", "cross", "ssru", "self") if f"{side}.{layer}.{kind}.out" in values]
        for kind in kinds:
            name = f"{side}.{layer}.{kind}"
            if post:
                d_RD, norms = yield from _norm(trace, d_RD, f"{name}.norm", norms)
            if f"{name}.out" in trace.computed:
                pass  # a what-if replaced the output, so it is not the sum of its heads or units
            elif kind == "ffn":
                yield _Summand(name, (d_RD * values[f"{name}.out"]).sum(axis=-1))
                yield _Block(name, d_RD, norms)
            elif kind == "ssru":
                yield _of_cell(trace, d_RD, name)
            else:
                yield from _of_heads(trace, d_RD, name, SOURCE if kind == "cross" else own)
            if "residual" in machine.without:
                return
    scaled, positions = values[f"{embedded}.scaled"], values[f"{embedded}.positions"]
    yield _Summand(f"{embedded}.embedding", np.diag((d_RD * scaled).sum(axis=-1)), own)
    yield _Summand(f"{embedded}.positions", (d_RD * positions).sum(axis=-1))


def _norm(
    trace: Trace, d_RD: Array, name: str, norms: tuple[str, ...]
) -> Generator[_Summand, None, tuple[Array, tuple[str, ...]]]:
    """Propagate d back through a layer norm, and yield the part due to its bias. Returns the new d and norms."""
    if f"{name}.var" not in trace.values:  # a what-if removed the norm
        return d_RD, norms
    yield _Summand(f"{name}.bias", d_RD @ parameter(trace, f"{name}.bias"))
    return before_norm(trace, d_RD, name), (*norms, name)


def _of_heads(trace: Trace, d_RD: Array, name: str, reads: str) -> Iterator[_Summand]:
    """Yield the part of each head, by attended row, and the part of the output bias if there is one."""
    for h, WO_KD in enumerate(np.split(parameter(trace, f"{name}.WO"), trace.machine.config.n_heads)):
        if f"{name}.head.h{h}" in trace.computed:  # replaced by a what-if
            continue
        weights, V = (trace.values[f"{name}.{letter}.h{h}"].astype(float) for letter in ("weights", "V"))
        yield _Summand(f"{name}.h{h}", weights * (d_RD @ WO_KD.T @ V.T), reads)
    if f"{name}.bO" in trace.machine.parameters:
        yield _Summand(f"{name}.bO", d_RD @ parameter(trace, f"{name}.bO"))
    yield from _of_int8(
        trace, f"{name}.concat", trace.values[f"{name}.concat"], d_RD @ parameter(trace, f"{name}.WO").T
    )


def _of_int8(trace: Trace, name: str, x_RN: Array, d_RN: Array) -> Iterator[_Summand]:
    """Yield the effect of rounding rows to int8 before a matrix product, or nothing in floating point."""
    if trace.machine.whole:
        whole_RN, scale_R = (trace.values[f"{name}.{part}"].astype(float) for part in ("whole", "scale"))
        yield _Summand(f"{name}.whole", ((whole_RN * scale_R[..., None] - x_RN) * d_RN).sum(axis=-1))


def _of_cell(trace: Trace, d_RD: Array, name: str) -> _Summand:
    """Return the contribution of each candidate to each row. With fixed gates, the cell is linear in its candidates."""
    forget, candidate, cell = (trace.values[f"{name}.{part}"].astype(float) for part in ("forget", "candidate", "cell"))
    d_RD, parts, kept = d_RD * (cell > 0), np.zeros((len(cell), len(cell))), np.zeros_like(cell)
    for j in reversed(range(len(cell))):
        kept[j] = 1  # row t holds the product of the gates of rows j + 1 to t
        parts[:, j] = (d_RD * kept) @ ((1 - forget[j]) * candidate[j])
        kept *= forget[j]
    return _Summand(name, parts, TARGET)


def before_norm(trace: Trace, d: Array, name: str) -> Array:
    """Propagate d, whose last two axes are rows and features, back through a layer norm with fixed variances."""
    d = d * parameter(trace, f"{name}.gain")
    return (d - d.mean(axis=-1, keepdims=True)) / _deviations(trace, name)[:, None]


def _through_norms(trace: Trace, x_D: Array, norms: Sequence[str], row: int) -> Array:
    """Propagate a vector that was added to a row forward through the norms, with fixed variances."""
    for name in reversed(norms):
        x_D = (x_D - x_D.mean()) / _deviations(trace, name)[row] * parameter(trace, f"{name}.gain")
    return x_D


def _deviations(trace: Trace, name: str) -> Array:
    return np.sqrt(trace.values[f"{name}.var"].astype(float) + trace.machine.config.norm_epsilon)


# --- from summands to parts -------------------------------------------------------------------------------------------


def _summed(made: _Summand) -> _Summand:
    """Sum a part over all rows, because a classifier uses their mean."""
    return _Summand(made.name, made.values.sum(axis=0, keepdims=True), made.reads)


def _exact(found: Sequence[_Summand], differences_R: Array) -> tuple[list[Label], Array]:
    """Return the labels of all parts, and a matrix with one column of values per part. An extra last column contains
    the remainder of each row's difference."""
    labels = [
        (made.name, made.reads, row) for made in found for row in (range(made.values.shape[-1]) if made.reads else [-1])
    ]
    columns_RP = (made.values if made.reads else made.values[:, None] for made in found)
    values_RP = np.concatenate([np.zeros((len(differences_R), 0)), *columns_RP], axis=1)
    # Sums of multiples of this step are exact, because they fit in the 53-bit significand of a float64.
    grain_R1 = np.ldexp(1.0, np.frexp(np.abs(values_RP).sum(axis=1, keepdims=True))[1] - 51)
    values_RP = np.round(values_RP / grain_R1) * grain_R1
    rest_R = differences_R - values_RP.sum(axis=1)
    return labels, np.concatenate([values_RP, rest_R[:, None]], axis=1)


def parameter(trace: Trace, name: str, at: Any = ...) -> Array:
    """Return a parameter, or part of one, with the (dequantised) values that the machine uses in products."""
    machine = trace.machine
    if name not in machine.whole_parameters:
        return np.asarray(machine.parameters[name][at], float)
    whole, scale = machine.whole_parameters[name]
    scale = np.expand_dims(np.asarray(scale, float), _summed_axes(machine.config)[name])
    return np.asarray(whole[at], float) * np.broadcast_to(scale, whole.shape)[at]


def columns(trace: Trace, ids: Sequence[int] | slice = slice(None)) -> Array:
    """Return the columns of the output matrix for these tokens or classes, as rows."""
    config = trace.machine.config
    if output_is_tied(config):
        return parameter(trace, target_table(config), (ids, slice(None)))
    return parameter(trace, "out.W", (slice(None), ids)).T


def _logits(trace: Trace) -> Array:
    return np.atleast_2d(trace.values["out.logits"])
