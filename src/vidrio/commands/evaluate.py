"""`vidrio evaluate MODEL --src F --ref F`: measure speed and scores on a test set, with confidence intervals."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import FILE, THERE, as_options, json_option, print_json, search_options

if TYPE_CHECKING:
    from vidrio.score.evaluate import Evaluation

TOKENIZERS = click.Choice(["13a", "none", "intl", "char", "zh"])


@click.command()
@click.argument("model_name", metavar="[MODEL]", required=False)
@click.option("--src", "source", type=THERE, required=True, help="Source sentences, one per line.")
@click.option(
    "--ref", "references", type=THERE, required=True, multiple=True, help="Reference translations; repeatable."
)
@click.option("--against", metavar="MODEL|FILE", help="Compare with another model or a file of translations.")
@click.option("-o", "--output", type=FILE, help="Save the translations to this file.")
@click.option("--tokenize", type=TOKENIZERS, default="13a", show_default=True, help="Tokenizer for BLEU.")
@click.option("--lowercase", is_flag=True, help="Ignore case.")
@json_option
@search_options
def evaluate(
    model_name: str | None, source: Path, references: tuple[Path, ...], against: str | None, **given: Any
) -> None:
    """Translate a test set and score the translations.

    MODEL is a folder or a name. Scores are computed by sacreBLEU, and reported with their signatures and 95 %
    confidence intervals from bootstrap resampling. With --against, the difference is also tested for significance.
    """
    from vidrio.commands._lines import read_aligned
    from vidrio.commands._output import refuse_same_file
    from vidrio.model.files import write_output
    from vidrio.score import evaluate as evaluation
    from vidrio.score.metrics import usual_metrics
    from vidrio.translate.translator import Translator

    output, as_json = given.pop("output"), given.pop("as_json")
    if output is not None:
        refuse_same_file(output, [source, *references, *([Path(against)] if against else [])])
    # If sacreBLEU is missing, fail now, not after a long translation.
    metrics = usual_metrics(tokenize=given.pop("tokenize"), lowercase=given.pop("lowercase"))
    sources, *right = read_aligned([source, *references])
    translator = Translator.load(model_name)
    options = as_options(translator.config, given)
    other = None
    if against is not None and Path(against).is_file():
        other, _ = read_aligned([Path(against), source])
    elif against is not None:
        rival = Translator.load(against)
        other = evaluation.translate_all(rival, sources, as_options(rival.config, given)).translations
    outcome = evaluation.evaluate(translator, sources, right, metrics, options, against=other)
    if output is not None:
        write_output(output, "".join(f"{line}\n" for line in outcome.run.translations).encode())
    if as_json:
        inputs = {"model": str(translator.folder), "source": str(source), "references": list(map(str, references))}
        print_json({**inputs, "against": against, **asdict(outcome)})
    else:
        click.echo("\n".join([f"{translator.folder} on {source}", *_table(outcome, against)]))


def _table(outcome: "Evaluation", against: str | None) -> list[str]:
    from vidrio.score.metrics import CERTAIN

    run = outcome.run
    lines = [f"{outcome.lines:,} lines, beam {outcome.beam}, length penalty {outcome.length_penalty:g}", ""]
    for n, score in enumerate(outcome.scores):
        line = f"  {score.metric:<6} {score.value:7.2f} ± {score.half_width:<5.2f}"
        if outcome.other_scores:
            other = outcome.other_scores[n]
            sure = "" if score.p is None or score.p < CERTAIN else "  may be chance"
            line += f"  against {other.value:7.2f} ± {other.half_width:<5.2f}  p = {score.p:.3f}{sure}"
        lines.append(line)
    left_out = f"  (without {outcome.left_out:,} lines that are empty or too long)" if outcome.left_out else ""
    speed = f"{run.tokens_per_second:,.0f} tokens/s, {outcome.lines / max(run.seconds, 1e-9):,.0f} lines/s"
    lines += [
        "",
        f"  {outcome.bits_per_character:.3f} bits per character of the reference{left_out}",
        f"  {speed}: {run.tokens:,} tokens in {run.seconds:.1f} s",
        f"  {run.cut:,} sentences reached the length limit",
        "",
        "± is half the width of the interval that contains 95 % of 1,000 bootstrap samples.",
        "Higher is better for BLEU and chrF, lower for TER and bits.",
    ]
    if outcome.other_scores:
        lines.append(f"Compared with {against}. p is how often chance alone would produce such a difference.")
    return [*lines, "", *(f"{score.metric} {score.signature}" for score in outcome.scores)]
