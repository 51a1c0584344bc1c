"""`vidrio look TEXT`: show every step of a translation, with its numbers."""

from pathlib import Path
from typing import Any

import click

from vidrio.commands._options import FILE, dtype_option, json_option, model_option, precision_option, print_json
from vidrio.commands.run_request import RunRequest, refuse_copied, run_options
from vidrio.model.files import write_output


@click.command()
@click.argument("text")
@model_option
@click.option(
    "--at", "addresses", metavar="ADDRESS", multiple=True, help="Address of a layer, matrix or number; repeatable."
)
@run_options
@precision_option
@dtype_option
@json_option
@click.option("--html", metavar="FILE", type=FILE, help="Write an interactive page.")
def look(text: str, addresses: tuple[str, ...], precision: int, as_json: bool, html: Path | None, **given: Any) -> None:
    """Show how TEXT becomes its translation, step by step, with all the numbers.

    By default, print one line per step, and the translation token by token.

    \b
    vidrio look "Hello world" --at enc.0
    vidrio look "Hello world" --at enc.0.self.weights.h0
    vidrio look "Hello world" --html page.html
    """
    from vidrio.glass.trace import parse_address
    from vidrio.look import changed, overview, quantities, run_data
    from vidrio.search import Tree

    request = RunRequest.take(text, given)
    model = request.open()
    tried = request.run(model, Tree() if html and request.options(model).sampling is None else None)
    if addresses:
        refuse_copied(tried.after)
    lead_on = request.command_line()
    run = tried.after
    if html is not None:
        from vidrio.look.page import run_page

        page = run_page(tried, lead_on).encode()
        write_output(html, page)
        click.echo(f"wrote {html} ({len(page):,} bytes)", err=True)
    if as_json and addresses:
        names = dict.fromkeys(n for a in addresses for n in quantities.under(run.trace, parse_address(a).name))
        print_json([run_data.quantity_data(run.trace, name) for name in names])
    elif as_json:
        print_json(run_data.answer(tried, request.text))
    elif addresses:
        found = (quantities.at(run.trace, address, lead_on, precision) for address in addresses)
        click.echo("\n\n".join("\n".join(lines) for lines in found))
    elif html is None:
        whole = changed.view(tried, precision) if tried.whatif else overview.overview(run, lead_on, precision)
        click.echo("\n".join(whole))
