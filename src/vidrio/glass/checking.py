"""Every number of a run at once: does it follow from the numbers it is said to be made from?"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from vidrio.errors import AddressError
from vidrio.glass.arrays import recomputed
from vidrio.glass.engine import FLOAT
from vidrio.glass.machine import KeyValueCache
from vidrio.glass.maths import Array
from vidrio.glass.receipts import At, Compared, locate
from vidrio.glass.trace import Address, Trace
from vidrio.glass.walk import decode_step, encode

NAMED = 8  # exceptions kept of one quantity


@dataclass
class Checked:
    """What came of recomputing numbers."""

    count: int = 0
    quantities: int = 0
    edited: int = 0  # numbers that a what-if put in place of computed ones
    largest: float = 0.0  # the largest difference between finite numbers
    largest_at: At | None = None
    share: float = 0.0  # the largest difference as a share of what rounding can explain
    share_at: At | None = None
    wrong: int = 0
    exceptions: list[tuple[At, Compared]] = field(default_factory=list)  # the worst of each quantity

    def worst(self, count: int) -> list[tuple[At, Compared]]:
        """The exceptions furthest beyond their tolerance."""

        def excess(entry: tuple[At, Compared]) -> float:
            result = entry[1]
            return math.inf if result.tolerance == 0 else result.difference / result.tolerance

        return sorted(self.exceptions, key=excess, reverse=True)[:count]


def check(trace: Trace, addresses: Sequence[Address] = ()) -> Checked:
    """Recompute every number of a run, or those at or under some addresses."""
    checked = Checked()
    for name, place in chosen(trace, addresses).items():
        _check(trace, name, place, checked)
    return checked


def chosen(trace: Trace, addresses: Sequence[Address]) -> dict[str, tuple[int, ...] | None]:
    """The quantities to recompute, each with the one number of it that was asked for, if it was one."""
    if not addresses:
        return dict.fromkeys(recomputed_names(trace))
    found: dict[str, tuple[int, ...] | None] = {}
    for address in addresses:
        if address.index:
            found.setdefault(address.name, locate(trace, address).place)
        if not trace.addresses(address.name):
            trace.stage(address.name)  # says which are near
        names = recomputed_names(trace, address.name)
        if not names:
            raise AddressError(
                f"under {address.name!r} nothing is computed",
                found="parameters, ids or choices",
                do="name numbers on the way; parameters are compared with the model's file in every check",
            )
        if not address.index:
            found |= dict.fromkeys(names)
    return found


def recomputed_names(trace: Trace, prefix: str = "") -> list[str]:
    """The quantities under a prefix that are computed: not parameters, nor ids, nor the search's choice."""
    return [name for name in trace.addresses(prefix) if trace.stages[name].kind in ("value", "aggregate", "constant")]


def _check(trace: Trace, name: str, place: tuple[int, ...] | None, checked: Checked) -> None:
    """One quantity, or one number of it; what a what-if changed is checked as it was before."""
    after = trace.array(name)
    model = trace.computed.get(name, after)
    value, tolerance = recomputed(trace, name)
    tolerance = np.broadcast_to(tolerance, value.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        same = (model == value) | (np.isnan(model) & np.isnan(value))
        difference = np.where(same, 0.0, np.abs(model - value)).astype(np.float64)
        share = np.where(difference == 0, 0.0, difference / tolerance)
        edited = (after != model) & ~(np.isnan(after) & np.isnan(model))
    difference[np.isnan(difference)] = math.inf
    share[np.isnan(share)] = math.inf
    here = np.ones(model.shape, dtype=bool)
    if place is not None:
        here[...] = False
        here[place] = True
    checked.count += int(here.sum())
    checked.quantities += 1
    checked.edited += int((edited & here).sum())

    def largest(of: np.ndarray) -> tuple[At, float]:
        at = tuple(int(i) for i in np.unravel_index(int(np.argmax(of)), of.shape))
        return At(name, at), float(of[at])

    finite = np.where(here & np.isfinite(difference), difference, 0.0)
    if finite.size and (found := largest(finite))[1] > checked.largest:
        checked.largest_at, checked.largest = found
    agrees = np.where(here & (share <= 1), share, 0.0)
    if agrees.size and (found := largest(agrees))[1] > checked.share:
        checked.share_at, checked.share = found
    wrong = np.argwhere(here & (share > 1))
    checked.wrong += len(wrong)
    for at in sorted(map(tuple, wrong.tolist()), key=lambda at: -share[at])[:NAMED]:
        result = Compared(float(model[at]), float(value[at]), float(tolerance[at]))
        checked.exceptions.append((At(name, at), result))


# --- one pass, and step by step ---------------------------------------------------------------------------------------

# How far the logits of one pass may be from those of decoding step by step, relative to the largest of them. The two do
# the same additions in another order through every layer; no bound is derived, so these are far above what is seen. In
# the engine's arithmetic every sum has one order, and nothing differs.
STEPS_TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 0.5}


