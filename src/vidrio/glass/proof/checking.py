"""Many receipts at once: does every number follow from the numbers it is said to be made from?"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from vidrio.errors import AddressError
from vidrio.glass.numbers.stages import is_output
from vidrio.glass.numbers.trace import Address, Trace
from vidrio.glass.paper.arithmetic import FLOAT
from vidrio.glass.paper.attention import Kept, causal
from vidrio.glass.paper.decoding import decode_step
from vidrio.glass.paper.transformer import encode
from vidrio.glass.proof.cells import Cells
from vidrio.glass.proof.operations import OPERATIONS
from vidrio.glass.proof.receipts import At, Compared, compared, locate, same, step_of

MOST_OUTPUTS = 20_000  # a usual check recomputes all of out.* up to this many numbers, and else this many of them
USUAL = 1_000  # and this many of everything else, spread evenly over all quantities


@dataclass
class Checked:
    """What came of recomputing some numbers."""

    count: int = 0
    quantities: set[str] = field(default_factory=set)
    edited: int = 0  # numbers that a what-if put in place of computed ones
    largest: float = 0.0  # the largest difference between finite numbers
    largest_at: At | None = None
    share: float = 0.0  # the largest difference as a share of what rounding can explain
    share_at: At | None = None
    exceptions: list[tuple[At, Compared]] = field(default_factory=list)

    def add(self, at: At, result: Compared) -> None:
        self.count += 1
        self.quantities.add(at.name)
        difference = result.difference
        if difference == 0.0:
            return
        if math.isfinite(difference) and difference > self.largest:
            self.largest, self.largest_at = difference, at
        if not result.agrees:
            self.exceptions.append((at, result))
        elif difference > self.share * result.tolerance:
            self.share, self.share_at = difference / result.tolerance, at

    def worst(self, count: int) -> list[tuple[At, Compared]]:
        """The exceptions furthest beyond their tolerance."""

        def excess(entry: tuple[At, Compared]) -> float:
            result = entry[1]
            return math.inf if result.tolerance == 0 else result.difference / result.tolerance

        return sorted(self.exceptions, key=excess, reverse=True)[:count]


def check(trace: Trace, numbers: Iterable[At]) -> Checked:
    """Recompute each of these numbers from its inputs; best in an order that keeps quantities and steps together."""
    checked = Checked()
    cells: Cells | None = None
    read_at: int | None = None
    for at in numbers:
        step = step_of(trace, at)
        if cells is None or step != read_at:
            cells, read_at = Cells(trace.as_of(step)), step
        stage = cells.trace.stages[at.name]
        checked.add(at, compared(cells, stage, at.place))
        before = cells.trace.computed.get(at.name)
        if before is not None and not same(before[at.place], cells.array(at.name)[at.place]):
            checked.edited += 1
    return checked


def recomputed_names(trace: Trace, prefix: str = "") -> list[str]:
    """The quantities under a prefix that are computed: not parameters, nor ids, nor the search's choice."""
    return [name for name in trace.addresses(prefix) if trace.stages[name].kind in ("value", "aggregate")]


def under(trace: Trace, address: Address) -> list[At]:
    """Every computed number at an address or under it; AddressError if there is none."""
    if address.index:
        return [locate(trace, address)]
    if not trace.addresses(address.name):
        trace.stage(address.name)  # says which are near
    names = recomputed_names(trace, address.name)
    if not names:
        raise AddressError(
            f"under {address.name!r} nothing is computed",
            found="parameters, ids or choices",
            do="name numbers on the way; parameters are compared with the model's file in every check",
        )
    if address.step is None:
        return list(every(trace, names))
    here = trace.as_of(address.step)
    decoder = every(here, [name for name in names if "T" in trace.stages[name].axes])
    return [
        At(at.name, at.place, address.step)
        for at in decoder
        if not trace.stages[at.name].per_step or at.place[0] == address.step
    ]


