"""What came of recomputing a run, in words."""

from collections.abc import Iterator

from vidrio.glass.checking import Checked
from vidrio.look.changed import BeforeAfter
from vidrio.look.writing import note

NAMED = 8  # exceptions that are named


def view(tried: BeforeAfter, checked: Checked) -> Iterator[str]:
    """What was checked and what came of it, the verdict last."""
    seen, changes = tried.after, tried.whatif.changes
    yield note(f"{seen.text} → {seen.translation or '(nothing)'}", hang=2)
    if changes:
        yield note(f"what if: {' '.join(change.asked for change in changes)}", hang=2)
    yield ""
    if seen.empty:
        why = "Translating copies this text" if seen.copied else "The text is empty"
        yield f"{why}: nothing was computed, so there is nothing to recompute."
        return
    quantities = f"{checked.quantities:,} {'quantity' if checked.quantities == 1 else 'quantities'}"
    yield note(f"Recomputed  {checked.count:,} numbers in {quantities}, each from its inputs", hang=12)
    if checked.share_at is not None:
        share = f"at most {100 * checked.share:.0f} % of what rounding can explain, at {checked.share_at}"
        yield note(f"differences: {share}", indent=12)
    if checked.edited:
        yield note(f"{checked.edited:,} of them had another number put in their place by the what-if", indent=12)
    if checked.wrong:
        yield f"\n{checked.wrong:,} numbers do not follow from their inputs. The worst:"
        for at, result in checked.worst(NAMED):
            yield f"  {at}"
            yield f"    model {result.model!r}, recomputed {result.recomputed!r}"
            yield f"    difference {result.difference:.2e}, rounding explains up to {result.tolerance:.1e}"
    yield f"\n{'NOT everything agrees.' if checked.wrong else 'Everything agrees.'}"
