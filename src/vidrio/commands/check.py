"""`vidrio check TEXT`: recompute every number of a run independently, and report the result in the exit code."""

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
    """Run the model on TEXT and recompute every number from its inputs with an independent implementation. Also check
    that the parts of each word's logit difference add up (see `vidrio why`).

    The exit code is 0 if rounding explains every difference. Otherwise it is 1, and the worst numbers are listed.

    \b
    vidrio check "Hello world"
    vidrio check "Hello world" --model lesson --softmax naive
    """
    from vidrio.glass.checking import check as check_trace
    from vidrio.look.parts import explained_share
    from vidrio.look.receipt import check_view

    request = RunRequest.take(text, given)
    tried = request.run(request.open())
    tell_unknown(tried.after)
    seen = tried.after
    checked, sums = check_trace(seen.trace), (0, 0.0) if seen.empty or seen.stopped else explained_share(seen.trace)
    click.echo("\n".join(check_view(tried, checked, sums)))
    return 1 if checked.wrong or sums[1] > 1 else 0
