"""Writes a standalone page: a single HTML file with the page of `vidrio serve` and the data of one run.

The page is built from `page/`. Its code and the data are compressed, Base85-encoded and unpacked by a short script,
so the file needs neither a server nor a network connection.
"""

import zlib
from base64 import a85encode
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from safetensors.numpy import save

from vidrio._version import __version__
from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace
from vidrio.hypothesis import Sampling
from vidrio.look import run_data, why_word
from vidrio.look.changed import BeforeAfter
from vidrio.look.run import Look, with_tree
from vidrio.look.writing import CommandLine, visible
from vidrio.model.json_text import json_text

SMALL = 1_000_000  # maximum size of the parameters to include, in bytes
LEVEL = 6
_BUILT = files("vidrio") / "serve" / "page" / "alone"
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; font-src data:; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def run_page(tried: BeforeAfter, again: CommandLine) -> str:
    """Return the HTML of a page with every intermediate value of a run."""
    seen = tried.after
    data = {
        "kind": "run",
        "vidrio": __version__,
        "machine": run_data.machine_data(seen.model, seen.model.name, ""),
        "run": {**run_data.answer(tried, again.text), "milliseconds": {}, "notes": list(seen.notes)},
        "changes": [change.option.removeprefix("--").split(" ", 1) for change in tried.whatif.changes],
        "edited": list(seen.trace.computed),
        "search": run_data.search_data(with_tree(seen)) if seen.result else None,
        "choices": [_choice(seen, step) for step in range(len(seen.chosen_ids))],
        "whys": _whys(seen),
        "tokens": None if seen.empty else run_data.tokenising_data(seen),
        "again": again.look(),
        "sha256": run_data.checksums(seen.model),
    }
    return _file(_title(seen), [*_bundle(), _deflated(json_text(data)), _deflated(save(_numbers(seen.trace)))])


def _choice(seen: Look, step: int) -> dict[str, Any] | None:
    """Return how the token at a step was chosen, or None if its logits are NaN."""
    if not np.isfinite(seen.trace.array("out.logits")[step].max()):
        return None
    return run_data.choosing_data(seen, step, Sampling())


def _whys(seen: Look) -> list[dict[str, Any]]:
    """Explain why the token at each step, or a classifier's class, was chosen over the runner-up."""
    if seen.empty or seen.stopped:
        return []
    return [why_word.data(why_word.why_step(seen, step)) for step in range(len(seen.chosen_ids) or 1)]


def _numbers(trace: Trace) -> dict[str, Array]:
    """Return all values and mean attention weights by address, and the parameters if they are small enough."""
    parameters = [name for name in trace.addresses() if trace.stages[name].of_the_model]
    if sum(trace.array(name).nbytes for name in parameters) > SMALL:
        parameters = []
    means = [name.removesuffix(".h0") for name in trace.values if name.endswith(".weights.h0")]
    names = [*means, *parameters, *trace.values]
    return {name: run_data.array_at(trace, name) for name in names}


def _title(seen: Look) -> str:
    return f"{seen.text or '(an empty text)'} → {seen.translation or '(nothing)'}"


def as_text(part: bytes) -> str:
    """Encode bytes as base-85 text that contains no `<` and is therefore safe in HTML."""
    return a85encode(part + bytes(-len(part) % 4)).replace(b"<", b"~").decode("ascii")


# --- the file --------------------------------------------------------------------------------------------------------


def _bundle() -> list[bytes]:
    """Return the page's compressed style sheet and script, as built by `npm run build`."""
    return [_deflated((_BUILT / f"page.{kind}").read_bytes()) for kind in ("css", "js")]


def _deflated(content: bytes | str) -> bytes:
    return zlib.compress(content.encode() if isinstance(content, str) else content, LEVEL)


def _file(title: str, parts: Iterable[bytes]) -> str:
    folded = "\n".join(f'<script type="text/plain" data-bytes="{len(p)}">{as_text(p)}</script>' for p in parts)
    unfold = (_BUILT / "unfold.js").read_text("utf-8")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(visible(title))}</title>\n</head>\n<body>\n"
        "<noscript>This page needs JavaScript. Its script is part of this file, which loads nothing else.</noscript>\n"
        f'<div id="page"></div>\n{folded}\n<script>{unfold}</script>\n</body>\n</html>\n'
    )
