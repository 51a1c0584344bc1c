"""`vidrio score`: the model's log-probability of given translations."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vidrio.commands._options import THERE, json_option, model_option
from vidrio.errors import DataError
from vidrio.model.json_text import json_text

if TYPE_CHECKING:
    from vidrio.translate.translation import Scored
    from vidrio.translate.translator import Translator

AT_ONCE = 512  # pairs


@click.command()
@click.argument("pair", metavar="[SOURCE TRANSLATION]", nargs=-1)
@model_option
@click.option("--src", "source", type=THERE, help="Sources, one a line.")
@click.option("--tgt", "target", type=THERE, help="Their translations, one a line.")
@json_option
def score(
    pair: tuple[str, ...], model_name: str | None, source: Path | None, target: Path | None, as_json: bool
) -> None:
    """How likely a model finds given translations: of SOURCE the TRANSLATION, or of the lines of two files.

    For files, each line out holds the natural logarithm of the translation's probability, a tab, and its mean over
    the tokens, the end token included.
    """
    if (len(pair), source is None, target is None) not in ((2, True, True), (0, False, False)):
        raise click.UsageError("Give SOURCE and TRANSLATION, or --src and --tgt.")
    from vidrio.translate.translator import Translator

    if source is not None and target is not None:
        from vidrio.commands._lines import read_aligned

        sources, targets = read_aligned([source, target])
    else:
        sources, targets = [pair[0]], [pair[1]]
    translator = Translator.load(model_name)
    _refuse_what_does_not_fit(translator, sources, targets)
    for first in range(0, len(sources), AT_ONCE):
        pairs = list(zip(sources[first : first + AT_ONCE], targets[first : first + AT_ONCE], strict=True))
        for (text, translation), scored in zip(pairs, translator.score(pairs), strict=True):
            if as_json:
                click.echo(json_text(_record(text, translation, scored)))
            elif pair:
                click.echo("\n".join(_table(scored)))
            else:
                click.echo(f"{scored.log_prob:.4f}\t{scored.log_prob / len(scored.tokens):.4f}")


def _refuse_what_does_not_fit(translator: "Translator", sources: list[str], targets: list[str]) -> None:
    """Before anything is printed."""
    pairs = enumerate(zip(sources, targets, strict=True), start=1)
    long = [str(number) for number, pair in pairs if not translator.fits(*pair)]
    if long:
        raise DataError(
            "a pair is scored as one sentence, and some are empty or longer than the model's positions",
            found=f"lines {', '.join(long[:8])}{' …' if len(long) > 8 else ''}",
            do=f"split them or leave them out; the model holds {translator.config.max_positions} tokens",
        )


def _record(text: str, translation: str, scored: "Scored") -> dict[str, object]:
    tokens = [{"token": t, "log_prob": p} for t, p in zip(scored.tokens, scored.log_probs, strict=True)]
    return {"text": text, "translation": translation, "log_prob": scored.log_prob, "tokens": tokens}


def _table(scored: "Scored") -> list[str]:
    width = max(map(len, (*scored.tokens, "token")))
    rows = zip(scored.tokens, scored.log_probs, strict=True)
    return [
        f"{'token':<{width}}    log p        p",
        *(f"{token:<{width}} {log_prob:8.4f} {math.exp(log_prob):8.4f}" for token, log_prob in rows),
        f"{'all':<{width}} {scored.log_prob:8.4f} {math.exp(scored.log_prob):8.4f}",
    ]
