"""Judge a translator by behaviour cases, and report the results by topic."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from behaviour.cases import Case
from behaviour.rules import ALWAYS, RULES, Rule, alternatives

Translate = Callable[[Sequence[str]], Sequence[str]]

# Topics that rules guarantee. Their cases must pass with every model.
MECHANISM = frozenset(
    (
        *("addresses", "blank", "code", "dates", "emoji", "layout", "money", "neighbours", "numbers"),
        *("placeholders", "punctuation", "tags", "times"),
    )
)
ENOUGH = 0.95  # the share of all cases that must pass
AMONG = "among"  # the only rule that calls the translator: a batch with these texts must give the same result


@dataclass(frozen=True)
class Result:
    """A case, its translation, and the reasons why it fails. A case without reasons passes."""

    case: Case
    translation: str
    reasons: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.reasons


def judge(translate: Translate, cases: Sequence[Case], always: Sequence[Rule] = ALWAYS) -> list[Result]:
    """Judge all cases. They are translated in one call; cases with neighbours are translated again among them."""
    translations = translate([case.source for case in cases])
    return [
        Result(case, text, tuple(reasons(case, text, translate, always)))
        for case, text in zip(cases, translations, strict=True)
    ]


def reasons(case: Case, translation: str, translate: Translate, always: Sequence[Rule]) -> Iterable[str]:
    for rule in always:
        if found := rule(case.source, translation, ""):
            yield found
    for name, argument in case.must:
        if name == AMONG:
            neighbours = alternatives(argument)
            among = translate([*neighbours, case.source, *neighbours])[len(neighbours)]
            found = None if among == translation else f"among other texts it is “{among}”"
        else:
            found = RULES[name](case.source, translation, argument)
        if found:
            yield found


def share(results: Sequence[Result]) -> float:
    return sum(result.passed for result in results) / max(1, len(results))


def good_enough(results: Sequence[Result]) -> bool:
    return share(results) >= ENOUGH and all(one.passed for one in results if one.case.topic in MECHANISM)


def by_topic(results: Iterable[Result]) -> dict[str, list[Result]]:
    topics: dict[str, list[Result]] = {}
    for result in results:
        topics.setdefault(result.case.topic, []).append(result)
    return topics


def as_text(results: Sequence[Result]) -> str:
    """Return a table of topics, followed by the failures."""
    lines = [f"{'topic':<14}passed"]
    for topic, some in (*by_topic(results).items(), ("all", results)):
        mark = "  mechanism: none may fail" if topic in MECHANISM else ""
        lines.append(f"{topic:<14}{sum(one.passed for one in some):>4} of {len(some):>3}  {share(some):6.1%}{mark}")
    for one in results:
        if not one.passed:
            lines += ["", f"{one.case.id}: {'; '.join(one.reasons)}", f"  {shown(one.case.source)}"]
            lines.append(f"→ {shown(one.translation)}")
    return "\n".join(lines)


def shown(text: str, most: int = 300) -> str:
    """Return a text on one line, with visible escapes and without the middle of a long text."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def as_json(results: Sequence[Result]) -> str:
    topics = {
        topic: {"cases": len(some), "passed": sum(one.passed for one in some), "mechanism": topic in MECHANISM}
        for topic, some in by_topic(results).items()
    }
    cases = [
        {
            **{"id": one.case.id, "topic": one.case.topic, "source": one.case.source, "translation": one.translation},
            "reasons": one.reasons,
        }
        for one in results
    ]
    whole = {"passed": sum(one.passed for one in results), "share": share(results), "enough": good_enough(results)}
    return json.dumps({**whole, "topics": topics, "cases": cases}, ensure_ascii=False, indent=1)
