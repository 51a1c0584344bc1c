"""Collects a model's training history for the page: curves, each snapshot's translation, and the loss on a reference.

Training saves snapshots (`learn/state.py`). The reference implementation runs a snapshot like any other model, so
PyTorch is not needed.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.engine.engine import Stopped
from vidrio.errors import InputError
from vidrio.glass.machine import build
from vidrio.hypothesis import default_options
from vidrio.look.measures import likeliest, mean_of_heads
from vidrio.look.run import LoadedModel, Look, look, target_ids
from vidrio.model.folder import read_parameters

ROOM = 10  # a snapshot's translation may have this many tokens more than twice the source
FOLLOWED = 16  # maximum number of tokens whose probabilities are tracked
MAX_POINTS = 240  # maximum number of points in a curve; in longer curves, neighbouring points are averaged
SCORES = {"bleu": "BLEU", "chrf": "chrF", "accuracy": "accuracy"}  # validation metrics that may be present

Record = dict[str, Any]
Points = Sequence[tuple[float, float]]

# --- the curves of a run ----------------------------------------------------------------------------------------------


def metrics(run: Path) -> list[Record]:
    """Read metrics.jsonl, skipping malformed lines, such as an incomplete last line."""
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


def curves_data(run: Path) -> list[dict[str, Any]]:
    """Return the curves of loss, scores, learning rate and speed by step, and the minutes elapsed at each step."""
    records = metrics(run)
    steps = [r for r in records if r.get("kind") == "step"]
    validations = [r for r in records if r.get("kind") == "validation"]
    minutes = thinned(when(steps))

    def curve(name: str, records: Sequence[Record], key: str) -> dict[str, Any]:
        points = [(r["step"], r[key]) for r in records if isinstance(r.get(key), int | float)]
        return {"name": name, "points": thinned(points), "marked": records is validations}

    def picture(title: str, *lines: dict[str, Any]) -> dict[str, Any]:
        drawn = [line for line in lines if line["points"]]
        return {"kind": "curves", "title": title, "lines": drawn, "minutes": minutes, "from_zero": len(lines) == 1}

    losses = curve("training", steps, "loss"), curve("held out", validations, "loss")
    pictures = [
        picture("loss: the mean −log p per token, without label smoothing", *losses),
        *(picture(f"{name} of held-out sentences", curve(name, validations, key)) for key, name in SCORES.items()),
        picture("learning rate", curve("rate", steps, "rate")),
        picture("tokens per second, source and target", curve("tokens_per_second", steps, "tokens_per_second")),
    ]
    return [one for one in pictures if one["lines"]]


def thinned(points: Points) -> list[tuple[float, float]]:
    """Shorten a long curve by averaging groups of neighbouring points. The last point is kept as it is."""
    size = -(-len(points) // MAX_POINTS)
    if size <= 1:
        return list(points)
    groups = (np.array(points[i : i + size], dtype=np.float64).mean(axis=0) for i in range(0, len(points), size))
    return [*((float(step), float(value)) for step, value in groups), points[-1]]


def when(steps: Sequence[Record]) -> list[tuple[float, float]]:
    """Return pairs (step, minutes since the start of training), beginning with step 0."""
    return [(0.0, 0.0), *((r["step"], r["seconds"] / 60) for r in steps if "seconds" in r)] if steps else []


# --- a sentence at each snapshot --------------------------------------------------------------------------------------


def snapshots(run: Path) -> list[tuple[int, Path]]:
    """Return the steps that have a snapshot, in order, each with the folder of its parameters."""
    files = (run / "snapshots").glob("step-[0-9]*/model.safetensors")
    return sorted((int(path.parent.name.removeprefix("step-")), path.parent) for path in files)


def young(model: LoadedModel) -> Iterator[tuple[int | None, LoadedModel]]:
    """Yield the model at each snapshot, earliest first. Only one is loaded at a time."""
    for step, folder in snapshots(model.path / "run"):
        yield step, replace(model, machine=build(model.config, read_parameters(folder), model.dtype.type))


def ages_data(
    model: LoadedModel, text: str, target: Sequence[int] = (), stopped: Stopped = None
) -> dict[str, Any] | None:
    """Return how each snapshot translates a text, and the probability that it gives to each token of a translation.

    That translation is `target` or, by default, the final model's. All values are computed in floating point. Returns
    None if the text is empty or if there are no snapshots.
    """
    if not snapshots(model.path / "run") or not text.strip():
        return None
    model = model.in_floating_point()
    tokenizer = model.source_tokenizer if model.config.has_encoder else model.target_tokenizer
    options = default_options(model.config)
    babble = 2 * len(tokenizer.encode(text)) + ROOM
    options = replace(options, max_length=min(options.max_length, babble))
    now = look(model, text, options=options, stopped=stopped)
    every = list(target or now.chosen_ids)
    followed = every[:FOLLOWED]
    aged = ((step, look(age, text, options=options, stopped=stopped)) for step, age in young(model))
    ages = [_age(step, seen, followed, now) for step, seen in chain(aged, [(None, now)])]
    tokens = [now.trace.vocabulary[i] for i in followed] or [now.translation]
    return {"text": text, "tokens": tokens, "left_out": len(every) - len(followed), "ages": ages}


def _age(step: int | None, seen: Look, followed: Sequence[int], now: Look) -> dict[str, Any]:
    """Return the entry for a snapshot, or for the final model if `step` is None.

    For each token, `reads` is the source token with the largest cross-attention weight in the last layer, averaged over
    heads, and `share` is that weight.
    """
    if seen.result is None:
        prob_C = seen.trace.values["out.prob"]
        taken = int(np.argmax(now.trace.values["out.prob"]))
        said = {"ended": True, "log_p": float(np.log(prob_C.max())), "p": [float(prob_C[taken])]}
        return {"step": step, "says": seen.translation, **said, "reads": [], "share": []}
    forced = look(seen.model, seen.text, options=seen.options, target=followed).trace
    config = seen.model.config
    reads, share = [], []
    if config.has_encoder:
        weights_TS = mean_of_heads(forced, f"dec.{config.n_decoder_layers - 1}.cross.weights")
        reads, share = [forced.source_tokens[s] for s in weights_TS.argmax(1)], weights_TS.max(1).tolist()
    said = {"ended": seen.result.ended, "log_p": seen.result.log_prob, "p": np.exp(forced.values["out.score"]).tolist()}
    return {"step": step, "says": seen.translation, **said, "reads": reads, "share": share}


# --- the reference translation ----------------------------------------------------------------------------------------


def forced_data(model: LoadedModel, text: str, answer: str) -> dict[str, Any]:
    """Return −log p of each token in the reference translation, given the tokens before it (teacher forcing)."""
    if not model.config.has_decoder:
        raise InputError("this model predicts classes, so there is no translation to force token by token")
    seen = look(model, text, target=target_ids(model, answer))
    if seen.empty:
        raise InputError("there is nothing to learn from an empty text")
    score_T, prob_TV = seen.trace.values["out.score"].astype(np.float64), seen.trace.values["out.prob"]
    tokens = [
        {
            "reads": seen.trace.target_tokens[t],
            "should_say": seen.trace.chosen_tokens[t],
            "address": f"out.prob[{t},{chosen}]",
            "p": float(np.exp(score_T[t])),
            "loss": float(-score_T[t]),
            "rank": int((prob_TV[t] > prob_TV[t, chosen]).sum()) + 1,
            "instead": likeliest(seen, t, 1)[0].token,
        }
        for t, chosen in enumerate(seen.chosen_ids)
    ]
    knows_nothing = float(np.log(model.config.target_vocabulary))
    return {"tokens": tokens, "sum": float(-score_T.sum()), "mean": float(-score_T.mean()), "nothing": knows_nothing}
