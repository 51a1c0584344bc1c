"""`vidrio train pairs.tsv --to my-model`: train a translator on sentence pairs."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import LIMITS, LIMITS_OF, duration, names_of, together, two_names
from vidrio.commands._progress import Console

if TYPE_CHECKING:
    from vidrio.learn.task import Request, Task
    from vidrio.learn.train import Judgement, Run

SHARE = click.FloatRange(0, 1, max_open=True)
_STOP = (
    click.option("--time", "seconds", callback=duration, metavar="30m", help="Train for this long. [30m]"),
    click.option(
        "--epochs",
        metavar="X",
        type=click.FloatRange(0, min_open=True),
        help="Stop after this many epochs.",
    ),
    click.option("--steps", metavar="N", type=click.IntRange(1), help="Stop after this many steps."),
)
_DATA = (
    click.option("--dev", multiple=True, metavar="FILE", help="Validation pairs. [held out from PAIRS]"),
    click.option("--test", multiple=True, metavar="FILE", help="Test pairs. [held out from PAIRS]"),
    click.option(
        "--columns", callback=two_names, metavar="A,B", help="Source and target columns, by name or 1-based number."
    ),
    click.option(
        "--languages", callback=two_names, metavar="en,es", help="Language codes, for headers and the model card."
    ),
    click.option(
        "--vocabulary",
        metavar="N",
        type=click.IntRange(8),
        help="Maximum vocabulary size. [depends on the number of pairs]",
    ),
)
_SIZES = (
    click.option(
        "--preset", type=click.Choice(["tiny", "small", "base", "big"]), help="Model size. [depends on data and time]"
    ),
    click.option("--d-model", metavar="N", type=click.IntRange(1), help="Width of the model."),
    click.option("--heads", "n_heads", metavar="N", type=click.IntRange(1), help="Attention heads."),
    click.option("--d-ff", metavar="N", type=click.IntRange(1), help="Width of the feed-forward layers."),
    click.option("--encoder-layers", "n_encoder_layers", metavar="N", type=click.IntRange(1), help="Encoder layers."),
    click.option("--decoder-layers", "n_decoder_layers", metavar="N", type=click.IntRange(1), help="Decoder layers."),
    click.option(
        "--decoder",
        "decoder_cell",
        type=click.Choice(["attention", "ssru"]),
        help="Decoder self-attention, or a recurrent cell. [attention]",
    ),
    click.option("--norm", type=click.Choice(["pre", "post"]), help="Layer norm before or after each sub-layer. [pre]"),
    click.option("--activation", type=click.Choice(["relu", "gelu", "swish"]), help="Activation function. [relu]"),
    click.option("--positions", type=click.Choice(["sinusoidal", "learned"]), help="Position encoding. [sinusoidal]"),
    click.option("--max-positions", metavar="N", type=click.IntRange(2), help="Maximum tokens per text. [512]"),
)
_RECIPE = (
    click.option(
        "--rate",
        metavar="X",
        type=click.FloatRange(0, min_open=True),
        help="Peak learning rate. [depends on model size]",
    ),
    click.option(
        "--optimiser",
        type=click.Choice(["adam", "muon"]),
        help="Optimiser. [adam; muon on a GPU unless the model is tiny]",
    ),
    click.option(
        "--schedule",
        type=click.Choice(["linear", "cosine", "inverse-sqrt", "constant"]),
        help="Learning-rate schedule. [linear]",
    ),
    click.option("--warmup", metavar="N", type=click.IntRange(0), help="Warm-up steps. [500]"),
    click.option(
        "--batch-tokens",
        metavar="N",
        type=click.IntRange(1),
        help="Tokens per batch, source plus target. [depends on model size]",
    ),
    click.option("--accumulate", metavar="N", type=click.IntRange(1), help="Batches per step, in each process. [1]"),
    click.option("--smoothing", metavar="X", type=SHARE, help="Label smoothing. [0.1]"),
    click.option("--dropout", metavar="X", type=SHARE, help="Dropout rate. [depends on the number of pairs]"),
    click.option("--average", metavar="X", type=SHARE, help="Decay rate of the parameters' moving average. [0.999]"),
    click.option(
        "--metric",
        type=click.Choice(["loss", "bleu", "chrf", "accuracy"]),
        help="Metric that selects the best model. [depends on the task]",
    ),
    click.option(
        "--validations", metavar="N", type=click.IntRange(1), help="Number of validations during the run. [20]"
    ),
    click.option("--seed", metavar="N", type=click.IntRange(0), help="Random seed. [1]"),
    click.option(
        "--precision",
        type=click.Choice(["float32", "bfloat16"]),
        help="Floating-point precision. [depends on hardware]",
    ),
)
GROUPS = {
    "When to stop": _STOP,
    "Data": _DATA,
    "Cleaning": LIMITS,
    "Model": _SIZES,
    "Training": _RECIPE,
}
STOPS, SIZES, RECIPE = names_of(*_STOP), names_of(*_SIZES), names_of(*_RECIPE)


class Grouped(click.Command):
    """A command whose help lists its options in groups."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        grouped = {name: title for title, options in GROUPS.items() for name in names_of(*options)}
        for title in ("Options", *GROUPS):
            shown = [
                p.get_help_record(context) for p in self.get_params(context) if grouped.get(p.name, "Options") == title
            ]
            with formatter.section(title):
                formatter.write_dl([record for record in shown if record is not None])


