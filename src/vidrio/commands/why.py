"""`vidrio why ADDRESS TEXT`: the receipt of one number."""

from typing import Any

import click

from vidrio.commands._options import dtype_option, json_option, model_option, precision_option, print_json
from vidrio.commands.run_request import RunRequest, refuse_copied, run_options, tell_unknown


@click.command()
@click.argument("address")
@click.argument("text")
@model_option
@click.option(
    "--as",
    "kind",
    type=click.Choice(["python", "spreadsheet"]),
    help="Print only the arithmetic, at full precision, for copying.",
)
@run_options
@precision_option
@dtype_option
@json_option
def why(address: str, text: str, precision: int, **given: Any) -> None:
    """Print the receipt of the number at ADDRESS when the model reads TEXT.

    The receipt shows the formula, fills in the numbers, works it out step by step, recomputes it independently in
    float64, and gives the largest error that rounding explains. Rows and columns are named by number or by token.

    \b
    vidrio why "enc.0.self.scores.h0[0,1]" "Hello world"
    vidrio why "out.prob[0,hola]" "Hello world" --model lesson --as spreadsheet
    vidrio why "enc.0.self.weights.h0[0,1]" "Hello world" --softmax naive
    """
    from vidrio.errors import InputError
    from vidrio.look import receipt as report

    request = RunRequest.take(text, given)
    kind, as_json = given.pop("kind"), given.pop("as_json")
    if kind and as_json:
        raise click.UsageError("--as cannot be combined with --json.")
    model = request.open()
    tried = request.run(model)
    tell_unknown(tried.after)
    trace, file = tried.after.trace, model.path / "model.safetensors"
    refuse_copied(tried.after)
    if tried.after.empty:
        raise InputError("the text is empty, so nothing was computed", do="give a text to translate")
    if as_json:
        print_json(report.receipt_data(tried.after, address))
    elif kind:
        click.echo(report.copied(trace, address, kind))
    else:
        click.echo("\n".join(report.why(trace, address, file, precision)))
