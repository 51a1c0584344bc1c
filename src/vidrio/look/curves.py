"""How a run learned: its metrics.jsonl as curves, and every validation as a row."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vidrio.draw.document import scrolling
from vidrio.draw.html import text
from vidrio.draw.show import number
from vidrio.draw.svg import Curve, at, clock, curves

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


def panels(records: Sequence[Record]) -> Iterator[str]:
    """Loss, scores, learning rate and speed against steps and minutes."""
    steps = [r for r in records if r.get("kind") == "step"]
    validations = [r for r in records if r.get("kind") == "validation"]
    if not steps and not validations:
        return
    minutes = when(steps)

    def of(some: Sequence[Record], name: str) -> list[tuple[float, float]]:
        return [(r["step"], r[name]) for r in some if isinstance(r.get(name), int | float)]

    drawn = [
        curves(
            "loss: the mean of −log p of a token, without smoothing",
            [
                Curve("training", of(steps, "loss")),
                Curve("held out", of(validations, "loss"), marked=True),
            ],
            minutes,
        )
    ]
    for name in score_names(validations):
        if name != "loss":
            title = f"{NAMES.get(name, name)} of held-out sentences"
            drawn.append(curves(title, [Curve(name, of(validations, name), marked=True)], minutes, from_zero=True))
    drawn.append(curves("learning rate", [Curve("rate", of(steps, "rate"))], minutes, from_zero=True))
    speed = "tokens a second, source and target"
    drawn.append(curves(speed, [Curve(speed, of(steps, "tokens_per_second"))], minutes, from_zero=True))
    yield f'<div class="panels">{"".join(drawn)}</div>'
    if validations:
        yield _table(validations, minutes)
        if (mean := mean_of_best(records)) is not None:
            yield f"<p>{_told_mean(mean)}</p>"
        yield from said(validations)


def when(steps: Sequence[Record]) -> list[tuple[float, float]]:
    """(step, minutes since the start), from the beginning on."""
    return [(0.0, 0.0), *((r["step"], r["seconds"] / 60) for r in steps if "seconds" in r)] if steps else []


def score_names(validations: Sequence[Record]) -> list[str]:
    """What was measured at validations, in the order of the first one."""
    names = (name for r in validations for name, value in r.items() if isinstance(value, int | float))
    return [name for name in dict.fromkeys(names) if name not in NO_SCORES]


def _table(validations: Sequence[Record], minutes: Sequence[tuple[float, float]]) -> str:
    """The validations as numbers: of many the best ones so far, and the last."""
    names = score_names(validations)
    shown = list(validations)
    if len(shown) > ROWS:
        stride = -(-len(shown) // ROWS)
        shown = [r for i, r in enumerate(shown) if i % stride == 0 or r.get("best") or r is shown[-1]]
    rows = []
    for r in shown:
        cells = "".join(f"<td>{number(r[name], 3) if name in r else ''}</td>" for name in names)
        time = f"<td>{clock(at(minutes, r['step']))}</td>" if minutes else ""
        best = '<td class="word">best so far</td>' if r.get("best") else "<td></td>"
        rows.append(f'<tr><th scope="row">{r["step"]:,}</th>{time}{cells}{best}</tr>')
    head = '<th scope="col">step</th>' + '<th scope="col">minute</th>' * bool(minutes)
    head += "".join(f'<th scope="col">{text(NAMES.get(name, name))}</th>' for name in names) + "<td></td>"
    few = f" ({len(shown)} of {len(validations)} are shown)" if len(shown) < len(validations) else ""
    table = scrolling("validations", head, "".join(rows))
    return f"<details><summary>The validations as numbers{few}</summary>{table}</details>"


def mean_of_best(records: Sequence[Record]) -> Record | None:
    """What was found when the mean of the best models was tried at the end."""
    return next((r for r in records if r.get("kind") == "mean"), None)


def _told_mean(record: Record) -> str:
    """Whether the mean of the best models has become the model."""
    metric, steps = str(record["metric"]), ", ".join(f"{step:,}" for step in record["steps"])
    name, value, alone = text(NAMES.get(metric, metric)), number(record[metric], 3), number(record["alone"], 3)
    is_best = "so it is the model" if record["best"] else "so the model is the best one alone"
    return (
        f"At the end the mean of the parameters of the {len(record['steps'])} best models (of steps {steps}) was "
        f"tried: {name} {value} on the held-out sentences, the best one alone {alone}; {is_best}."
    )


def said(validations: Sequence[Record]) -> Iterator[str]:
    """What the model made of the same few held-out sentences, from one validation to the next."""
    told = [r for r in validations if r.get("samples")]
    shown = [told[i] for i in spread(len(told), AGES)]
    if not shown:
        return
    yield "<details><summary>What it said of the same sentences on the way</summary>"
    for i, (source, _) in enumerate(shown[0]["samples"]):
        rows = "".join(
            f'<tr><th scope="row">{r["step"]:,}</th><td class="said">{text(clip(r["samples"][i][1]))}</td></tr>'
            for r in shown
            if i < len(r["samples"])
        )
        yield f"<h3>{text(clip(source))}</h3>{scrolling('translations', '', rows)}"
    yield "</details>"


def spread(length: int, most: int) -> list[int]:
    """At most so many places of a list: the first, the last, and others evenly between."""
    if length <= most:
        return list(range(length))
    return sorted({round(i * (length - 1) / (most - 1)) for i in range(most)})


def clip(told: str, most: int = 120) -> str:
    """Texts of a young model go on and on."""
    return told if len(told) <= most else f"{told[:most]}…"
