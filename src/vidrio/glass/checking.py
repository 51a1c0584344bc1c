"""Every number of a run at once: does it follow from its inputs? And does one pass give what step by step gives?"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from vidrio.glass.arrays import recomputed
from vidrio.glass.engine import FLOAT
from vidrio.glass.machine import KeyValueCache
from vidrio.glass.receipts import At, Compared
from vidrio.glass.trace import Trace
from vidrio.glass.walk import decode_step, encode

NAMED = 8  # exceptions kept of one quantity


@dataclass
class Checked:
    """What came of recomputing numbers."""

    count: int = 0
    quantities: int = 0
    edited: int = 0  # numbers that a what-if put in place of computed ones
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


def check(trace: Trace) -> Checked:
    """Recompute every number of a run."""
    checked = Checked()
    for name in recomputed_names(trace):
        check_quantity(trace, name, checked)
    return checked


def recomputed_names(trace: Trace) -> list[str]:
    """The quantities that are computed: not parameters, nor ids, nor the search's choice."""
    return [name for name in trace.addresses() if trace.stages[name].kind in ("value", "aggregate", "constant")]


def check_quantity(trace: Trace, name: str, checked: Checked) -> None:
    """What a what-if changed is checked as it was before."""
    after = trace.array(name)
    model = trace.computed.get(name, after)
    value, tolerance = recomputed(trace, name)
    with np.errstate(invalid="ignore", divide="ignore"):
        same = (model == value) | (np.isnan(model) & np.isnan(value))
        difference = np.where(same, 0.0, np.abs(model - value)).astype(np.float64)
        share = np.where(difference == 0, 0.0, difference / tolerance)
    share[np.isnan(share)] = math.inf
    checked.count += model.size
    checked.quantities += 1
    checked.edited += int(((after != model) & ~(np.isnan(after) & np.isnan(model))).sum())
    explained = np.where(share <= 1, share, 0.0)
    if explained.size and explained.max() > checked.share:
        at = np.unravel_index(int(np.argmax(explained)), explained.shape)
        checked.share, checked.share_at = float(explained.max()), At(name, tuple(map(int, at)))
    wrong = np.argwhere(share > 1)
    checked.wrong += len(wrong)
    for place in sorted(map(tuple, wrong.tolist()), key=lambda place: -share[place])[:NAMED]:
        result = Compared(float(model[place]), float(value[place]), float(tolerance[place]))
        checked.exceptions.append((At(name, place), result))


# --- one pass, and step by step ---------------------------------------------------------------------------------------

# How far the logits of one pass may be from those of decoding step by step, relative to the largest of them. The two do
# the same additions in another order through every layer; no bound is derived, so these are far above what is seen. In
# the engine's arithmetic every sum has one order, and nothing differs.
STEPS_TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 0.5}


class StepsChecked(NamedTuple):
    """How far one pass over the whole translation is from decoding it step by step, with a key–value cache."""

    steps: int
    largest: float  # difference of logits, relative to the largest logit of the step
    tolerance: float

    @property
    def agrees(self) -> bool:
        return self.largest <= self.tolerance


def check_steps(trace: Trace) -> StepsChecked | None:
    """None where there is nothing to compare: no decoder, no causal mask, or numbers changed on the way."""
    machine = trace.machine
    if "tgt.ids" not in trace or not machine.causal or trace.computed:
        return None
    logits_TV, cache, steps = trace.array("out.logits"), KeyValueCache(), []
    with np.errstate(all="ignore"):  # a what-if may come to infinity and NaN
        memory_SD = encode(machine, trace.array("src.ids").tolist()) if machine.config.has_encoder else None
        for token, traced_V in zip(trace.array("tgt.ids").tolist(), logits_TV, strict=True):
            logits_V = decode_step(machine, [token], memory_SD, cache)
            if np.array_equal(logits_V, traced_V, equal_nan=True):
                steps.append(0.0)
            else:
                difference = np.abs(logits_V.astype(np.float64) - traced_V.astype(np.float64)).max()
                steps.append(float(difference / np.abs(traced_V.astype(np.float64)).max()))
    largest = math.inf if np.isnan(steps).any() else max(steps)
    tolerance = STEPS_TOLERANCE[logits_TV.dtype.name] if machine.arithmetic is FLOAT else 0.0
    return StepsChecked(len(steps), largest, tolerance)
