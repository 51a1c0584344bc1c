"""Displays the effects of interventions on a word and on the translation, as text or JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from vidrio.look.interventions import CausalMap, Without
from vidrio.look.parts import SOURCE
from vidrio.look.why_word import Why, token_name
from vidrio.look.writing import PRECISION, cut, note, number, table, visible

SHOWN = 10  # number of heads to list


def view(why: Why, name: str, found: Sequence[Without] | CausalMap, precision: int = PRECISION) -> Iterator[str]:
    """Format the effects of deleting or hiding words, switching off heads, or replacing rows. `name` is the JSON key of
    the intervention."""
    if isinstance(found, CausalMap):
        yield from _map(why, found, precision)
        return
    losing = f"log-probability that {_this(why)} loses, and the translation, with"
    if name == "heads":
        differ = sum(one.translation != why.seen.translation for one in found)
        total, found = len(found), sorted(found, key=lambda one: -abs(one.losses[why.decision.row]))[:SHOWN]
        yield note(
            f"{losing} one head off; the {len(found)} largest of {total}, of which {differ} change the translation:"
        )
    else:
        yield f"{losing} each word {name}:"
    rows = [[visible(one.what), number(one.losses[why.decision.row], precision), ""] for one in found]
    lines = table(rows, align="l.l", indent=2).splitlines() if rows else []
    for line, one in zip(lines, found, strict=True):
        yield note(f"{line}  {one.translation or '(nothing)'}", hang=4)


def _map(why: Why, found: CausalMap, precision: int) -> Iterator[str]:
    """Format how much each replaced row changes the difference, with one column per layer and one line per token."""
    that = visible(token_name(why.seen, why.decision.that))
    yield note(
        f"{_this(why)} minus {that} is {number(found.before, precision)} here and {number(found.of_other, precision)} "
        f"beside “{found.other}”. With one row of that run, it moves by:",
        hang=2,
    )
    for side in dict.fromkeys(layer.side for layer in found.layers):
        layers = [layer for layer in found.layers if layer.side == side]
        rows = [
            [cut(token, 18), *(f"{layer.differences[n] - found.before:.2f}" for layer in layers)]
            for n, token in enumerate(_tokens(why, found, side))
        ]
        yield table(rows, ["", *(layer.layer for layer in layers)], "l" + "r" * len(layers), indent=2)


def _this(why: Why) -> str:
    return visible(token_name(why.seen, why.decision.this))


def _tokens(why: Why, found: CausalMap, side: str) -> list[str]:
    """Return the token of each row, and the other run's token if it differs."""
    trace = why.seen.trace
    if side != SOURCE:
        return list(trace.target_tokens[: why.decision.row + 1])
    pairs = zip(trace.source_tokens, found.other_tokens, strict=True)
    return [here if here == there else f"{here} ← {there}" for here, there in pairs]


def as_data(why: Why, found: Sequence[Without] | CausalMap) -> Any:
    """Return the causal map as JSON or, for each word or head, the new translation and how much the log-probabilities
    of the explained token and of all tokens drop."""
    if isinstance(found, CausalMap):
        return _map_data(why, found)
    return [
        {
            "name": one.what,
            "translation": one.translation,
            "loss": one.losses[why.decision.row],
            "losses": list(one.losses),
        }
        for one in found
    ]


def _map_data(why: Why, found: CausalMap) -> dict[str, Any]:
    """Return the causal map (layers × tokens) as JSON data."""
    return {
        "text": why.seen.text,
        "other": found.other,
        "translation": why.seen.translation,
        "row": why.decision.row,
        "this": token_name(why.seen, why.decision.this),
        "that": token_name(why.seen, why.decision.that),
        "difference": found.before,
        "other_difference": found.of_other,
        "source": list(why.seen.trace.source_tokens),
        "other_source": list(found.other_tokens),
        "target": list(why.seen.trace.target_tokens[: why.decision.row + 1]),
        "layers": [
            {"name": one.layer, "side": one.side, "moved": [value - found.before for value in one.differences]}
            for one in found.layers
        ],
    }