def read_request(pairs: tuple[str, ...], folder: Path, given: Mapping[str, Any], command: tuple[str, ...]) -> "Request":
    """Build a training request from the command line's options."""
    from vidrio.data.clean import Limits
    from vidrio.data.prepare import CleaningOptions
    from vidrio.learn.task import Request, Start, Stop

    sizes, recipe = ({name: given[name] for name in names if given[name] is not None} for names in (SIZES, RECIPE))
    ends = {name: given[name] for name in STOPS if given[name]}
    if len(ends) > 1:
        raise click.UsageError("--time, --epochs and --steps are mutually exclusive.")
    if given["start"] is not None and given["vocabulary"]:
        raise click.UsageError("--from reuses the tokenizer of that model: omit --vocabulary.")
    start = None if given["start"] is None else Start.find(given["start"])
    own = (start.about.source_language, start.about.target_language) if start else ("", "")
    return Request(
        folder=folder,
        names=pairs,
        languages=given["languages"] or own,
        clean=CleaningOptions(
            limits=Limits(**{name: given[name] for name in LIMITS_OF}), duplicates=given["keep_duplicates"]
        ),
        vocabulary=given["vocabulary"] or 0,
        start=start,
        preset=sizes.pop("preset", ""),
        sizes=sizes,
        recipe=recipe,
        stop=Stop(**ends) if ends else None,
        device=given["device"] or "",
        command=command,
        **{name: given[name] for name in ("dev", "test", "columns", "task")},
    )


EXAMPLES = 20  # number of held-out texts from which the shortest is chosen as an example


@click.command(cls=Grouped)
@click.argument("pairs", nargs=-1, required=True)
@click.option(
    "--to", required=True, type=click.Path(path_type=Path), help="Model folder; an earlier run in it is resumed."
)
@click.option("--from", "start", metavar="MODEL", help="Fine-tune this model: a folder or a name.")
@click.option(
    "--task",
    type=click.Choice(["translate", "classify", "generate"]),
    default="translate",
    help="What to learn. [translate]",
)
@click.option("--device", help="cpu, cuda, cuda:1 … [a GPU, if available]")
@click.option("--threads", metavar="N", type=click.IntRange(1), help="CPU threads. [all cores]")
@together(*(option for group in GROUPS.values() for option in group))
def train(pairs: tuple[str, ...], to: Path, threads: int | None, **given: Any) -> None:
    """Train a translator on PAIRS: a table with two columns, or two line-aligned files.

    Cleans the pairs, holds some out, learns a tokenizer, chooses a model size, trains the model, evaluates it and
    writes it. You can interrupt training at any time and resume it with the same command.

    With --task classify, PAIRS has the columns text and class; with --task generate, it has one text per line.
    """
    from vidrio.engine.library import opener
    from vidrio.learn import machine
    from vidrio.score.metrics import usual_metrics

    # If this installation cannot translate or score, fail now, not after training.
    opener()
    usual_metrics()
    machine.settle()  # before PyTorch is imported
    request = read_request(pairs, to, given, tuple(sys.argv[1:]))
    from vidrio.learn import train as training

    machine.use(threads)
    with Console() as console:
        made = training.train(request, console.progress)
        if made is not None:
            run, judgement = made
            if judgement.translations:
                console.say(f"held-out sentences and their translations: {write_translations(run, judgement)}")
            console.say(f"wrote {to}")
            console.say(f"try it: {try_it(to, run.task)}")


def try_it(folder: Path, task: "Task") -> str:
    """Return a command that tries the model on a held-out text or, for a language model, on the text's first words."""
    text = min((text for text, _ in task.held_out[:EXAMPLES]), key=len)
    if task.kind == "generate":
        text = " ".join(text.split()[:2])
    return shlex.join(["vidrio", "translate", "--model", str(folder), *(["--"] if text.startswith("-") else []), text])


def write_translations(run: "Run", judgement: "Judgement") -> Path:
    """Write the chrF score, source, translation and reference of each test sentence, worst translation first."""
    from vidrio.model.files import write_atomically
    from vidrio.score.metrics import chrf_of_each

    sources, references = zip(*run.task.test, strict=True)
    scores = chrf_of_each(judgement.translations, references)
    rows = sorted(zip(scores, sources, judgement.translations, references, strict=True))
    lines = [f"{chrf:.1f}\t{source}\t{said}\t{expected}\n" for chrf, source, said, expected in rows]
    path = run.request.folder / "translations.tsv"
    write_atomically(path, "".join(["chrF\tsource\ttranslation\texpected\n", *lines]).encode())
    return path
