"""Define and execute the run that `look`, `why` and `check` inspect."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import SEARCH, as_options, search_options, together
from vidrio.errors import InputError
from vidrio.model.find import WORKED_EXAMPLES
from vidrio.model.json_text import json_text

if TYPE_CHECKING:
    from vidrio.hypothesis import Options
    from vidrio.look.changed import BeforeAfter
    from vidrio.look.run import LoadedModel, Look
    from vidrio.look.translated import Reading
    from vidrio.look.writing import CommandLine
    from vidrio.search import Tree

# NumPy reads this variable when it is first imported. The matrix products for one sentence are so small that a second
# thread would mostly wait for the first and triple the CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

WhatIfOptions = list[tuple[str, str]]  # ("without", "layer-norm")

# `glass/whatif` defines the valid values, but is too slow to import for --help. Changes are applied in this order.
_WHATIF = {
    "change-dtype": ("TYPE", "Compute in int8 (as the engine does), float16, float32 or float64."),
    "without": (
        "WHAT",
        "Leave out layer-norm, residual, positions, scaling, embedding-scale, cross, ffn, ssru, forget-gate, or one "
        "sub-layer, such as enc.1.ffn.",
    ),
    "softmax": ("KIND", "naive: do not subtract the maximum before exp."),
    "mask": ("KIND", "Decoder self-attention mask: off or zeros."),
    "positions": (
        "KIND",
        "sinusoidal, sinusoidal-halves, sinusoidal-marian, none, or seed (column index in place of pair index).",
    ),
    "divisor": ("X", "Divide scores by X instead of √d_k."),
    "norm-epsilon": ("X", "ε of layer norm."),
    "layer-norm": ("KIND", "beside: add ε outside the square root, as in the worked example."),
    "heads-off": ("HEAD,…", "Make these heads output zeros, e.g. enc.1.self.h0."),
    "hide": ("ROW,…", "Hide these source positions, given by index or token, from all attention."),
    "set": (
        "ADDRESS=X",
        "Replace a parameter or an intermediate value; [2,*] selects a row, no index all of it. X: 1 or [[1,0],[0,1]].",
    ),
    "scale": ("ADDRESS=X", "Multiply a value by X."),
}
_REPEATED = ("without", "heads-off", "hide", "set", "scale")
# The options for target, search, preprocessing and what-ifs. `RunRequest.take` also takes --model and --dtype.
run_options = together(
    click.option("--target", metavar="TEXT", help="Force this translation instead of searching."),
    search_options,
    click.option(
        "--as-typed", "typed", is_flag=True, help="Use TEXT as typed, without the translator's preprocessing."
    ),
    *(
        click.option(f"--{name}", metavar=metavar, help=text, multiple=name in _REPEATED)
        for name, (metavar, text) in _WHATIF.items()
    ),
    click.option("--values", metavar="FILE", help="TOML file of values; each line ADDRESS = X acts as a --set."),
)


@dataclass(frozen=True)
class RunRequest:
    """The text, the model and the options of a run."""

    text: str
    model_name: str | None
    dtype: str | None
    target: str | None
    typed: bool
    search: Mapping[str, Any]
    whatif: WhatIfOptions
    values: str | None = None
    from_file: int = 0  # how many of the what-ifs come from the file `values`

    @staticmethod
    def take(text: str, given: dict[str, Any]) -> "RunRequest":
        """Remove the options of a run from a command's options, and return a request with them."""
        search = {name: given.pop(name) for name in SEARCH}
        whatif = values_of(given["values"])
        from_file = len(whatif)
        for option in _WHATIF:
            words = given.pop(option.replace("-", "_"))
            changes = words if isinstance(words, tuple) else (words,)
            whatif += [(option, change) for change in changes if change is not None]
        names = ("model_name", "dtype", "target", "typed", "values")
        return RunRequest(
            text, **{name: given.pop(name) for name in names}, search=search, whatif=whatif, from_file=from_file
        )

    def open(self) -> "LoadedModel":
        """Open the model for inspection, and print its name to stderr."""
        import numpy as np

        from vidrio.look.run import open_model
        from vidrio.look.writing import visible

        model = open_model(self.model_name, None if self.dtype is None else getattr(np, self.dtype))
        which = "the default model" if self.model_name is None else "model"
        click.echo(visible(f"{which}: {model.name} ({model.path})"), err=True)
        return model

    def options(self, model: "LoadedModel") -> "Options":
        return as_options(model.config, self.search)

    def read(self, model: "LoadedModel") -> "Reading":
        """Return the text that the translator passes to the model, and its translation. Differences from TEXT are
        printed to stderr."""
        from vidrio.look.translated import Reading, read_as_translated
        from vidrio.look.writing import visible

        if self.typed or self.target is not None or self.model_name in WORKED_EXAMPLES:
            return Reading(self.text)
        reading = read_as_translated(model, self.text, self.options(model))
        for note in reading.notes:
            click.echo(visible(f"{note}; use --as-typed to skip this"), err=True)
        return reading

    def run(self, model: "LoadedModel", tree: "Tree | None" = None) -> "BeforeAfter":
        """Run the model without and with the what-ifs."""
        from vidrio.look.changed import BeforeAfter, look_changed
        from vidrio.look.run import target_ids
        from vidrio.look.translated import copied

        options, reading = self.options(model), self.read(model)
        if reading.copied:
            return BeforeAfter.of_one(copied(model, reading.copied))
        forced = None if self.target is None else target_ids(model, self.target)
        return look_changed(
            model, reading.text, self.whatif, options=options, target=forced or reading.printed, tree=tree
        )

    def command_line(self) -> "CommandLine":
        """Return the options that repeat this run, for commands that the output suggests."""
        from vidrio.look.writing import CommandLine

        again = {"model": self.model_name, "dtype": self.dtype, "target": self.target, "values": self.values}
        again |= self.search
        options = {name.removesuffix("_ngram").replace("_", "-"): value for name, value in again.items()}
        given = [(option, str(value)) for option, value in options.items() if value is not None]
        words = [part for option, value in given for part in (f"--{option}", value)]
        whatif = [part for option, change in self.whatif[self.from_file :] for part in (f"--{option}", change)]
        return CommandLine(self.text, (*words, *["--as-typed"] * self.typed, *whatif))


