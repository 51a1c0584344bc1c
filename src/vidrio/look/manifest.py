"""A run as JSON: which model, what text, every quantity with its stage, shape and range, and values as asked.

The same text and model give the same bytes. JSON knows no NaN and no infinity: they are the strings "NaN", "inf" and
"-inf". Values are nested lists of the exact numbers; a float32 is written as the double that equals it.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from vidrio._version import __version__
from vidrio.glass.numbers.trace import Trace, parse_address
from vidrio.look.quantities import under
from vidrio.look.run import LoadedModel, Look
from vidrio.model.files import sha256
from vidrio.model.json_text import json_text
from vidrio.model.parameters import count
from vidrio.search import Tree

FORMAT = 1
FILES = ("config.json", "model.safetensors", "tokenizer.json", "target-tokenizer.json")


def manifest(seen: Look) -> dict[str, Any]:
    """Everything about a run but the values."""
    trace = seen.trace
    decode = seen.model.target_tokenizer.decode
    searched = seen.hypotheses and not seen.forced
    return {
        "kind": "vidrio-trace",
        "format": FORMAT,
        "vidrio": __version__,
        "model": identity(seen.model),
        "changes": list(seen.changes),
        "dtype": str(seen.model.dtype),
        "text": seen.text,
        "pieces": [asdict(piece) for piece in seen.pieces],
        "source_tokens": list(trace.source_tokens),
        "target_tokens": list(trace.target_tokens),
        "chosen_tokens": list(trace.chosen_tokens),
        "labels": list(trace.labels),
        "translation": seen.translation,
        "search": asdict(seen.options) if searched else None,
        "hypotheses": [{"text": decode(h.ids), **h._asdict()} for h in seen.hypotheses],
        **otherwise_data(seen),
        "tree": None if seen.tree is None or not seen.tree.nodes else _tree(seen, seen.tree),
        "one_pass_differs_from_steps_by": seen.disagreement,
        "sizes": dict(trace.sizes),
        "quantities": [quantity(trace, name) for name in trace.values],
    }


def otherwise_data(seen: Look) -> dict[str, Any]:
    """What the search would have chosen, where something else was printed; `passed_over`, because something was lost
    in that, or a word not known."""
    if seen.otherwise is None:
        return {}
    text = seen.model.target_tokenizer.decode(seen.otherwise.ids)
    return {"otherwise": {"text": text, "passed_over": seen.passed_over, **seen.otherwise._asdict()}}


def _tree(seen: Look, tree: Tree) -> dict[str, Any]:
    """Every hypothesis that the search considered; `parent` is the place of another in this list, -1 the start."""
    words = seen.trace.vocabulary
    nodes = [{"word": words[node.token], **asdict(node)} for node in tree.nodes]
    return {"prefix": list(tree.prefix), "best": tree.best, "nodes": nodes}


def identity(model: LoadedModel) -> dict[str, Any]:
    """Which model it was, by the checksums of its files, wherever they lie."""
    return {
        "name": model.name,
        "source_language": model.about.source_language,
        "target_language": model.about.target_language,
        "parameters": count(model.config),
        "config": model.config.to_json(),
        "sha256": {name: sha256(model.path / name) for name in FILES if (model.path / name).exists()},
    }


def quantity(trace: Trace, name: str) -> dict[str, Any]:
    """What the stage table says of a quantity, and what range its numbers have."""
    array = trace.array(name)
    finite = array[np.isfinite(array)]
    return {
        **asdict(trace.stage(name)),
        "shape": list(array.shape),
        "min": finite.min().item() if finite.size else None,
        "max": finite.max().item() if finite.size else None,
        "not_finite": int(array.size - finite.size),
    }


def to_json(seen: Look, values: str = "none", at: Sequence[str] = (), what_if: dict[str, Any] | None = None) -> str:
    """The manifest as JSON, a quantity a line; `values` of those `at` the addresses given, of `all`, or of `none`."""
    data = manifest(seen) if what_if is None else {"what_if": what_if, **manifest(seen)}
    listed = {entry["address"]: entry for entry in data["quantities"]}
    asked = {name for where in at for name in under(seen.trace, parse_address(where).name)}
    for name in seen.trace.stages:
        if name in asked and name not in listed:  # parameters are listed only where they are asked for
            listed[name] = quantity(seen.trace, name)
        if name in listed and (values == "all" or (values == "at" and name in asked)):
            listed[name]["values"] = seen.trace.array(name).tolist()
    data["quantities"] = [listed[name] for name in seen.trace.stages if name in listed]
    return _lines(data)


def _lines(data: dict[str, Any]) -> str:
    """JSON with an entry a line, and of the last entry a quantity a line: short enough to read, and to compare."""
    *heads, (last, quantities) = data.items()
    lines = [f"{json_text(key)}: {json_text(value)}" for key, value in heads]
    inner = ",\n  ".join(map(json_text, quantities))
    lines.append(f"{json_text(last)}: [\n  {inner}\n ]" if quantities else f"{json_text(last)}: []")
    return "{\n " + ",\n ".join(lines) + "\n}\n"
