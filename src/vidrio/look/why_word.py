"""Explains why a word was chosen over a rival, as text or JSON: the parts of the difference between their logits."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np

from vidrio.errors import InputError
from vidrio.look.chosen_word import decide, decide_step, names_of
from vidrio.look.interventions import source_words
from vidrio.look.layer_by_layer import After, after_each, overtakes
from vidrio.look.parts import CHANGED, ROUNDING, SOURCE, TARGET, Decision, Neuron, Part, columns, neurons
from vidrio.look.run import Look
from vidrio.look.token_sums import token_sums
from vidrio.look.writing import PRECISION, cut, note, number, table, visible

NEURONS = 5  # number of hidden units to list, largest contributions first
PUSHED = 3  # number of tokens to list whose logits a hidden unit raises, or lowers, the most
SHOWN = 6  # number of groups of parts to print


class Origin(NamedTuple):
    """Where a group of parts comes from: a token, the feed-forward networks, rounding, or biases and positions."""

    name: str
    side: str = ""
    row: int = -1


@dataclass(frozen=True, repr=False)
class Why:
    """Explains why a word was chosen over a rival, as an exact sum. `str()` returns the report of `vidrio why`."""

    seen: Look
    decision: Decision

    @property
    def difference(self) -> float:
        """The word's logit minus its rival's."""
        return self.decision.difference

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that sum to the difference."""
        return self.decision.parts

    @cached_property
    def origins(self) -> dict[Origin, list[Part]]:
        """The parts grouped by origin, largest sum first."""
        groups: dict[Origin, list[Part]] = defaultdict(list)
        for part in self.parts:
            groups[_origin(self.seen, part)].append(part)
        return dict(sorted(groups.items(), key=lambda group: -abs(_sum(group[1]))))

    @cached_property
    def tokens(self) -> list[tuple[Origin, float]]:
        """The difference as a sum over the input tokens (`token_sums.py`). Empty after a what-if."""
        trace, made = self.seen.trace, self.decision
        if trace.machine.changes or trace.machine.without or trace.computed:
            return []
        found = token_sums(trace, [made.row], columns(trace, [made.this]) - columns(trace, [made.that]))
        sides = (
            (SOURCE, trace.source_tokens, found.source_NS),
            (TARGET, trace.target_tokens[: made.row + 1], found.target_NT),
        )
        sums = [
            (Origin(token, side, row), float(value))
            for side, tokens, values in sides
            for row, (token, value) in enumerate(zip(tokens, values[0], strict=False))
        ]
        output = _sum([part for part in self.parts if part.name == "out.b"])
        sums.append((Origin("biases"), float(found.biases_N[0]) + output))
        return [*sums, (Origin(ROUNDING), made.difference - math.fsum(value for _, value in sums))]

    @cached_property
    def layers(self) -> list[After]:
        """What the decoder would predict if it stopped after each sub-layer. Empty for a classifier."""
        made = self.decision
        return after_each(self.seen.trace, made.row, made.this, made.that) if self.seen.chosen_ids else []

    def __str__(self) -> str:
        return "\n".join(view(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def why_word(seen: Look, word: str, rival: str | None = None) -> Why:
    """Explain why a word was chosen over `rival`, by default the runner-up at the word's first step."""
    return Why(seen, decide(seen, word, rival))


def why_step(seen: Look, row: int, rival: str | None = None) -> Why:
    """Explain why a token was chosen at a step over `rival`, a token or a word. The default rival is the runner-up."""
    if seen.empty:
        raise InputError("nothing was computed, so no word was chosen", found="the model has no input for this text")
    return Why(seen, decide_step(seen, row, rival))


# --- as text ----------------------------------------------------------------------------------------------------------


def view(why: Why, precision: int = PRECISION, *, every: bool = False) -> Iterator[str]:
    """Format the difference and its parts, largest first. Unless `every` is True, parts are grouped by origin."""
    seen, made = why.seen, why.decision
    this, that = (visible(token_name(seen, token)) for token in (made.this, made.that))
    yield note(f"{seen.text} → {seen.translation}", hang=2)
    row = f" after row {made.row}" if seen.model.config.has_decoder else ""
    count = len(made.parts)
    yield note(f"{this} and not {that}{row}: {number(made.difference, precision)} is the sum of {count} parts", hang=2)
    yield ""
    if every:
        rows = [[part.name, visible(_read(seen, part)), number(part.value, precision)] for part in _sorted(made.parts)]
        yield table(rows, align="ll.")
        return
    groups = list(why.origins.items())
    rows = [
        [cut(_described(origin), 36), number(_sum(parts), precision), _mostly(parts, precision)]
        for origin, parts in groups[:SHOWN]
    ]
    if rest := [part for _, parts in groups[SHOWN:] for part in parts]:
        rows.append([f"{len(groups) - SHOWN} others", number(_sum(rest), precision)])
    yield table(rows, align="l.l", indent=2)
    yield from _layers(why)
    if why.tokens:
        yield ""
        largest = sorted(why.tokens, key=lambda one: -abs(one[1]))[:SHOWN]
        sums = [f"{' '.join(_described(origin).split())} {number(value, precision)}" for origin, value in largest]
        yield note(f"Carried down to the tokens, the largest: {'; '.join(sums)}", hang=2)


def _layers(why: Why) -> Iterator[str]:
    """Format the most probable tokens after each sub-layer, and the point at which the word overtakes its rival."""
    if not (found := why.layers):
        return
    vocabulary = why.seen.trace.vocabulary
    yield ""
    yield "If the decoder stopped after:"
    width = max(len(after.name) for after in found)
    for after in found:
        likely = ", ".join(f"{visible(vocabulary[i])} {p:.0%}" for i, p in after.tokens)
        yield note(f"{after.name:{width}}  {likely}", indent=2, hang=width + 4)
    if name := overtakes(found):
        this, that = (visible(vocabulary[token]) for token in (why.decision.this, why.decision.that))
        yield note(f"{this} stays above {that} from {name} on.")


def _mostly(parts: Sequence[Part], precision: int) -> str:
    """Format the name and value of the largest part, or return "" if there is only one part."""
    largest = _sorted(parts)[0]
    return f"most: {largest.name} {number(largest.value, precision)}" if len(parts) > 1 else ""


def _origin(seen: Look, part: Part) -> Origin:
    if part.reads:
        return Origin(_read(seen, part), part.reads, part.row)
    if part.name.endswith(".ffn"):
        return Origin("feed-forward networks")
    if part.name.endswith(".whole"):
        return Origin("rounding to int8")
    return Origin(part.name if part.name in (ROUNDING, CHANGED) else "biases and positions")


def _described(origin: Origin) -> str:
    if not origin.side:
        return origin.name
    return f"{origin.name}  ({'source' if origin.side == SOURCE else 'written before'}, {origin.row})"


def _sum(parts: Sequence[Part]) -> float:
    return math.fsum(part.value for part in parts)


def _read(seen: Look, part: Part) -> str:
    if not part.reads:
        return ""
    return str((seen.trace.source_tokens if part.reads == SOURCE else seen.trace.target_tokens)[part.row])


def token_name(seen: Look, token: int) -> str:
    return seen.trace.vocabulary[token] if seen.model.config.has_decoder else names_of(seen)[token]


def _sorted(parts: Sequence[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: -abs(part.value))


# --- as data ----------------------------------------------------------------------------------------------------------


def data(why: Why) -> dict[str, Any]:
    """Return the explanation as JSON: the parts, their sums by origin and by source word, and the top hidden units."""
    seen, made = why.seen, why.decision
    by_row = {origin.row: _sum(parts) for origin, parts in why.origins.items() if origin.side == SOURCE}
    return {
        "text": seen.text,
        "translation": seen.translation,
        "row": made.row,
        "this": token_name(seen, made.this),
        "that": token_name(seen, made.that),
        "difference": made.difference,
        "origins": [
            {**_place(origin.side, origin.row), "name": origin.name, "value": _sum(parts)}
            for origin, parts in why.origins.items()
        ],
        "words": [
            {"word": word.text, "start": word.start, "end": word.end, "value": math.fsum(by_row[r] for r in word.rows)}
            for word in source_words(seen)
        ]
        if by_row
        else [],
        "parts": [
            {
                "name": part.name + (f"[{part.row}]" if part.reads else ""),
                "value": part.value,
                **_place(part.reads, part.row),
                "token": _read(seen, part) or None,
                "origin": _origin(seen, part).name,
            }
            for part in made.parts
        ],
        "neurons": [_neuron(seen, one) for one in neurons(seen.trace, made, NEURONS)],
        "layers": [
            {
                "after": after.name,
                "difference": after.difference,
                "tokens": [{"token": seen.trace.vocabulary[i], "prob": p} for i, p in after.tokens],
            }
            for after in why.layers
        ],
    }


def tokens_data(why: Why) -> list[dict[str, Any]]:
    """Return the sum over the input tokens as JSON. It is not part of `data`, because it takes longer."""
    return [{**_place(origin.side, origin.row), "name": origin.name, "value": value} for origin, value in why.tokens]


def _place(side: str, row: int) -> dict[str, Any]:
    """Return the side and row of the token that a part comes from, or None for both."""
    return {"side": side or None, "row": row if side else None}


def _neuron(seen: Look, one: Neuron) -> dict[str, Any]:
    order = np.argsort(-one.pushes)
    up, down = (
        [seen.trace.vocabulary[i] for i in some.tolist()] for some in (order[:PUSHED], order[: -PUSHED - 1 : -1])
    )
    return {"name": f"{one.name}.active[{one.unit}]", "value": one.value, "up": up, "down": down}
