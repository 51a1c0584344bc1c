"""`vidrio why WORD TEXT`: why the translation has a word. `vidrio why ADDRESS TEXT`: the receipt of one number."""

from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import dtype_option, json_option, model_option, precision_option, print_json
from vidrio.commands.run_request import RunRequest, refuse_copied, run_options, tell_unknown

if TYPE_CHECKING:
    from vidrio.look.why_word import Why


@click.command()
@click.argument("asked", metavar="WORD|ADDRESS")
@click.argument("text")
@model_option
@click.option("--not", "rival", metavar="WORD", help="Compare WORD with this one. [the runner-up]")
@click.option("--all", "every", is_flag=True, help="Print every part of the difference.")
@click.option("--delete-words", "delete", is_flag=True, help="Also delete each source word in turn; translate anew.")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["python", "spreadsheet"]),
    help="Print only the arithmetic of a receipt, at full precision, for copying.",
)
@run_options
@precision_option
@dtype_option
@json_option
def why(asked: str, text: str, precision: int, **given: Any) -> None:
    """Print why the translation of TEXT has a word, or the receipt of one of its numbers.

    For a WORD of the translation: the difference between its logit and that of the runner-up (or of another word),
    as an exact sum of parts: each token that was read, the feed-forward networks, biases and rounding. Then the five
    likeliest tokens after each sub-layer of the decoder.

    For an ADDRESS (with a dot or a bracket, and not a word of the translation): the formula of that number, filled
    in and worked out step by step, an independent recomputation in float64, and the largest error that rounding
    explains. Rows and columns are named by number or by token.

    \b
    vidrio why coche "I bought a new car yesterday." --not auto
    vidrio why "enc.0.self.scores.h0[0,1]" "Hello world"
    vidrio why "out.prob[0,hola]" "Hello world" --model lesson --as spreadsheet
    vidrio why "enc.0.self.weights.h0[0,1]" "Hello world" --softmax naive
    """
    from vidrio.errors import InputError
    from vidrio.look import receipt as report
    from vidrio.look.asked_word import is_word
    from vidrio.look.why_word import why_word

    request = RunRequest.take(text, given)
    kind, as_json = given.pop("kind"), given.pop("as_json")
    rival, every, delete = given.pop("rival"), given.pop("every"), given.pop("delete")
    if kind and as_json:
        raise click.UsageError("--as cannot be combined with --json.")
    if delete and request.whatif:
        raise click.UsageError("--delete-words cannot be combined with what-ifs.")
    model = request.open()
    seen = request.run(model).after
    tell_unknown(seen)
    refuse_copied(seen)
    if seen.empty:
        raise InputError("the text is empty, so nothing was computed", do="give a text to translate")
    if rival is not None or every or delete or is_word(seen, asked):
        if kind:
            raise click.UsageError("--as is for the receipt of a number, not for a word.")
        _print_word(why_word(seen, asked, rival), request if delete else None, as_json, precision, every=every)
    elif as_json:
        print_json(report.receipt_data(seen, asked))
    elif kind:
        click.echo(report.copied(seen.trace, asked, kind))
    else:
        click.echo("\n".join(report.why(seen.trace, asked, model.path / "model.safetensors", precision)))


def _print_word(why: "Why", delete: RunRequest | None, as_json: bool, precision: int, *, every: bool) -> None:
    """Print why a word; `delete`: the request whose words are deleted in turn."""
    from vidrio.errors import InputError
    from vidrio.look import why_word
    from vidrio.look.deleted import each_word_deleted
    from vidrio.look.translated import translator_of

    found = None
    if delete is not None:
        model = why.seen.model
        if model.config.shape != "encoder-decoder":
            raise InputError("--delete-words needs a translator", found=f"{model.name} is a model of another shape")
        found = each_word_deleted(why.seen, translator_of(model), delete.options(model))
    if as_json:
        print_json(why_word.data(why) | ({} if found is None else {"deleted": why_word.deleted_data(why, found)}))
        return
    click.echo("\n".join(why_word.view(why, precision, every=every)))
    if found is not None:
        click.echo("\n".join(("", *why_word.deleted_view(why, found, precision))))
