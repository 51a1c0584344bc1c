"""A whole check of a run, in words: its numbers recomputed, its parameters compared with the file."""

from collections.abc import Iterator
from dataclasses import dataclass

from vidrio.glass.checking import Checked, check
from vidrio.glass.stored import not_as_stored
from vidrio.look.changed import BeforeAfter
from vidrio.look.writing import note
from vidrio.model.parameters import count

NAMED = 8  # exceptions that are named


@dataclass(frozen=True)
class Outcome:
    """What a check found."""

    tried: BeforeAfter
    checked: Checked
    not_as_stored: list[str]  # parameters that are not as the model's file has them

    @property
    def agrees(self) -> bool:
        return not (self.checked.wrong or self.not_as_stored)


def run(tried: BeforeAfter) -> Outcome:
    """Recompute, and compare with the file."""
    seen, before = tried.after, tried.before.model
    return Outcome(
        tried,
        Checked() if seen.empty else check(seen.trace),
        # The machine as it was before any what-if: that one has the file's parameters.
        not_as_stored(before.path / "model.safetensors", before.machine.parameters),
    )


def view(outcome: Outcome) -> Iterator[str]:
    """What was checked and what came of it, the verdict last."""
    seen, checked, changes = outcome.tried.after, outcome.checked, outcome.tried.whatif.changes
    yield note(f"{seen.text} → {seen.translation or '(nothing)'}", hang=2)
    if changes:
        yield note(f"what if: {' '.join(change.asked for change in changes)}", hang=2)
    yield ""
    if seen.empty:
        why = "Translating copies this text" if seen.copied else "The text is empty"
        yield f"{why}: nothing was computed, so there is nothing to recompute."
    else:
        yield from _recomputed(checked)
    if outcome.not_as_stored:
        yield note(f"WRONG: not as in model.safetensors: {', '.join(outcome.not_as_stored[:NAMED])}", hang=2)
    else:
        numbers = f"{count(outcome.tried.before.model.config):,} numbers, each as in model.safetensors"
        yield note(f"Parameters  {numbers}{', before the what-if' * bool(changes)}", hang=12)
    if checked.wrong:
        yield f"\n{checked.wrong:,} numbers do not follow from their inputs. The worst:"
        for at, result in checked.worst(NAMED):
            yield f"  {at}"
            yield f"    model {result.model!r}, recomputed {result.recomputed!r}"
            yield f"    difference {result.difference:.2e}, rounding explains up to {result.tolerance:.1e}"
    yield f"\n{'Everything agrees.' if outcome.agrees else 'NOT everything agrees.'}"


def _recomputed(checked: Checked) -> Iterator[str]:
    quantities = f"{checked.quantities:,} {'quantity' if checked.quantities == 1 else 'quantities'}"
    yield note(f"Recomputed  {checked.count:,} numbers in {quantities}, each from its inputs", hang=12)
    if checked.share_at is not None:
        share = f"at most {100 * checked.share:.0f} % of what rounding can explain, at {checked.share_at}"
        yield note(f"differences: {share}", indent=12)
    elif not checked.wrong:
        yield note("no difference at all", indent=12)
    if checked.edited:
        yield note(f"{checked.edited:,} of them had another number put in their place by the what-if", indent=12)
