"""`vidrio check TEXT`: recompute the numbers of a run independently; the exit code tells."""

from typing import Any

import click

from vidrio.commands._options import dtype_option, model_option
from vidrio.commands.run_request import RunRequest, run_options, tell_unknown


@click.command()
@click.argument("text")
@model_option
@run_options
@dtype_option
def check(text: str, **given: Any) -> int:
    """Recompute every number of the run on TEXT from its inputs, by an independent implementation.

    It also compares the parameters with the model's file, bit by bit.

    Exit code 0: rounding explains every difference. 1: it does not; the worst numbers are named.

    \b
    vidrio check "Hello world"
    vidrio check "Hello world" --model lesson --softmax naive
    """
    from vidrio.look import checked as report

    request = RunRequest.take(text, given)
    tried = request.run(request.open())
    tell_unknown(tried.after)
    outcome = report.run(tried)
    click.echo("\n".join(report.view(outcome)))
    return 0 if outcome.agrees else 1
