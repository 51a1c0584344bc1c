"""Which run TEXT and the options of look, why and check ask for: taken from the command line once, and run once."""

import gc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import SEARCH, as_options, given_text, opened, search_options, together
from vidrio.commands.whatif_options import Asked, as_typed, take_asked, whatif_options

if TYPE_CHECKING:
    from vidrio.hypothesis import Options
    from vidrio.look.changed import BeforeAfter
    from vidrio.look.command_line import CommandLine
    from vidrio.look.run import LoadedModel
    from vidrio.look.translated import Reading
    from vidrio.search import Tree

# NumPy reads this when it is first imported. One sentence means small products: a second thread only waits for the
# first, and takes three times the processor's time for it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What a run makes lives until it ends: looking for garbage after every 700 objects finds none.
gc.set_threshold(100_000)

# Target, search, reading and what-ifs; with --model and --dtype they are what `RunRequest.take` takes.
run_options = together(
    click.option("--target", metavar="TEXT", help="Force this translation instead of searching for one."),
    search_options,
    click.option("--as-typed", "typed", is_flag=True, help="Read TEXT itself, not what translating reads."),
    whatif_options,
)


@dataclass(frozen=True)
class RunRequest:
    """A text, a model, and everything that decides what is computed."""

    text: str
    model_name: str | None
    dtype: str | None
    target: str | None
    typed: bool
    search: Mapping[str, Any]
    whatif: Asked

    @staticmethod
    def take(text: str, given: dict[str, Any]) -> "RunRequest":
        """What a command was given, which loses the options of this request."""
        search = {name: given.pop(name) for name in SEARCH}
        whatif = take_asked(given)
        names = ("model_name", "dtype", "target", "typed")
        return RunRequest(given_text(text), **{name: given.pop(name) for name in names}, search=search, whatif=whatif)

    def open(self) -> "LoadedModel":
        return opened(self.model_name, self.dtype)

    def options(self, model: "LoadedModel") -> "Options":
        return as_options(model.config, self.search)

    def read(self, model: "LoadedModel") -> "Reading":
        """The text as translating gives it to the model, and what that printed; stderr tells where it is another."""
        from vidrio.look.translated import Reading, read_as_translated
        from vidrio.look.writing import visible

        if self.typed or self.target is not None:
            return Reading(self.text)
        reading = read_as_translated(model, self.text, self.options(model))
        for note in reading.notes:
            click.echo(visible(f"{note}; --as-typed reads the text itself"), err=True)
        return reading

    def run(self, model: "LoadedModel", tree: "Tree | None" = None) -> "BeforeAfter":
        """The run, and the run with what was changed."""
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
        """What must be told again to see the same run from another side."""
        from vidrio.look.command_line import CommandLine

        again = {"model": self.model_name, "dtype": self.dtype, "target": self.target, **self.search}
        options = ([f"--{name.replace('_', '-')}", str(value)] for name, value in again.items() if value is not None)
        words = [part for option in options for part in option]
        return CommandLine(self.text, (*words, *["--as-typed"] * self.typed, *as_typed(self.whatif)))