def values_of(path: str | None) -> WhatIfOptions:
    """Read what-if values from a TOML file. enc.0.self.WQ.h0 may be one key, or WQ.h0 in a table [enc.0.self]."""

    def under(name: str, value: Any) -> WhatIfOptions:
        if not isinstance(value, dict):
            return [("set", f"{name}={value if isinstance(value, float) else json_text(value)}")]
        return [pair for key, inner in value.items() for pair in under(f"{name}.{key}" if name else key, inner)]

    if path is None:
        return []
    try:
        return under("", tomllib.loads(Path(path).read_text("utf-8-sig")))
    except (OSError, ValueError, TypeError, RecursionError) as error:  # TypeError: a date
        raise InputError(
            f"{path} cannot be read as TOML", found=str(error), do='write lines like "enc.0.ffn.b2" = [1, 0, 0, 0]'
        ) from None


def tell_unknown(seen: "Look") -> None:
    """Print a note for each word that the vocabulary lacks."""
    from vidrio.look.writing import visible

    for word in seen.unknown:
        click.echo(
            f"note: {visible(word)!r} is not in the vocabulary, so the model is given the unknown token", err=True
        )


def refuse_copied(seen: "Look") -> None:
    """Raise InputError if the text was copied without running the model, in which case there are no numbers to show."""
    from vidrio.look.translated import COPIED

    if seen.copied:
        raise InputError(f"{COPIED}, so the model does not read it", do="give a text with words, or --as-typed")
