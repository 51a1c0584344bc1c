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
    """Run the model on TEXT, and recompute every number from its inputs with an independent implementation.

    The exit code is 0 if rounding explains every difference; otherwise it is 1, and the worst numbers are listed.

    \b
    vidrio check "Hello world"
    vidrio check "Hello world" --model lesson --softmax naive
    """
    from vidrio.glass.checking import check as check_trace
    from vidrio.look.receipt import check_view

    request = RunRequest.take(text, given)
    tried = request.run(request.open())
    tell_unknown(tried.after)
    checked = check_trace(tried.after.trace)
    click.echo("\n".join(check_view(tried, checked)))
    return 1 if checked.wrong else 0
