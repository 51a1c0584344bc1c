"""`vidrio check TEXT`: recompute the numbers of a run independently; the exit code tells."""

from typing import Any

import click

from vidrio.commands._options import dtype_option, json_option, model_option, print_json
from vidrio.commands.run_request import RunRequest, run_options, tell_unknown


@click.command()
@click.argument("text")
@click.argument("addresses", metavar="[ADDRESS]...", nargs=-1)
@model_option
@run_options
@dtype_option
@json_option
def check(text: str, addresses: tuple[str, ...], **given: Any) -> int:
    """Recompute every number of the run on TEXT from its inputs, by an independent implementation.

    ADDRESS may be a number, a quantity, or all that lies under it (enc.0, dec.1.cross); then only these are recomputed.
    Every check also compares the parameters with the model's file, bit by bit, and the pass shown with decoding step by
    step.

    Exit code 0: rounding explains every difference. 1: it does not; the worst numbers are named.

    \b
    vidrio check "Hello world"
    vidrio check "Hello world" --model lesson enc.0 "out.prob[0,hola]"
    """
    from vidrio.look import checked as report

    request = RunRequest.take(text, given)
    as_json = given.pop("as_json")
    tried = request.run(request.open())
    tell_unknown(tried.after)
    outcome = report.run(tried, addresses)
    if as_json:
        print_json(report.as_data(outcome))
    else:
        click.echo("\n".join(report.view(outcome)))
    return 0 if outcome.agrees else 1
