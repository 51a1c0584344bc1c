"""A whole check of a run: its numbers recomputed, the parameters' file, one pass against step by step; and in words."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vidrio.glass.numbers.trace import Trace, parse_address
from vidrio.glass.proof.checking import (
    Checked,
    StepsChecked,
    check,
    check_following,
    check_steps,
    every,
    how_many,
    recomputed_names,
    spread,
    under,
    usual,
)
from vidrio.glass.proof.receipts import At
from vidrio.glass.proof.stored import FileChecked, check_file
from vidrio.look.blocks import Block, Note
from vidrio.look.changed import BeforeAfter
from vidrio.look.overview import otherwise, warning
from vidrio.look.receipt import compared_data
from vidrio.look.run import Look

NAMED = 8  # exceptions that are named
PATIENCE = 1.0  # seconds between two words about progress

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Which:
    """Which numbers to recompute; none of these: the usual ones."""

    addresses: Sequence[str] = ()
    random: int | None = None
    every: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a check found."""

    seen: Look
    changes: list[str]
    checked: Checked
    computed: int  # numbers of the run that could be recomputed
    file: FileChecked
    steps: StepsChecked | None
    following: list[str]  # ids that are not what was chosen, or not the token they stand for
    seconds: float

    @property
    def agrees(self) -> bool:
        steps_agree = self.steps is None or self.steps.agrees
        return not (self.checked.exceptions or self.file.wrong or self.following) and steps_agree


def run(tried: BeforeAfter, which: Which, progress: Progress | None = None) -> Outcome:
    """Recompute, compare with the file, compare with decoding step by step."""
    seen, before, began = tried.after, tried.before.model, time.perf_counter()
    trace = seen.trace
    chosen = [] if seen.empty else _chosen(trace, which)
    checked = check(trace, _told(chosen, progress) if progress else chosen)
    return Outcome(
        seen=seen,
        changes=[change.asked for change in tried.whatif.changes],
        checked=checked,
        computed=0 if seen.empty else how_many(trace),
        # The machine as it was before any what-if: that one has the file's parameters.
        file=check_file(before.path / "model.safetensors", before.machine.parameters),
        steps=None if seen.empty else check_steps(trace),
        following=check_following(trace),
        seconds=time.perf_counter() - began,
    )


def _chosen(trace: Trace, which: Which) -> list[At]:
    generator = np.random.default_rng(which.seed)
    if which.every:
        return list(every(trace, recomputed_names(trace)))
    if which.random is not None:
        return spread(trace, recomputed_names(trace), which.random, generator)
    if which.addresses:
        found = [under(trace, parse_address(address)) for address in which.addresses]
        return list(dict.fromkeys(at for ats in found for at in ats))
    return usual(trace, generator)


def _told(chosen: list[At], progress: Progress) -> Iterator[At]:
    """The same numbers; now and then a word about how far it is."""
    began = last = time.monotonic()
    for done, at in enumerate(chosen):
        if time.monotonic() - last > PATIENCE:
            last = time.monotonic()
            progress(done, len(chosen))
        yield at
    if last > began:
        progress(len(chosen), len(chosen))


# --- in words ---------------------------------------------------------------------------------------------------------


def tell(outcome: Outcome) -> Iterator[Block]:
    """What was checked and what came of it, the verdict last."""
    seen, checked = outcome.seen, outcome.checked
    yield Note(f"{seen.text} → {seen.translation or '(nothing)'}", hang=2)
    if outcome.changes:
        yield Note(f"what if: {' '.join(outcome.changes)}", hang=2)
    if seen.otherwise is not None:
        yield warning(otherwise(seen))
    yield ""
    if seen.empty:
        why = "Translating copies this text" if seen.copied else "The text is empty"
        yield f"{why}: nothing was computed, so there is nothing to recompute."
    else:
        yield from _recomputed(outcome)
    yield _file(outcome)
    yield from _steps(outcome)
    if outcome.following:
        yield Note(f"WRONG: these ids do not follow: {', '.join(outcome.following[:NAMED])}", hang=2)
    if checked.exceptions:
        yield ""
        yield f"{len(checked.exceptions):,} numbers do not follow from their inputs. The worst:"
        for at, result in checked.worst(NAMED):
            yield f"  {at}"
            yield f"    model {result.model!r}, recomputed {result.recomputed!r}"
            yield f"    difference {result.difference:.2e}, rounding explains up to {result.tolerance:.1e}"
    yield ""
    yield f"{'Everything agrees.' if outcome.agrees else 'NOT everything agrees.'} {outcome.seconds:.1f} s"


def _recomputed(outcome: Outcome) -> Iterator[Block]:
    checked = outcome.checked
    yield Note(
        f"Recomputed  {checked.count:,} of the run's {outcome.computed:,} numbers, in {len(checked.quantities):,} "
        f"{'quantity' if len(checked.quantities) == 1 else 'quantities'}, each from its inputs, with Python's floats",
        hang=12,
    )
    largest = f"largest difference {checked.largest:.2e}, at {checked.largest_at}"
    yield f"{'':12}{largest if checked.largest_at else 'no difference at all'}"
    if checked.share_at is not None:
        text = f"at most {100 * checked.share:.0f} % of what rounding can explain, at {checked.share_at}"
        yield Note(text, indent=12)
    if checked.edited:
        text = f"{checked.edited:,} of them had another number put in their place by the what-if"
        yield Note(text, indent=12)


def _file(outcome: Outcome) -> Note:
    file = outcome.file
    if file.wrong:
        return Note(f"WRONG: not as in model.safetensors: {', '.join(file.wrong[:NAMED])}", hang=2)
    return Note(
        f"Parameters  {file.numbers:,} in {file.tensors:,} tensors, each bit as in model.safetensors"
        + ", before the what-if" * bool(outcome.changes),
        hang=12,
    )


def _steps(outcome: Outcome) -> Iterator[Block]:
    steps = outcome.steps
    if steps is not None:
        yield Note(
            f"{'WRONG: ' * (not steps.agrees)}One pass    over all {steps.steps} steps gives the logits of decoding "
            f"step by step, up to {steps.largest:.1e} of the largest (allowed: {steps.tolerance:g})",
            hang=12,
        )
    elif outcome.seen.trace.steps:
        yield Note(
            "One pass    would show something else than the steps: each step was run, and checked, by itself",
            hang=12,
        )


def as_data(outcome: Outcome) -> dict[str, Any]:
    """The same for other programs."""
    checked = outcome.checked
    return {
        "text": outcome.seen.text,
        "translation": outcome.seen.translation,
        "changes": outcome.changes,
        "agrees": outcome.agrees,
        "recomputed": checked.count,
        "of": outcome.computed,
        "quantities": len(checked.quantities),
        "largest_difference": checked.largest,
        "largest_at": str(checked.largest_at) if checked.largest_at else None,
        "largest_share_of_tolerance": checked.share,
        "largest_share_at": str(checked.share_at) if checked.share_at else None,
        "edited": checked.edited,
        "exceptions": [
            {"address": str(at), **compared_data(result)} for at, result in checked.worst(len(checked.exceptions))
        ],
        "parameters": asdict(outcome.file),
        "one_pass_against_steps": outcome.steps and asdict(outcome.steps),
        "wrong_ids": outcome.following,
        "seconds": outcome.seconds,
    }
