"""`vidrio evaluate MODEL --src F --ref F`: how good the translations of a test set are, how sure that is, how fast."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import ENGINES, FILE, SEARCH, THERE, as_options, json_option, search_options
from vidrio.model.files import write_output
from vidrio.model.json_text import json_text

if TYPE_CHECKING:
    from vidrio.score.evaluate import Evaluation
    from vidrio.translate.confidence import Confidence


@click.command()
@click.argument("model_name", metavar="[MODEL]", required=False)
@click.option("--src", "source", type=THERE, required=True, help="What to translate, a sentence a line.")
@click.option("--ref", "references", type=THERE, required=True, multiple=True, help="What is right. Repeatable.")
@click.option("--against", metavar="MODEL|FILE", help="Another model, or a file of translations, to compare with.")
@click.option("-o", "--output", type=FILE, help="Keep the translations here.")
@click.option(
    "--calibrate", is_flag=True, help="Keep in MODEL how well it judges itself here: see vidrio translate --confidence."
)
@search_options
@click.option("--engine", type=ENGINES, default="auto", show_default=True)
@click.option(
    "--tokenize",
    type=click.Choice(["13a", "none", "intl", "char", "zh"]),
    default="13a",
    show_default=True,
    help="How BLEU splits words.",
)
@click.option("--lowercase", is_flag=True, help="Upper and lower case are the same.")
@json_option
def evaluate(**given: Any) -> None:
    """Translate a test set and score the translations.

    MODEL is a folder or the name of a packaged model. Scores are sacreBLEU's, with signatures to quote and 95 %
    confidence by bootstrap; --against tells whether another system differs, or whether that may be chance.

    With --calibrate the test set (held-out pairs, not those to be scored on in the end) shows how far the model's own
    probabilities tell the quality of a translation; that is written into its folder, and nothing is scored.
    """
    request = Request(search={name: given.pop(name) for name in SEARCH}, **given)
    if request.calibrate:
        request.measure_confidence()
    else:
        request.score()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked on the command line."""

    model_name: str | None
    source: Path
    references: tuple[Path, ...]
    against: str | None
    output: Path | None
    calibrate: bool
    engine: str
    tokenize: str
    lowercase: bool
    as_json: bool
    search: Mapping[str, Any]

    def score(self) -> None:
        from vidrio.score import evaluate as evaluation
        from vidrio.score.metrics import usual_metrics
        from vidrio.translate.translator import Translator

        # Is sacreBLEU missing? That is told before a long translation.
        metrics = usual_metrics(tokenize=self.tokenize, lowercase=self.lowercase)
        sources, *right = evaluation.read_aligned([self.source, *self.references])
        other = None
        if self.against is not None and Path(self.against).is_file():
            other, _ = evaluation.read_aligned([Path(self.against), self.source])
        elif self.against is not None:
            rival = Translator.load(self.against, engine=self.engine)
            other = evaluation.translate_all(rival, sources, as_options(rival.config, self.search)).translations
        translator = Translator.load(self.model_name, engine=self.engine)
        options = as_options(translator.config, self.search)
        outcome = evaluation.evaluate(translator, sources, right, metrics, options, against=other)
        if self.output is not None:
            write_output(self.output, "".join(f"{line}\n" for line in outcome.run.translations).encode())
        if self.as_json:
            asked: dict[str, Any] = {"model": str(translator.folder), "source": str(self.source)}
            asked |= {"references": list(map(str, self.references)), "against": self.against}
            click.echo(json_text({**asked, **asdict(outcome)}, indent=2))
        else:
            click.echo(f"{translator.folder} on {self.source}")
            click.echo("\n".join(_table(outcome, self.against)))

    def measure_confidence(self) -> None:
        if self.against is not None or self.output is not None or len(self.references) > 1:
            raise click.UsageError("--calibrate takes one --ref, and neither --against nor --output.")
        from vidrio.score.evaluate import calibrate, read_aligned
        from vidrio.translate import confidence
        from vidrio.translate.translator import Translator

        sources, right = read_aligned([self.source, self.references[0]])
        translator = Translator.load(self.model_name, engine=self.engine)
        files = {"source": self.source.name, "reference": self.references[0].name}
        outcome = calibrate(translator, sources, right, as_options(translator.config, self.search), about=files)
        confidence.write(translator.folder, outcome)
        if self.as_json:
            click.echo(json_text(asdict(outcome), indent=2))
            return
        click.echo("\n".join(_confidence_table(outcome)))
        click.echo(f"written to {translator.folder / confidence.NAME}", err=True)


def _confidence_table(outcome: "Confidence") -> list[str]:
    rows = [("", "sentences", "words")]
    for name, label in (
        ("count", "held out"),
        ("mean", "chrF, or in the reference; mean"),
        ("pearson", "Pearson's r"),
        ("spearman", "Spearman's ρ"),
        ("auc", f"AUC, chrF below {outcome.sentences.low:g}, or not there"),
        ("calibration_error", "calibration error"),
    ):
        values = [getattr(of, name) for of in (outcome.sentences, outcome.words)]
        one, other = ("–" if v is None else f"{v:,}" if name == "count" else f"{v:.3f}" for v in values)
        rows.append((label, one, other))
    return [f"{label:<40}{one:>10}{other:>10}" for label, one, other in rows]


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
        f"  {run.cut:,} sentences did not come to an end",
        "",
        "± is the half width of the interval that holds 95 % of 1,000 bootstrap draws.",
        "BLEU and chrF: higher is better. TER and bits: lower.",
    ]
    if outcome.other_scores:
        lines.append(f"Compared with {against}. p: how often chance alone makes such a difference.")
    return [*lines, "", *(f"{score.metric} {score.signature}" for score in outcome.scores)]
