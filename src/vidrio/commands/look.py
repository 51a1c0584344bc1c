"""`vidrio look TEXT`: every step from text to text, with its numbers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import dtype_option, json_option, model_option, precision_option
from vidrio.commands.run_request import RunRequest, refuse_copied, run_options
from vidrio.commands.training_options import TrainingViews, show_training, training_options
from vidrio.model.files import write_output

if TYPE_CHECKING:
    from vidrio.look.blocks import Block
    from vidrio.look.changed import BeforeAfter
    from vidrio.look.command_line import CommandLine
    from vidrio.look.run import Look

FILE = click.Path(dir_okay=False)


@click.command()
@click.argument("text")
@model_option
@click.option("--at", "addresses", metavar="ADDRESS", multiple=True, help="A layer, a matrix or a number. Repeatable.")
@click.option("--heads", is_flag=True, help="Every attention head: entropy and largest weight.")
@click.option("--embedding", is_flag=True, help="How alike the tokens are, and their neighbours.")
@click.option("--step", "steps", metavar="N", type=click.IntRange(0), multiple=True, help="One decoding step.")
@click.option("--tree", is_flag=True, help="The search tree: every hypothesis, and why it died.")
@run_options
@training_options
@precision_option
@dtype_option
@json_option
@click.option("--values", type=click.Choice(["none", "at", "all"]), help="Which values --json holds. [those of --at]")
@click.option("--html", metavar="FILE", type=FILE, help="Write a page.")
@click.option("--ipynb", metavar="FILE", type=FILE, help="Write a notebook.")
def look(text: str, precision: int, **given: Any) -> None:
    """Look inside: how TEXT becomes its translation, every step with its numbers.

    Without further options: the whole machine, a line a step, and the translation token by token. TEXT may be -, for
    standard input.

    \b
    vidrio look "Hello world" --at enc.0
    vidrio look "Hello world" --at enc.0.self.weights.h0
    vidrio look "Hello world" --step 1
    vidrio look "Hello world" --beam 4 --tree
    vidrio look "Hello world" --html page.html
    vidrio look "Hello world" --target "hola mundo" --training
    """
    from vidrio.search import Tree

    request = RunRequest.take(text, given)
    training = TrainingViews.take(given, changed=bool(request.whatif))
    views = Views(**given, precision=precision)
    views.refuse_what_cannot_be_combined()
    model = request.open()
    if training is not None:
        show_training(training, request, model, precision)
        return
    options = request.options(model)
    tree = Tree() if (views.tree or views.html) and options.sampling is None else None
    show(views, request, request.run(model, tree))


@dataclass(frozen=True, kw_only=True)
class Views:
    """What is asked for of a run."""

    addresses: tuple[str, ...]
    heads: bool
    embedding: bool
    steps: tuple[int, ...]
    tree: bool
    as_json: bool
    values: str | None
    html: str | None
    ipynb: str | None
    precision: int

    def refuse_what_cannot_be_combined(self) -> None:
        """Standard output holds one thing: text, JSON, a page or a notebook."""
        if self.values and not self.as_json:
            raise click.UsageError("--values says what --json holds: give --json too")
        views = {"--heads": self.heads, "--embedding": self.embedding, "--step": self.steps}
        if not self.as_json:  # which holds these
            views |= {"--at": self.addresses, "--tree": self.tree}
        text = [name for name, asked in views.items() if asked]
        files = [f"--{name} -" for name, file in (("html", self.html), ("ipynb", self.ipynb)) if file == "-"]
        taken = [*text[:1], *["--json"] * self.as_json, *files]
        if len(taken) > 1:
            raise click.UsageError(f"{' and '.join(taken)} would all go to standard output: ask for one at a time")


def show(asked: Views, request: RunRequest, tried: "BeforeAfter") -> None:
    """Print the views that were asked for, and write the files."""
    from vidrio.draw.terminal import text
    from vidrio.look import changed, overview

    if asked.addresses or asked.heads or asked.embedding or asked.steps or asked.tree:
        refuse_copied(tried.after)
    lead_on, precision = request.command_line(), asked.precision
    run = replace(tried.after, changes=[f"{change.asked}: {change.says}" for change in tried.whatif.changes])
    if asked.as_json:
        from vidrio.look import manifest

        what_if = changed.as_data(tried) if tried.whatif else None
        values = asked.values or ("at" if asked.addresses else "none")
        click.echo(manifest.to_json(run, values, asked.addresses, what_if), nl=False)
    views = [text(view, precision) for view in views_of(asked, run, lead_on)]
    if asked.html is not None:
        from vidrio.draw.page import run_page

        write(asked.html, run_page(replace(tried, after=run), lead_on))
    if asked.ipynb is not None:
        from vidrio.draw import notebook

        made = notebook.notebook(run, model_name=request.model_name, asked=request.whatif, precision=precision)
        write(asked.ipynb, made)
    if not (views or asked.as_json or asked.html or asked.ipynb):
        whole = changed.tell(tried, precision) if tried.whatif else overview.overview(run, lead_on, precision)
        views = [text(whole, precision)]
    if views:
        click.echo("\n\n".join(views))


def views_of(asked: Views, run: "Look", lead_on: "CommandLine") -> "Iterator[Iterable[Block]]":
    """The views that options name, in the order in which they are printed."""
    from vidrio.look import decoding, heads, quantities

    if not asked.as_json:
        yield from (quantities.at(run.trace, address, lead_on, asked.precision) for address in asked.addresses)
    if asked.heads:
        yield heads.overview(run.trace, lead_on, asked.precision)
    if asked.embedding:
        yield heads.embeddings(run.trace, asked.precision)
    yield from (decoding.step(run, step, lead_on, asked.precision) for step in asked.steps)
    if asked.tree and not asked.as_json:
        yield decoding.tree(run, asked.precision)


def write(path: str, content: str) -> None:
    """A file, whole or not at all, or into a device or a pipe; `-` is standard output."""
    if path == "-":
        click.echo(content, nl=False)
        return
    write_output(Path(path), content.encode())
    click.echo(f"wrote {path} ({len(content.encode()):,} bytes)", err=True)
