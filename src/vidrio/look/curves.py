"""How a run learned: its metrics.jsonl as curves, and every validation as a row."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.look.blocks import Beside, Block, Curve, Curves, Fold, Rows, Table, Title, Words
from vidrio.look.writing import clip, clock, minute_at, number

MOST_POINTS = 240  # of one curve; more are drawn as means of neighbours
ROWS = 40  # validations shown
AGES = 8  # of the sample translations
NAMES = {"loss": "loss", "nll": "loss", "bleu": "BLEU", "chrf": "chrF", "accuracy": "accuracy"}
NO_SCORES = ("kind", "step", "epoch", "best", "seconds")

Record = dict[str, Any]


def metrics(run: Path) -> list[Record]:
    """The lines of metrics.jsonl; a half-written last one is left out."""
    path = run / "metrics.jsonl"
    records: list[Record] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("step"), int):
            records.append(record)
    return records


def panels(records: Sequence[Record]) -> Iterator[Block]:
    """Loss, scores, learning rate and speed against steps and minutes."""
    steps = [r for r in records if r.get("kind") == "step"]
    validations = [r for r in records if r.get("kind") == "validation"]
    if not steps and not validations:
        return
    minutes = when(steps)

    def curves(title: str, *lines: Curve, from_zero: bool = True) -> Curves:
        return Curves(title, [line for line in lines if line.points], thinned(minutes), from_zero)

    both = _curve("training", steps, "loss"), _curve("held out", validations, "loss", marked=True)
    scores = [name for name in score_names(validations) if name != "loss"]
    yield Beside(
        [
            curves("loss: the mean of −log p of a token, without smoothing", *both, from_zero=False),
            *(
                curves(f"{NAMES.get(n, n)} of held-out sentences", _curve(n, validations, n, marked=True))
                for n in scores
            ),
            curves("learning rate", _curve("rate", steps, "rate")),
            curves("tokens a second, source and target", _curve("tokens_per_second", steps, "tokens_per_second")),
        ]
    )
    if validations:
        yield _table(validations, minutes)
        yield from said(validations)


def _curve(name: str, records: Sequence[Record], key: str, *, marked: bool = False) -> Curve:
    points = [(r["step"], r[key]) for r in records if isinstance(r.get(key), int | float)]
    return Curve(name, thinned(points), marked)


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_POINTS: each the mean of neighbours; the last one as it is."""
    size = -(-len(points) // MOST_POINTS)
    if size <= 1:
        return list(points)
    groups = (np.array(points[i : i + size], dtype=np.float64).mean(axis=0) for i in range(0, len(points), size))
    return [*((float(step), float(value)) for step, value in groups), points[-1]]


def when(steps: Sequence[Record]) -> list[tuple[float, float]]:
    """(step, minutes since the start), from the beginning on."""
    return [(0.0, 0.0), *((r["step"], r["seconds"] / 60) for r in steps if "seconds" in r)] if steps else []


def score_names(validations: Sequence[Record]) -> list[str]:
    """What was measured at validations, in the order of the first one."""
    names = (name for r in validations for name, value in r.items() if isinstance(value, int | float))
    return [name for name in dict.fromkeys(names) if name not in NO_SCORES]


def _table(validations: Sequence[Record], minutes: Sequence[tuple[float, float]]) -> Fold:
    """The validations as numbers: of many the best ones so far, and the last."""
    names = score_names(validations)
    rows: Rows = [
        [
            f"{r['step']:,}",
            *([clock(minute_at(minutes, r["step"]))] if minutes else []),
            *(number(r[name], 3) if name in r else "" for name in names),
            Words("best so far") if r.get("best") else "",
        ]
        for r in validations
    ]
    stride = -(-len(rows) // ROWS)
    shown = [
        row
        for i, (row, r) in enumerate(zip(rows, validations, strict=True))
        if i % stride == 0 or r.get("best") or i == len(rows) - 1
    ]
    whole = rows if len(shown) < len(rows) else []
    heads = ["step", *["minute"] * bool(minutes), *(NAMES.get(name, name) for name in names), ""]
    few = f" ({len(shown)} of {len(rows)} are shown)" if whole else ""
    return Fold(f"The validations as numbers{few}", [Table(shown, heads, name="validations", whole=whole)])


def said(validations: Sequence[Record]) -> Iterator[Block]:
    """What the model made of the same few held-out sentences, from one validation to the next."""
    sampled = [r for r in validations if r.get("samples")]
    shown = [sampled[i] for i in spread(len(sampled), AGES)]
    if not shown:
        return
    blocks: list[Block] = []
    for i, (source, _) in enumerate(shown[0]["samples"]):
        rows: Rows = [
            [f"{r['step']:,}", Words(clip(r["samples"][i][1]), "said")] for r in shown if i < len(r["samples"])
        ]
        blocks += [Title(clip(source)), Table(rows, name="translations")]
    yield Fold("What it said of the same sentences on the way", blocks)


def spread(length: int, most: int) -> list[int]:
    """At most so many places of a list: the first, the last, and others evenly between."""
    if length <= most:
        return list(range(length))
    return sorted({round(i * (length - 1) / (most - 1)) for i in range(most)})
