"""The page as one file: what `vidrio serve` shows, with a run's data or a list of blocks in it, and no server.

It is the very page that `page/` builds; this only puts the data where it looks for them. Everything stands deflated in
the file, as digits to base 85, and a few lines of script unfold it. The file needs no network, and may ask for nothing.
"""

import json
import zlib
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

from vidrio._version import __version__
from vidrio.hypothesis import Sampling
from vidrio.look import blocks as b
from vidrio.look import run_data
from vidrio.look.blocks_data import as_data
from vidrio.look.changed import BeforeAfter
from vidrio.look.command_line import CommandLine
from vidrio.look.packed import as_text, packed
from vidrio.look.patterns import Pattern, patterns
from vidrio.look.run import Look, look
from vidrio.look.writing import PRECISION, visible
from vidrio.model.json_text import json_text
from vidrio.search import Tree

LARGEST = 5_950_000  # bytes of a file, if the numbers of the run itself fit
DIRECTORY = 20_000  # of these for the list of what is packed
LEVEL = 6
_BUILT = files("vidrio") / "serve" / "page" / "alone"
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; font-src data:; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def run_page(tried: BeforeAfter, again: CommandLine) -> str:
    """A run, with every number on the way."""
    seen = tried.after
    patterns_of = patterns(seen.trace) if seen.trace.values else {}
    data = {
        "kind": "run",
        "vidrio": __version__,
        "machine": run_data.machine_data(seen.model, seen.model.name, ""),
        "run": {**run_data.answer(tried, again.text), "milliseconds": {}, "notes": list(seen.notes)},
        "changes": [change.asked.removeprefix("--").split(" ", 1) for change in tried.whatif.changes],
        "edited": list(seen.trace.computed),
        "search": run_data.search_data(_searched(seen)) if seen.result else None,
        "choices": [run_data.choosing_data(seen, step, Sampling()) for step in range(len(seen.chosen_ids))],
        "kept": run_data.kept_data(seen),
        "tokens": None if seen.empty else run_data.tokenising_data(seen),
        "patterns": _each_once(patterns_of),
        "again": again.look(),
        "sha256": run_data.identity(seen.model)["sha256"],
    }
    tokens = [*seen.source_ids, *seen.target_ids, *seen.chosen_ids]
    tokens += [candidate["id"] for step in data["run"]["steps"] for candidate in step["best"]]
    bundle = _bundle("page")
    room = LARGEST * 4 // 5 - sum(map(len, bundle)) - len(_deflated(json_text(data))) - DIRECTORY
    pack = packed(seen.trace, patterns_of, room, tokens)
    data["tensors"] = {"quantities": pack.quantities, "parts": pack.directory, "left_out": pack.left_out}
    return _file(_title(seen), [*bundle, _deflated(json_text(data)), *pack.parts])


def blocks_page(page: b.Page, precision: int = PRECISION) -> str:
    """A page of blocks: a report, a lesson."""
    data = {
        "kind": "blocks",
        "vidrio": __version__,
        "title": visible(page.title),
        "precision": precision,
        "header": as_data(page.header, precision),
        "sections": [
            {"anchor": section.anchor, "title": section.title, "blocks": as_data(section.blocks, precision)}
            for section in page.sections
            if section.blocks
        ],
        "checksums": [list(pair) for pair in page.checksums],
    }
    return _file(page.title, [*_bundle("blocks"), _deflated(json_text(data))])


def _searched(seen: Look) -> Look:
    """The run with its search; of what translating printed, a search that finds the same."""
    if (seen.tree and seen.tree.nodes) or seen.forced or seen.options.sampling is not None:
        return seen
    return look(seen.model, seen.text, options=seen.options, tree=Tree())


def _each_once(found: dict[str, Pattern]) -> dict[str, Any]:
    """Most quantities are made like many others."""
    kinds: dict[str, int] = {}
    places = {name: kinds.setdefault(json_text([p.indices, p.make]), len(kinds)) for name, p in found.items()}
    return {"kinds": [json.loads(kind) for kind in kinds], "of": places}


def _title(seen: Look) -> str:
    return f"{seen.text or '(an empty text)'} → {seen.translation or '(nothing)'}"


# --- the file --------------------------------------------------------------------------------------------------------


def _bundle(name: str) -> list[bytes]:
    """Style and script as `npm run build` leaves them."""
    return [_deflated((_BUILT / f"{name}.{kind}").read_bytes()) for kind in ("css", "js")]


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
        "<noscript>This page draws with a script that stands in it. It asks for nothing outside.</noscript>\n"
        f'<div id="page"></div>\n{folded}\n<script>{unfold}</script>\n</body>\n</html>\n'
    )
