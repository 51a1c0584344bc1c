"""`vidrio check TEXT`: recompute numbers of a run independently; the exit code tells."""

import sys
from typing import Any

import click

from vidrio.commands._options import dtype_option, json_option, model_option, print_json
from vidrio.commands.run_request import RunRequest, run_options, tell_unknown


@click.command()
@click.argument("text")
@click.argument("addresses", metavar="[ADDRESS]...", nargs=-1)
@model_option
@click.option("--random", "count", metavar="N", type=click.IntRange(1), help="N numbers at random, of all quantities.")
@click.option("--random-seed", type=click.IntRange(0), default=0, show_default=True, help="Which random numbers.")
@click.option("--all", "every", is_flag=True, help="Every number of the run.")
@run_options
@dtype_option
@json_option
def check(text: str, addresses: tuple[str, ...], **given: Any) -> int:
    """Recompute numbers of the run on TEXT, each from its inputs, by an independent implementation.

    Without an option: all that came out, and numbers at random of every quantity on the way. ADDRESS may be a number, a
    quantity, or all that lies under it (enc.0, dec.1.cross). Every check also compares the parameters with the model's
    file, bit by bit, and the pass shown with decoding step by step.

    Exit code 0: rounding explains every difference. 1: it does not; the worst numbers are named.

    \b
    vidrio check "Hello world"
    vidrio check "Hello world" --random 200
    vidrio check "Hello world" --all
    vidrio check "Hello world" --model lesson enc.0 "out.prob[hola]@0"
    """
    from vidrio.look import checked as report
    from vidrio.look.terminal import text as plain

    request = RunRequest.take(text, given)
    count, seed, every, as_json = (given.pop(name) for name in ("count", "random_seed", "every", "as_json"))
    if sum([count is not None, every, bool(addresses)]) > 1:
        raise click.UsageError("give one of --random, --all and addresses")
    tried = request.run(request.open())
    tell_unknown(tried.after)
    which = report.Which(addresses, count, every, seed)
    outcome = report.run(tried, which, progress=_progress if not as_json else None)
    if as_json:
        print_json(report.as_data(outcome))
    else:
        click.echo(plain(report.tell(outcome)))
    return 0 if outcome.agrees else 1


def _progress(done: int, whole: int) -> None:
    """On a terminal, one line that is written over; told only when it takes a while."""
    if sys.stderr.isatty():
        ended = done >= whole
        click.echo(
            f"\rrecomputed {done:,} of {whole:,}" + ("\r" + " " * 60 + "\r" if ended else ""), nl=False, err=True
        )
