"""List the sentences of a file whose translations were changed by a remedy, for manual review.

    python benchmarks/remedied.py [--direction en-es] [--file newstest2012] [--lines 1500]

For each of these sentences, the script prints the remedy, the facts that were lost (-) or invented (+), the source, the
first hypothesis (None if it lost a placeholder) and the final translation. The last line counts the changes by remedy.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from shared import ENGLISH_SPANISH
from vidrio.text.account import Faults
from vidrio.translate import translator as module
from vidrio.translate.judging import Attempt, Candidate, Judge, Query, chosen
from vidrio.translate.remedies import Plan, combine

AT_ONCE = 250  # lines per batch


def shown(account: Faults) -> str:
    return " ".join(f"{sign}{one.kind}:{one.key}" for sign, facts in zip("-+", account, strict=True) for one in facts)


class Changes:
    """Collects the remedy, the faults and the first hypothesis of each changed sentence."""

    def __init__(self) -> None:
        self.first: dict[str, str | None] = {}
        self.changed: dict[str, tuple[str, str]] = {}

    def chosen(self, query: Query, found: Sequence[Candidate]) -> Attempt:
        attempt, source = chosen(query, found), query.masked.source
        if source not in self.first:
            self.first[source] = found[0].text
            if attempt.best is not found[0]:
                self.changed[source] = ("beam", shown(found[0].account))
        return attempt

    def combine(self, before: Attempt, plan: Plan, found: Sequence[Attempt], judge: Judge) -> Attempt:
        after, source = combine(before, plan, found, judge), before.query.masked.source
        if after != before:
            whole = len(plan.queries) == 1 and plan.queries[0][1].masked.source == source
            how = "forced" if whole and plan.queries[0][1].options.prefix else "second search" if whole else "parts"
            self.changed[source] = (how, shown(before.best.account))
        return after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--direction", default="en-es", choices=["en-es", "es-en"])
    parser.add_argument("--file", default="newstest2012")
    parser.add_argument("--lines", type=int, default=1500)
    parser.add_argument("--data", type=Path, default=ENGLISH_SPANISH)
    given = parser.parse_args()
    [path] = given.data.rglob(f"{given.file}*.{given.direction[:2]}")
    lines = path.read_text(encoding="utf-8").splitlines()[: given.lines]
    changes = Changes()
    module.chosen, module.combine = changes.chosen, changes.combine
    translator = module.Translator.load(given.direction)
    for start in range(0, len(lines), AT_ONCE):
        seen = {*changes.changed}
        found = translator.translate(lines[start : start + AT_ONCE])
        for source in changes.changed.keys() - seen:
            how, why = changes.changed[source]
            text = next((one.text for one in found if source in one.source), "(a part of a sentence)")
            print(f"[{how}] {why}\n  {source}\n  {changes.first[source]}\n  {text}")
    print(
        f"{given.direction} {given.file}, {len(lines)} lines:",
        dict(Counter(how for how, _ in changes.changed.values())),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
