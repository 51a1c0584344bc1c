"""`vidrio why WORD TEXT`: explain a word of the translation. `vidrio why ADDRESS TEXT`: print the receipt of a
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
    """The requested measurements, which supplement the decomposition."""

    delete_words: bool
    hide_words: bool
    ablate_heads: bool
    patch_from: str | None

    def found(self, why: "Why") -> "Iterator[tuple[str, list[Without] | CausalMap]]":
        """Yield the key of each measurement in the JSON output, and its result."""
        from vidrio.look import interventions
        from vidrio.look.translated import translator_of

        interventions.engine_of(why.seen)  # raises an error if the model does not translate
        if self.delete_words:
            yield "deleted", interventions.each_word_deleted(why.seen, translator_of(why.seen.model))
        if self.hide_words:
            yield "hidden", interventions.each_word_hidden(why.seen)
        if self.ablate_heads:
            yield "heads", interventions.each_head_off(why.seen)
        if self.patch_from is not None:
            yield "patched", interventions.rows_patched(why.seen, why.decision, self.patch_from)


@click.command()
@click.argument("word", metavar="WORD|ADDRESS")
@click.argument("text")
@model_option
@click.option("--not", "rival", metavar="WORD", help="Compare WORD with this word. [the runner-up]")
@click.option("--all", "every", is_flag=True, help="Print every part of the difference.")
@click.option("--delete-words", is_flag=True, help="Also delete each source word in turn and translate again.")
@click.option("--hide-words", is_flag=True, help="Also hide each source word in turn from all attention.")
@click.option("--ablate-heads", is_flag=True, help="Also turn each attention head off in turn.")
@click.option("--patch-from", metavar="TEXT", help="Also substitute each row from a run on this text, in turn.")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["python", "spreadsheet"]),
    help="Print only a receipt's arithmetic, at full precision, ready to paste.",
)
@run_options
@precision_option
@dtype_option
@json_option
def why(word: str, text: str, precision: int, **given: Any) -> None:
    """Explain why the translation of TEXT contains a word, or print the receipt of a number.

    For a WORD of the translation, print the difference between its logit and the logit of the runner-up (or of another
    word), as an exact sum of contributions from each token read, the feed-forward networks, the biases and rounding.
    Then print the five most likely tokens after each sub-layer of the decoder. --delete-words, --hide-words,
    --ablate-heads and --patch-from measure the effect of removing a word or a head, or of substituting a row from
    another run.

    For an ADDRESS (which contains a dot or a bracket and is not a word of the translation), print the formula of that
    number, filled in and evaluated step by step, an independent recomputation in float64, and the largest error that
    rounding can explain. Rows and columns can be given by index or by token.

    \b
    vidrio why coche "I bought a new car yesterday." --not auto
    vidrio why jefa "My boss sold her car." --patch-from "My boss sold his car."
    vidrio why "enc.0.self.scores.h0[0,1]" "Hello world"
    vidrio why "out.prob[0,hola]" "Hello world" --model lesson --as spreadsheet
    vidrio why "enc.0.self.weights.h0[0,1]" "Hello world" --softmax naive
    """
    from vidrio.errors import InputError
    from vidrio.look import intervention_views as views
    from vidrio.look import receipt as report
    from vidrio.look.chosen_word import is_word
    from vidrio.look.why_word import data, tokens_data, view, why_word

    request = RunRequest.take(text, given)
    kind, as_json = given.pop("kind"), given.pop("as_json")
    rival, every = given.pop("rival"), given.pop("every")
    measured = Measured(*(given.pop(name) for name in Measured._fields))
    if kind and as_json:
        raise click.UsageError("--as cannot be combined with --json.")
    if any(measured) and request.whatif:
        raise click.UsageError("Measurements such as --delete-words cannot be combined with what-ifs.")
    model = request.open()
    seen = request.run(model).after
    tell_unknown(seen)
    refuse_copied(seen)
    if seen.empty:
        raise InputError("the text is empty, so nothing was computed", do="enter a text to translate")
    if rival is not None or every or any(measured) or is_word(seen, word):
        if kind:
            raise click.UsageError("--as applies to the receipt of a number, not to a word.")
        made = why_word(seen, word, rival)
        found = list(measured.found(made)) if any(one not in (False, None) for one in measured) else []
        if as_json:
            measurements = {name: views.as_data(made, one) for name, one in found}
            print_json({**data(made), "tokens": tokens_data(made), **measurements})
        else:
            click.echo("\n".join(view(made, precision, every=every)))
            for name, one in found:
                click.echo("\n".join(("", *views.view(made, name, one, precision))))
    elif as_json:
        print_json(report.receipt_data(seen, word))
    elif kind:
        click.echo(report.copied(seen.trace, word, kind))
    else:
        click.echo("\n".join(report.why(seen.trace, word, model.path / "model.safetensors", precision)))