@dataclass(frozen=True)
class StepsChecked:
    """How far one pass over the whole translation is from decoding it step by step, with a key–value cache."""

    steps: int
    largest: float  # difference of logits, relative to the largest logit of the step
    at: int  # step
    tolerance: float

    @property
    def agrees(self) -> bool:
        return self.largest <= self.tolerance


def check_steps(trace: Trace) -> StepsChecked | None:
    """None where there is nothing to compare: no decoder, no causal mask, or numbers changed on the way."""
    machine = trace.machine
    if "tgt.ids" not in trace or not machine.causal or trace.computed:
        return None
    with np.errstate(all="ignore"):  # a what-if may come to infinity and NaN
        steps_TV = list(_step_by_step(trace))
    largest, at = 0.0, 0
    for step, (logits_V, traced_V) in enumerate(zip(steps_TV, trace.array("out.logits"), strict=True)):
        if np.array_equal(logits_V, traced_V, equal_nan=True):
            continue
        difference = np.abs(logits_V.astype(np.float64) - traced_V.astype(np.float64))
        distance = float(difference.max() / max(float(np.abs(traced_V).max()), np.finfo(np.float64).tiny))
        if not distance <= largest:  # NaN is the largest
            largest, at = (math.inf if math.isnan(distance) else distance), step
    tolerance = STEPS_TOLERANCE[trace.array("out.logits").dtype.name] if machine.arithmetic is FLOAT else 0.0
    return StepsChecked(int(trace.sizes["T"]), largest, at, tolerance)


def _step_by_step(trace: Trace) -> Iterator[Array]:
    """The logits of each decoding step."""
    machine, cache = trace.machine, KeyValueCache()
    memory_SD = encode(machine, trace.array("src.ids").tolist()) if machine.config.has_encoder else None
    for token in trace.array("tgt.ids").tolist():
        yield decode_step(machine, [token], memory_SD, cache)


def check_following(trace: Trace) -> list[str]:
    """Where the decoder did not go on with the token that was chosen, or a token is not what its id says."""
    wrong = []
    if "out.choice" in trace:
        chosen, following = trace.array("out.choice"), trace.array("tgt.ids")
        wrong += [str(At("tgt.ids", (t + 1,))) for t in np.flatnonzero(chosen[:-1] != following[1:]).tolist()]
    for name, tokens, vocabulary in (
        ("src.ids", trace.source_tokens, trace.source_vocabulary),
        ("tgt.ids", trace.target_tokens, trace.vocabulary),
        ("out.choice", trace.chosen_tokens, trace.vocabulary),
    ):
        if name in trace and tokens and vocabulary:
            ids = trace.array(name).tolist()
            wrong += [str(At(name, (i,))) for i, token in enumerate(tokens) if vocabulary[ids[i]] != token]
    return wrong
