"""`vidrio why WORD TEXT` explains a word of the translation; `vidrio why ADDRESS TEXT` prints the receipt of one
number."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from vidrio.commands._options import dtype_option, json_option, model_option, precision_option, print_json
from vidrio.commands.run_request import RunRequest, refuse_copied, run_options, tell_unknown

if TYPE_CHECKING:
    from vidrio.look.interventions import CausalMap, Without
    from vidrio.look.why_word import Why


class Measured(NamedTuple):
    """What is measured besides the sum."""

    delete_words: bool
    hide_words: bool
    ablate_heads: bool
    patch_from: str | None

    def found(self, why: "Why") -> "Iterator[tuple[str, list[Without] | CausalMap]]":
        """The results, under their names in JSON."""
        from vidrio.look import interventions
        from vidrio.look.translated import translator_of

        interventions.engine_of(why.seen)  # refuses a model that does not translate
        if self.delete_words:
            yield "deleted", interventions.each_word_deleted(why.seen, translator_of(why.seen.model))
        if self.hide_words:
            yield "hidden", interventions.each_word_hidden(why.seen)
        if self.ablate_heads:
            yield "heads", interventions.each_head_off(why.seen)
        if self.patch_from is not None:
            yield "patched", interventions.rows_patched(why.seen, why.decision, self.patch_from)


@click.command()
@click.argument("asked", metavar="WORD|ADDRESS")
@click.argument("text")
@model_option
@click.option("--not", "rival", metavar="WORD", help="Compare WORD with this one. [the runner-up]")
@click.option("--all", "every", is_flag=True, help="Print every part of the difference.")
@click.option("--delete-words", is_flag=True, help="Also delete each source word in turn; translate anew.")
@click.option("--hide-words", is_flag=True, help="Also hide each source word in turn from all attention.")
@click.option("--ablate-heads", is_flag=True, help="Also turn each attention head off in turn.")
@click.option("--patch-from", metavar="TEXT", help="Also insert each row of this text's run in turn.")
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
    likeliest tokens after each sub-layer of the decoder. --delete-words, --hide-words, --ablate-heads and --patch-from
    measure what happens without a word or a head, or with a row of another run.

    For an ADDRESS (with a dot or a bracket, and not a word of the translation): the formula of that number, filled
    in and worked out step by step, an independent recomputation in float64, and the largest error that rounding
    explains. Rows and columns are named by number or by token.

    \b
    vidrio why coche "I bought a new car yesterday." --not auto
    vidrio why su "She lost her phone." --patch-from "She lost his phone."
    vidrio why "enc.0.self.scores.h0[0,1]" "Hello world"
    vidrio why "out.prob[0,hola]" "Hello world" --model lesson --as spreadsheet
    vidrio why "enc.0.self.weights.h0[0,1]" "Hello world" --softmax naive
    """
    from vidrio.errors import InputError
    from vidrio.look import intervention_views as views
    from vidrio.look import receipt as report
    from vidrio.look.asked_word import is_word
    from vidrio.look.why_word import data, view, why_word

    request = RunRequest.take(text, given)
    kind, as_json = given.pop("kind"), given.pop("as_json")
    rival, every = given.pop("rival"), given.pop("every")
    measured = Measured(*(given.pop(name) for name in Measured._fields))
    if kind and as_json:
        raise click.UsageError("--as cannot be combined with --json.")
    if any(measured) and request.whatif:
        raise click.UsageError("--delete-words and its like cannot be combined with what-ifs.")
    model = request.open()
    seen = request.run(model).after
    tell_unknown(seen)
    refuse_copied(seen)
    if seen.empty:
        raise InputError("the text is empty, so nothing was computed", do="give a text to translate")
    if rival is not None or every or any(measured) or is_word(seen, asked):
        if kind:
            raise click.UsageError("--as is for the receipt of a number, not for a word.")
        made = why_word(seen, asked, rival)
        found = list(measured.found(made)) if any(one not in (False, None) for one in measured) else []
        if as_json:
            print_json(data(made) | {name: views.as_data(made, one) for name, one in found})
        else:
            click.echo("\n".join(view(made, precision, every=every)))
            for name, one in found:
                click.echo("\n".join(("", *views.view(made, name, one, precision))))
    elif as_json:
        print_json(report.receipt_data(seen, asked))
    elif kind:
        click.echo(report.copied(seen.trace, asked, kind))
    else:
        click.echo("\n".join(report.why(seen.trace, asked, model.path / "model.safetensors", precision)))
