"""A run as a notebook: cells that load the model, run the text and show each step, with their outputs in place.

The outputs are those of the very functions that the cells call; a test runs the cells again and compares. They are
text: whoever runs the cells sees the pictures, and the file stays small.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from vidrio.draw.display import display
from vidrio.draw.terminal import text
from vidrio.glass.numbers.trace import Trace, parse_address
from vidrio.glass.proof.receipts import locate, receipt
from vidrio.hypothesis import default_options
from vidrio.look.changed import look_changed, tell
from vidrio.look.run import Look
from vidrio.look.writing import PRECISION, visible
from vidrio.model.json_text import json_text

Cell = dict[str, Any]


def notebook(
    seen: Look, *, model_name: str | None = None, asked: Sequence[tuple[str, str]] = (), precision: int = PRECISION
) -> str:
    """The notebook as JSON in nbformat 4.5. `asked` are the what-ifs that `seen` was run with."""
    cells = [
        {"id": f"step-{n}", "cell_type": cell["cell_type"], "metadata": {}, **cell}
        for n, cell in enumerate(_cells(seen, model_name, asked, precision))
    ]
    for count, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        for part in (cell, *(output for output in cell["outputs"] if output["output_type"] == "execute_result")):
            part["execution_count"] = count
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    data = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json_text(data, indent=1) + "\n"


def _cells(seen: Look, model_name: str | None, asked: Sequence[tuple[str, str]], precision: int) -> Iterator[Cell]:
    trace = seen.trace
    yield _words(
        f"# {_plain(seen.text)} → {_plain(seen.translation)}\n\nEvery number on the way from text to translation. "
        "Run the cells, change them, look elsewhere: `seen.trace` lists all addresses."
    )
    yield _code(_loading(seen, model_name, asked), display(seen))
    if seen.empty:
        return
    for title, addresses in _way(trace):
        yield _words(f"## {title}")
        for address in addresses:
            stage = trace.stages[address]
            formula = f"\n\n$${stage.latex}$$" if stage.inputs else ""
            yield _words(f"`{address}`: {stage.says}. {stage.place}{formula}")
            more = "" if precision == PRECISION else f", precision={precision}"
            yield _code(f"display(seen, {address!r}{more})", display(seen, address, precision))
    yield _words("## One number, worked out by hand")
    number = f"out.prob[{seen.chosen_ids[0]}]@0" if seen.chosen_ids else f"{_last_weights(trace)}[0,0]"
    bill = receipt(trace, locate(trace, parse_address(number)))
    source = (
        "from vidrio.glass.numbers.trace import parse_address\n"
        "from vidrio.glass.proof.receipts import locate, receipt\n\n"
        f"bill = receipt(seen.trace, locate(seen.trace, parse_address({number!r})))\n"
        'print(bill.formula, *bill.working(), sep="\\n= ")\n'
        "bill.compared"
    )
    yield _code(source, bill.compared, printed="\n= ".join([bill.formula, *bill.working()]) + "\n")
    heads = [name for name in trace.values if name.endswith(".head.h0")]
    if heads and not asked:
        head = heads[0].replace(".head.", ".")
        yield _words("## What if\n\nOne head gives out zeros; what becomes of the translation, and of the numbers?")
        what_if = [("heads-off", head)]
        source = (
            "from vidrio.draw.terminal import text\nfrom vidrio.look.changed import look_changed, tell\n\n"
            f"print(text(tell(look_changed(model, seen.text, {what_if!r}, options=seen.options))))"
        )
        tried = look_changed(seen.model, seen.text, what_if, options=seen.options)
        yield _code(source, None, printed=text(tell(tried)) + "\n")


def _loading(seen: Look, model_name: str | None, asked: Sequence[tuple[str, str]]) -> str:
    """The lines that make `model` and `seen`."""
    dtype = seen.model.dtype.name
    imports = ["from vidrio.draw.display import display", "from vidrio.look.run import look, open_model"]
    arguments = [repr(seen.text)]
    if dtype != "float64":
        imports.insert(0, "import numpy as np\n")
    opening = ", ".join([repr(model_name)] * (model_name is not None) + [f"dtype=np.{dtype}"] * (dtype != "float64"))
    options = replace(seen.options, prefix=())
    if options != default_options(seen.model.config):
        imports.append("from vidrio.search import Options" + ", Sampling" * (options.sampling is not None))
        arguments.append(f"options={options!r}")
    if seen.forced:
        arguments.append(f"target={seen.chosen_ids!r}")
    run = f"look(model, {', '.join(arguments)})"
    if asked:
        imports.append("from vidrio.look.changed import look_changed")
        run = f"look_changed(model, {', '.join([arguments[0], repr(list(asked)), *arguments[1:]])}).after"
    return "\n".join([*imports, "", f"model = open_model({opening})", f"seen = {run}", "display(seen)"])


def _way(trace: Trace) -> Iterator[tuple[str, list[str]]]:
    """The first layer in full with one of its heads, and of the rest what is different or asked for most."""

    def some(*starts: str) -> list[str]:
        names = [n for n in trace.values if n.startswith(starts)]
        return [n for n in names if not n.rpartition(".h")[2].isdigit() or n.endswith(".h0")]

    side = "enc" if trace.machine.config.has_encoder else "dec"
    yield "Tokens to rows", some("src.", "enc.in") or some("tgt.", "dec.in")
    yield "One layer: self-attention, head 0", some(f"{side}.0.self.")
    yield "One layer: feed-forward", some(f"{side}.0.ffn.")
    if side == "enc":
        yield "The encoder's output", some("memory")
    if trace.machine.config.has_decoder:
        if side == "enc":
            yield "The decoder: what it has said so far", some("tgt.", "dec.in")
            yield "The mask: no row sees a later one", some("dec.0.self.masked.", "dec.0.self.weights.")
            yield "Reading the source, in the last layer", [_last_weights(trace)]
        yield "The decoder's output", some("dec.out")
        yield "Rows to words", some("out.")
    else:
        yield "Row to classes", some("out.")


def _last_weights(trace: Trace) -> str:
    weights = [name for name in trace.values if ".weights.h0" in name]
    return ([name for name in weights if ".cross." in name] or weights)[-1]


def _words(text: str) -> Cell:
    return {"cell_type": "markdown", "source": text.splitlines(keepends=True)}


def _code(source: str, result: object, *, printed: str = "") -> Cell:
    outputs: list[Cell] = []
    if printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.splitlines(keepends=True)})
    if result is not None:
        data = {"text/plain": repr(result).splitlines(keepends=True)}
        outputs.append({"output_type": "execute_result", "data": data, "metadata": {}})
    return {"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": outputs}


def _plain(text: str) -> str:
    """Text in Markdown, its signs without meaning."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!<>|$&" else c for c in visible(text))
