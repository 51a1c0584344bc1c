"""Compares a run before and after a what-if: which numbers changed, by how much, and where NaN first appears."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vidrio.glass.expressions import At
from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace
from vidrio.glass.whatif import WhatIf


@dataclass(frozen=True)
class Changed:
    """The largest change in a layer."""

    address: str  # address of the number that changed the most
    largest: float  # NaN if a number became NaN
    relative: float  # the change divided by the largest absolute value in its quantity
    before: float
    after: float


@dataclass(frozen=True)
class Comparison:
    """The effects of a what-if. Decoder rows are compared only as long as both runs have the same input tokens."""

    shared_steps: int  # number of decoding steps compared
    layers: dict[str, Changed]  # in the order of computation; unchanged layers are included
    kl: tuple[float, ...]  # KL divergence of the next-token probabilities at each shared step, in nats
    first_nan: str | None
    first_infinite: str | None
    notes: tuple[str, ...] = ()


def compare(before: Trace, after: Trace, whatif: WhatIf | None = None) -> Comparison:
    """Compare two runs on the same input, number by number."""
    shared = _shared(before.target_tokens, after.target_tokens)
    kl: tuple[float, ...] = ()
    if "out.prob" in before and "out.prob" in after:
        p, q = (np.atleast_2d(t.array("out.prob")).astype(np.float64) for t in (before, after))
        kl = tuple(_kl(*rows) for rows in zip(p[: shared or 1], q[: shared or 1], strict=True))
    notes = []
    if after.machine.operations["mask"] is not before.machine.operations["mask"] and "tgt.ids" in after:
        notes = ["the numbers are from the last step, in which earlier rows see later tokens"]
    idle = [change for change in (whatif.changes if whatif else ()) if not change.reaches(after)]
    notes += [f"{change.option}: nothing to change" for change in idle]
    layers = _layers(before, after, shared or None)
    return Comparison(shared, layers, kl, first(after, np.isnan), first(after, np.isinf), tuple(notes))


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the number of decoding steps before the input tokens of the two runs differ."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _layers(before: Trace, after: Trace, steps: int | None) -> dict[str, Changed]:
    """Find the largest change in each layer. Ids are skipped because their differences are meaningless, and masked
    scores because every change from −∞ is infinite."""
    largest: dict[str, Changed] = {}
    for name, stage in before.stages.items():
        if stage.kind not in ("parameter", "value", "aggregate") or stage.operation == "mask":
            continue
        if name in before and name in after:
            old, new = before.array(name), after.array(name)
            is_same = np.may_share_memory(old, new)  # an unchanged parameter, so comparing one number is enough
            rows = tuple(slice(1) if is_same else slice(steps) if axis == "T" else slice(None) for axis in stage.axes)
            changed = _changed(name, old[rows], new[rows])
            layer = layer_of(name)
            if layer not in largest or _size(changed) > _size(largest[layer]):
                largest[layer] = changed
    way = dict.fromkeys(map(layer_of, before.values))
    order = [*(layer for layer in largest if layer not in way), *(layer for layer in way if layer in largest)]
    return {layer: largest[layer] for layer in order}


def _changed(name: str, before: Array, after: Array) -> Changed:
    before, after = before.astype(np.float64), after.astype(np.float64)
    same = (before == after) | (np.isnan(before) & np.isnan(after)) | np.isneginf(after)  # masked
    with np.errstate(invalid="ignore"):
        difference = after - before
    np.abs(difference, out=difference)
    difference[same] = 0
    flat = int(np.argmax(difference))  # argmax treats NaN as the largest
    place = tuple(int(i) for i in np.unravel_index(flat, before.shape))
    address = str(At(name, place))
    largest = float(np.max(np.abs(before), where=np.isfinite(before), initial=0))
    relative = float(difference[place]) / largest if largest else math.inf if difference[place] else 0.0
    return Changed(address, float(difference[place]), relative, float(before[place]), float(after[place]))


def layer_of(name: str) -> str:
    """Return the layer of a quantity: enc.0 for enc.0.self.scores.h1, out for out.prob."""
    first, _, rest = name.partition(".")
    second = rest.partition(".")[0]
    return f"{first}.{second}" if second.isdigit() else first


def _size(changed: Changed) -> float:
    return math.inf if math.isnan(changed.relative) else changed.relative


def _kl(p: Array, q: Array) -> float:
    """Return Σ p log(p / q), the Kullback–Leibler divergence, which is 0 if nothing changed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = p / p.sum(), q / q.sum()  # because of rounding in float16, the sums may not be 1
        divergence = float(np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0 * q).sum())
    return 0.0 if -1e-12 < divergence < 0 else divergence  # negative only through rounding


def first(trace: Trace, wrong: Callable[[Array], Array]) -> str | None:
    """Return the address of the first number, in the order of computation, that is `wrong` (NaN or infinite), ignoring
    the −∞ of masked scores."""
    for name, array in trace.values.items():
        if array.dtype.kind == "f" and trace.stages[name].operation != "mask":
            places = np.argwhere(wrong(np.where(np.isneginf(array), 0, array) if ".scaled." in name else array))
            if len(places):
                return str(At(name, tuple(places[0])))
    return None
