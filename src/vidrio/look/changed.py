"""A run with something changed beside the run before: what became of the text and of the numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from vidrio.glass.whatif.comparison import Comparison, compare
from vidrio.glass.whatif.whatif import WhatIf, parse
from vidrio.hypothesis import Options
from vidrio.look.blocks import Block, Note, Table
from vidrio.look.choosing import is_about_the_search, searching
from vidrio.look.overview import otherwise
from vidrio.look.run import LoadedModel, Look, Printed, look
from vidrio.look.writing import PRECISION, cut, number
from vidrio.search import Tree


@dataclass(frozen=True)
class BeforeAfter:
    """Two runs on the same text."""

    before: Look
    after: Look
    whatif: WhatIf

    @staticmethod
    def of_one(run: Look) -> "BeforeAfter":
        """A run without changes."""
        return BeforeAfter(run, run, WhatIf())

    @cached_property
    def compared(self) -> Comparison:
        return compare(self.before.trace, self.after.trace, self.whatif)


def look_changed(
    model: LoadedModel,
    text: str,
    asked: Sequence[tuple[str, str]],
    *,
    options: Options | None = None,
    target: Sequence[int] | Printed | None = None,
    tree: Tree | None = None,
) -> BeforeAfter:
    """Run a text, make the changes, run it again (`tree` records that search). Without changes both are one run."""
    before = look(model, text, options=options, target=target, tree=None if asked else tree)
    if not asked or before.empty:
        return BeforeAfter.of_one(before)
    forced = None if isinstance(target, Printed) else target  # a changed machine finds a translation of its own
    return with_changes(before, model, asked, forced, tree)


def with_changes(
    before: Look,
    model: LoadedModel,
    asked: Sequence[tuple[str, str]],
    target: Sequence[int] | None = None,
    tree: Tree | None = None,
) -> BeforeAfter:
    """The same text again, with the changes made."""
    about_search = [change for change in asked if is_about_the_search(change)]
    how = searching(about_search, model, before.options)
    whatif = parse([change for change in asked if change not in about_search], before.trace)
    machine, change = whatif.apply(model.machine)
    changed = replace(model, machine=machine, config=machine.config)
    with np.errstate(all="ignore"):  # NaN and infinities are what one came to see
        after = look(changed, before.text, options=how.options, change=change, target=how.target or target, tree=tree)
    return BeforeAfter(before, after, WhatIf((*how.changes, *whatif.changes)))


def tell(tried: BeforeAfter, precision: int = PRECISION) -> Iterator[Block]:
    """The text before and after, each layer's largest change, the next word's probabilities, the first NaN."""
    if tried.before.empty:
        yield "The text is empty: nothing was computed, so nothing can change."
        return
    compared = tried.compared
    yield "What if"
    for change in tried.whatif.changes:
        yield Note(f"{change.asked}: {change.says}", indent=2, hang=4)
    for note in compared.notes:
        yield Note(f"! {note}", indent=2, hang=4)
    for word, seen in (("before", tried.before), ("after", tried.after)):
        text = seen.translation or "(nothing)"
        if seen.stopped:
            text += " … then no word could be chosen: the numbers were NaN or infinite"
        yield Note(f"{word:6}  {text}", indent=2, hang=10)
        if seen.otherwise is not None:
            yield Note(f"! {otherwise(seen, precision)}", indent=8, hang=10)
    for what, address in (("first NaN", compared.first_nan), ("first infinity", compared.first_infinite)):
        if address is not None:
            yield f"  {what}: {address}"
    yield ""
    rows = [
        [
            layer,
            _by(changed.largest, precision),
            cut(changed.address, 32),
            _both(changed.before, changed.after, precision),
        ]
        for layer, changed in compared.layers
        if changed.largest != 0
    ]
    if not rows:
        yield "Nothing changed: every number is the same."
    else:
        yield Note(f"The largest change in each layer{_over(compared)}")
        yield Table(rows, ["layer", "by", "at", "before → after"], "l.")
    if compared.kl:
        shown = ", ".join(number(kl, precision) for kl in compared.kl[:8]) + ", …" * (len(compared.kl) > 8)
        yield ""
        what = "next word's probabilities moved, step by step" if compared.shared_steps else "probabilities moved"
        yield Note(f"How far the {what} (KL, in nats): {shown}", hang=2)
    if compared.only_before:
        left = len(compared.only_before) - 4
        names = ", ".join(compared.only_before[:4]) + f" and {left} more" * (left > 0)
        yield Note(f"No longer computed: {names}", hang=2)


def _over(compared: Comparison) -> str:
    """Which decoding steps are compared: those that saw the same words."""
    steps, whole = compared.shared_steps, len(compared.tokens_before)
    if steps == 0 or compared.tokens_before == compared.tokens_after:
        return ""
    return f", over the first {'step' if steps == 1 else f'{steps} steps'} of {whole}: later ones saw other words"


def _by(difference: float, precision: int) -> str:
    return "became NaN" if np.isnan(difference) else number(difference, precision)


def _both(before: float, after: float, precision: int) -> str:
    return f"{number(before, precision)} → {number(after, precision)}"


def as_data(tried: BeforeAfter) -> dict[str, Any]:
    """The same for JSON, with every quantity's largest change."""
    compared = asdict(tried.compared)
    layers = [{"layer": layer, **changed} for layer, changed in compared.pop("layers")]
    return {
        "changes": [{"asked": change.asked, "says": change.says} for change in tried.whatif.changes],
        "before": tried.before.translation,
        "after": tried.after.translation,
        "stopped": tried.after.stopped,
        **compared,
        "layers": layers,
    }
