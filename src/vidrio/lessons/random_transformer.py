"""`vidrio lesson random-transformer`: the first document's worked example, from "Hello World" to "hola …".

The walk is one list of steps over the addresses of a few traces; the machine that computes them is the glass one. As
printed it computes like the post, slips and all (printed.py); as corrected, right; as trained, with learned numbers.

Read next: step.py, runs.py, values.py.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import click

from vidrio.errors import LessonError
from vidrio.glass.paper.attention import divisor
from vidrio.lessons import values_file, walk_report
from vidrio.lessons.runs import MODES, Lesson
from vidrio.lessons.step import steps
from vidrio.lessons.values import trained
from vidrio.look import terminal


def lesson_of(mode: str | None, values: Path | None, sentence: str | None) -> Lesson:
    """What was asked for: which arithmetic, whose values, which sentence."""
    mode = mode or ("corrected" if values or sentence else "printed")
    base = trained() if mode == "trained" else values_file.of_the_post()
    chosen = values_file.read(values, base) if values else base
    if sentence is not None:
        chosen = replace(chosen, sentence=sentence)
    if len(chosen.source_ids) > chosen.config.max_positions:
        raise LessonError(
            "the sentence is longer than the model's positions",
            found=f"{len(chosen.source_ids)} tokens; the model holds {chosen.config.max_positions}",
            do="shorten it, or raise max_positions in your values",
        )
    return Lesson(mode, chosen, own=values is not None or sentence is not None)


@click.command("random-transformer")
@click.option(
    "--as",
    "mode",
    type=click.Choice(MODES),
    help="How to compute.  [default: printed; corrected with your own values or sentence]",
)
@click.option("--step", "only", type=int, metavar="N", help="One step.")
@click.option("--from", "first", type=int, metavar="N", help="From this step on.")
@click.option("--to", "last", type=int, metavar="N", help="Up to this step.")
@click.option("--list", "wants_list", is_flag=True, help="The steps, a line each.")
@click.option("--why", "why", metavar="ADDRESS", help="The receipt of one number, in the run of --step N.")
@click.option("--sentence", metavar="TEXT", help="Another sentence of the vocabulary's words.")
@click.option("--values", "values", type=click.Path(path_type=Path), metavar="FILE", help="Walk with your own values.")
@click.option("--write-values", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write the values.")
@click.option("--write-model", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="As a model folder.")
@click.option("--force", is_flag=True, help="Write over what is there.")
@click.option("--precision", type=click.IntRange(0, 17), default=4, show_default=True, help="Decimals.")
def command(**options: Any) -> None:
    """From "Hello World" to "hola …", every step with its numbers, in the order of the post.

    \b
    vidrio lesson random-transformer --list
    vidrio lesson random-transformer --step 10
    vidrio lesson random-transformer --as corrected --from 4 --to 6
    vidrio lesson random-transformer --as trained
    vidrio lesson random-transformer --write-values my.toml
    vidrio lesson random-transformer --values my.toml
    """
    asked = Request(**options)
    lesson = lesson_of(asked.mode, asked.values, asked.sentence)
    if asked.out is not None or asked.folder is not None:
        _write(lesson, asked.out, asked.folder, force=asked.force)
    else:
        click.echo(answer(asked, lesson))


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for, as the options have it."""

    mode: str | None
    only: int | None
    first: int | None
    last: int | None
    wants_list: bool
    why: str | None
    sentence: str | None
    values: Path | None
    out: Path | None
    folder: Path | None
    force: bool
    precision: int

    def numbers(self, count: int) -> range:
        """The numbers of the steps asked for, of so many."""
        if self.only is not None and (self.first is not None or self.last is not None):
            raise click.UsageError("--step is one step; --from and --to are for several.")
        first, last = (self.only, self.only) if self.only is not None else (self.first or 1, self.last or count)
        if not 1 <= first <= last <= count:
            raise LessonError(
                f"there is no step {self.only}" if self.only is not None else f"there are no steps {first} to {last}",
                found=f"steps 1 to {count}",
                do="--list names them",
            )
        return range(first, last + 1)

    @property
    def again(self) -> str:
        """The command line that comes back to the same numbers."""
        parts = ["vidrio lesson random-transformer"]
        parts += [f"--as {self.mode}"] if self.mode else []
        parts += [f"--values {quote(str(self.values))}"] if self.values else []
        parts += [f"--sentence {quote(self.sentence)}"] if self.sentence else []
        return " ".join(parts)


def answer(asked: Request, lesson: Lesson) -> str:
    """The list of the steps, the receipt of a number, or the steps themselves."""
    every = steps(lesson.values.config)
    if asked.wants_list:
        return terminal.text(walk_report.index(every))
    chosen = asked.numbers(len(every))
    if asked.why is not None:
        trace = every[asked.only - 1 if asked.only else 0].trace(lesson)
        return walk_report.receipt_text(trace, asked.why, asked.precision)
    texts = (walk_report.step_text(lesson, every, n, asked.precision, asked.again) for n in chosen)
    return "\n\n\n".join(texts)


def _write(lesson: Lesson, out: Path | None, folder: Path | None, *, force: bool) -> None:
    if out is not None:
        values_file.write(out, lesson.values, force=force)
        click.echo(f"Written: {out}. Change it, and walk with --values {out}", err=True)
    if folder is not None:
        if folder.exists() and not force:
            raise LessonError(f"{folder} is there already", do="give another name, or --force to write over it")
        try:
            lesson.values.write_model(folder)
        except OSError as error:
            raise values_file.cannot_write(folder, error) from None
        if lesson.mode == "printed":
            click.echo(
                "Note: a model folder is computed with as --as corrected does; the post's slips are not in it.",
                err=True,
            )
        if lesson.values.score_divisor != divisor(lesson.values.config.d_head):
            click.echo("Note: a model folder divides scores by √d_head; your score_divisor is not in it.", err=True)
        click.echo(f'Written: {folder}. Try: vidrio look "{lesson.values.sentence}" --model {folder}', err=True)