def every(trace: Trace, names: Sequence[str]) -> Iterator[At]:
    """Every number of these quantities; where each step was computed by itself, at every step."""
    for name in names:
        by_row = OPERATIONS[trace.stages[name].operation].by_row  # a row is worked out once for all its numbers
        for step in _steps_of(trace, name):
            shape = trace.as_of(step).array(name).shape
            if by_row:
                yield from (At(name, place, step) for place in np.ndindex(shape))
            else:  # column by column: each column of a matrix is fetched once
                yield from (At(name, place[::-1], step) for place in np.ndindex(shape[::-1]))


def how_many(trace: Trace) -> int:
    """How many numbers of a run could be recomputed."""
    return sum(
        trace.as_of(step).array(name).size for name in recomputed_names(trace) for step in _steps_of(trace, name)
    )


def _steps_of(trace: Trace, name: str) -> Sequence[int | None]:
    """The steps at which a quantity was computed afresh; None: all at once."""
    stage = trace.stages[name]
    alone = trace.steps and "T" in stage.axes and not stage.per_step
    return range(len(trace.steps)) if alone else [None]


def spread(trace: Trace, names: Sequence[str], count: int, generator: np.random.Generator) -> list[At]:
    """`count` numbers at random, as evenly over the quantities as their sizes allow, each number once."""
    sizes = {name: int(trace.array(name).size) for name in names}
    wanted = dict.fromkeys(names, 0)
    left, open_names = count, [name for name in names if sizes[name]]
    while left > 0 and open_names:
        generator.shuffle(open_names)
        share = max(1, left // len(open_names))
        for name in open_names[:left]:
            taken = min(share, sizes[name] - wanted[name], left)
            wanted[name] += taken
            left -= taken
        open_names = [name for name in open_names if wanted[name] < sizes[name]]
    found = []
    for name in names:
        shape = trace.array(name).shape
        drawn = np.sort(generator.choice(sizes[name], wanted[name], replace=False)).tolist() if wanted[name] else []
        found += [At(name, tuple(int(i) for i in np.unravel_index(flat, shape))) for flat in drawn]
    return found


def usual(trace: Trace, generator: np.random.Generator) -> list[At]:
    """What is checked unless told otherwise: all that came out, and some of everything on the way to it."""
    names = recomputed_names(trace)
    outputs = [name for name in names if is_output(name)]
    size = sum(trace.array(name).size for name in outputs)
    first = list(every(trace, outputs)) if size <= MOST_OUTPUTS else spread(trace, outputs, MOST_OUTPUTS, generator)
    return [*first, *spread(trace, [name for name in names if name not in outputs], USUAL, generator)]


# --- one pass, and step by step ---------------------------------------------------------------------------------------

# How far the logits of one pass may be from those of decoding step by step, relative to the largest of them. The two do
# the same additions in another order through every layer; no bound is derived, so these are far above what is seen. In
# the engine's arithmetic every sum has one order, and nothing differs.
STEPS_TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 0.5}


@dataclass(frozen=True)
class StepsChecked:
    """How far one pass over the whole translation is from decoding it step by step, with kept keys and values."""

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
    if "tgt.ids" not in trace or machine.mask is not causal or trace.computed or trace.steps:
        return None
    memory_SD = encode(machine, trace.array("src.ids").tolist()) if machine.config.has_encoder else None
    kept, largest, at = Kept(), 0.0, 0
    for step, token in enumerate(trace.array("tgt.ids").tolist()):
        logits_V = decode_step(machine, [token], memory_SD, kept)
        traced_V = trace.array("out.logits")[step]
        if np.array_equal(logits_V, traced_V, equal_nan=True):
            continue
        difference = np.abs(logits_V.astype(np.float64) - traced_V.astype(np.float64))
        distance = float(difference.max() / max(float(np.abs(traced_V).max()), np.finfo(np.float64).tiny))
        if not distance <= largest:  # NaN is the largest
            largest, at = (math.inf if math.isnan(distance) else distance), step
    tolerance = STEPS_TOLERANCE[trace.array("out.logits").dtype.name] if machine.arithmetic is FLOAT else 0.0
    return StepsChecked(int(trace.sizes["T"]), largest, at, tolerance)


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
