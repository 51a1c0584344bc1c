"""`vidrio look TEXT`: every step from text to text, with its numbers."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import dtype_option, json_option, model_option, precision_option, print_json
from vidrio.commands.run_request import RunRequest, refuse_copied, run_options
from vidrio.model.files import write_output

if TYPE_CHECKING:
    from vidrio.look.changed import BeforeAfter

FILE = click.Path(dir_okay=False)


@click.command()
@click.argument("text")
@model_option
@click.option("--at", "addresses", metavar="ADDRESS", multiple=True, help="A layer, a matrix or a number. Repeatable.")
@run_options
@precision_option
@dtype_option
@json_option
@click.option("--html", metavar="FILE", type=FILE, help="Write a page.")
def look(text: str, precision: int, **given: Any) -> None:
    """Look inside: how TEXT becomes its translation, every step with its numbers.

    Without further options: the whole machine, a line a step, and the translation token by token. TEXT may be -, for
    standard input.

    \b
    vidrio look "Hello world" --at enc.0
    vidrio look "Hello world" --at enc.0.self.weights.h0
    vidrio look "Hello world" --html page.html
    """
    from vidrio.search import Tree

    request = RunRequest.take(text, given)
    views = Views(**given, precision=precision)
    views.refuse_contradictions()
    model = request.open()
    options = request.options(model)
    show(views, request, request.run(model, Tree() if views.html and options.sampling is None else None))


@dataclass(frozen=True, kw_only=True)
class Views:
    """What is asked for of a run."""

    addresses: tuple[str, ...]
    as_json: bool
    html: str | None
    precision: int

    def refuse_contradictions(self) -> None:
        """Standard output holds one thing: text, JSON or a page."""
        outputs = ["--at"] * bool(self.addresses and not self.as_json) + ["--json"] * self.as_json
        outputs += ["--html -"] * (self.html == "-")
        if len(outputs) > 1:
            raise click.UsageError(f"{' and '.join(outputs)} would all go to standard output: ask for one at a time")


def show(views: Views, request: RunRequest, tried: "BeforeAfter") -> None:
    """Print what was asked for, and write the page."""
    from vidrio.glass.trace import parse_address
    from vidrio.look import changed, overview, quantities, run_data

    if views.addresses:
        refuse_copied(tried.after)
    lead_on, precision = request.command_line(), views.precision
    run = replace(tried.after, changes=[f"{change.asked}: {change.says}" for change in tried.whatif.changes])
    if views.html is not None:
        from vidrio.look.page import run_page

        write(views.html, run_page(replace(tried, after=run), lead_on))
    if views.as_json and views.addresses:
        names = dict.fromkeys(n for a in views.addresses for n in quantities.under(run.trace, parse_address(a).name))
        print_json([run_data.quantity_data(run.trace, name) for name in names])
    elif views.as_json:
        print_json(run_data.answer(tried, request.text))
    elif views.addresses:
        found = (quantities.at(run.trace, address, lead_on, precision) for address in views.addresses)
        click.echo("\n\n".join("\n".join(lines) for lines in found))
    elif views.html is None:
        whole = changed.view(tried, precision) if tried.whatif else overview.overview(run, lead_on, precision)
        click.echo("\n".join(whole))


def write(path: str, content: str) -> None:
    """A file, whole or not at all, or into a device or a pipe; `-` is standard output."""
    if path == "-":
        click.echo(content, nl=False)
        return
    write_output(Path(path), content.encode())
    click.echo(f"wrote {path} ({len(content.encode()):,} bytes)", err=True)
