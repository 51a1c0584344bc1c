"""A whole check of a run: its numbers recomputed, the parameters' file, one pass against step by step; and in words."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vidrio.glass.checking import Checked, StepsChecked, check, check_following, check_steps
from vidrio.glass.stored import FileChecked, check_file
from vidrio.glass.trace import parse_address
from vidrio.look.changed import BeforeAfter
from vidrio.look.receipt import compared_data
from vidrio.look.run import Look
from vidrio.look.writing import note

NAMED = 8  # exceptions that are named


@dataclass(frozen=True)
class Outcome:
    """What a check found."""

    seen: Look
    changes: list[str]
    checked: Checked
    file: FileChecked
    steps: StepsChecked | None
    following: list[str]  # ids that are not what was chosen, or not the token they stand for
    seconds: float

    @property
    def agrees(self) -> bool:
        steps_agree = self.steps is None or self.steps.agrees
        return not (self.checked.wrong or self.file.wrong or self.following) and steps_agree


def run(tried: BeforeAfter, addresses: Sequence[str] = ()) -> Outcome:
    """Recompute, compare with the file, compare with decoding step by step."""
    seen, before, began = tried.after, tried.before.model, time.perf_counter()
    trace = seen.trace
    return Outcome(
        seen=seen,
        changes=[change.asked for change in tried.whatif.changes],
        checked=Checked() if seen.empty else check(trace, list(map(parse_address, addresses))),
        # The machine as it was before any what-if: that one has the file's parameters.
        file=check_file(before.path / "model.safetensors", before.machine.parameters),
        steps=None if seen.empty else check_steps(trace),
        following=check_following(trace),
        seconds=time.perf_counter() - began,
    )


# --- in words ---------------------------------------------------------------------------------------------------------


def view(outcome: Outcome) -> Iterator[str]:
    """What was checked and what came of it, the verdict last."""
    seen, checked = outcome.seen, outcome.checked
    yield note(f"{seen.text} → {seen.translation or '(nothing)'}", hang=2)
    if outcome.changes:
        yield note(f"what if: {' '.join(outcome.changes)}", hang=2)
    yield ""
    if seen.empty:
        why = "Translating copies this text" if seen.copied else "The text is empty"
        yield f"{why}: nothing was computed, so there is nothing to recompute."
    else:
        yield from _recomputed(outcome)
    yield _file(outcome)
    yield from _steps(outcome)
    if outcome.following:
        yield note(f"WRONG: these ids do not follow: {', '.join(outcome.following[:NAMED])}", hang=2)
    if checked.wrong:
        yield ""
        yield f"{checked.wrong:,} numbers do not follow from their inputs. The worst:"
        for at, result in checked.worst(NAMED):
            yield f"  {at}"
            yield f"    model {result.model!r}, recomputed {result.recomputed!r}"
            yield f"    difference {result.difference:.2e}, rounding explains up to {result.tolerance:.1e}"
    yield ""
    yield f"{'Everything agrees.' if outcome.agrees else 'NOT everything agrees.'} {outcome.seconds:.1f} s"


def _recomputed(outcome: Outcome) -> Iterator[str]:
    checked = outcome.checked
    quantities = f"{checked.quantities:,} {'quantity' if checked.quantities == 1 else 'quantities'}"
    yield note(f"Recomputed  {checked.count:,} numbers in {quantities}, each from its inputs", hang=12)
    largest = f"largest difference {checked.largest:.2e}, at {checked.largest_at}"
    yield f"{'':12}{largest if checked.largest_at else 'no difference at all'}"
    if checked.share_at is not None:
        text = f"at most {100 * checked.share:.0f} % of what rounding can explain, at {checked.share_at}"
        yield note(text, indent=12)
    if checked.edited:
        text = f"{checked.edited:,} of them had another number put in their place by the what-if"
        yield note(text, indent=12)


def _file(outcome: Outcome) -> str:
    file = outcome.file
    if file.wrong:
        return note(f"WRONG: not as in model.safetensors: {', '.join(file.wrong[:NAMED])}", hang=2)
    return note(
        f"Parameters  {file.numbers:,} in {file.tensors:,} tensors, each bit as in model.safetensors"
        + ", before the what-if" * bool(outcome.changes),
        hang=12,
    )


def _steps(outcome: Outcome) -> Iterator[str]:
    steps = outcome.steps
    if steps is not None:
        yield note(
            f"{'WRONG: ' * (not steps.agrees)}One pass    over all {steps.steps} steps gives the logits of decoding "
            f"step by step, up to {steps.largest:.1e} of the largest (allowed: {steps.tolerance:g})",
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
        "quantities": checked.quantities,
        "wrong": checked.wrong,
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
