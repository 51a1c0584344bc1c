"""`vidrio train pairs.tsv --to my-model`: from a file of sentence pairs to a translator; nothing else is needed."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._progress import LINE_EVERY, progress
from vidrio.commands.train_options import Grouped, as_choices, as_material, train_options

if TYPE_CHECKING:
    from vidrio.data.progress import Advance
    from vidrio.learn.run.prepare import Material
    from vidrio.learn.train import Learned


@click.command(cls=Grouped)
@click.argument("pairs", nargs=-1, required=True)
@click.option("--to", required=True, type=click.Path(path_type=Path), help="The model's folder; a run there goes on.")
@click.option("--from", "start", metavar="MODEL", help="Learn on from this model: a folder, or a packaged one's name.")
@click.option("--task", type=click.Choice(["translate", "classify", "generate"]), default="translate")
@click.option("--device", help="cpu, cuda, cuda:1 … [a GPU, if there is one]")
@click.option("--sharded", is_flag=True, help="Share the model out over the processes that torchrun has started.")
@click.option("--threads", type=click.IntRange(1), help="CPU threads. [all cores]")
@train_options
def train(pairs: tuple[str, ...], to: Path, **given: Any) -> None:
    """Learn to translate from PAIRS: a table with two columns, or two files with aligned lines.

    Reads, cleans and counts; holds sentences out; learns a tokenizer; chooses a size; trains; evaluates; writes the
    model. Stop it at any moment: the same command goes on where it was.

    With --task classify, PAIRS has the columns text and class; with --task generate, one text a line.
    """
    from vidrio.learn.run.machine import settle

    settle()
    material, choices = as_material(pairs, given), as_choices(given)
    from vidrio.data.progress import silent
    from vidrio.learn.processes.processes import join, leave
    from vidrio.learn.train import run, use_machine

    use_machine(given["threads"])
    together = join(sharded=given["sharded"], device=given["device"] or "")
    console = Console(quiet=not together.leads)
    shown = console.progress if together.leads else silent
    try:
        learned = run(to, material, choices, say=console.say, watch=console.watch, progress=shown, together=together)
    except KeyboardInterrupt:
        console.say("stopped; the same command goes on from here")
        raise
    finally:
        console.close()
        leave()
    if together.leads:
        finish(learned, to, material, console)


def finish(learned: "Learned", folder: Path, material: "Material", console: "Console") -> None:
    """Judge the model on sentences that it has never seen, and write it."""
    from vidrio.learn.run.finish import judge, write

    scores, warnings = judge(learned, console.progress)
    for score in scores:
        console.say(f"{score.metric} {score.value:.2f}   {score.signature}")
    for warning in warnings:
        console.say(f"warning: {warning}")
    write(learned, folder, material, scores, warnings, sys.argv[1:], console.say, console.progress)
    console.say(f"wrote {folder}")
    if learned.plan.task == "translate":
        console.say(f'try it: vidrio translate --model {folder} "…"')


class Console:
    """What the learner sees on stderr: a moving line in a terminal, now and then a line elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.live: Any = None
        self.told = 0.0

    def say(self, text: str) -> None:
        if self.live:
            self.live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        elif not self.quiet:
            click.echo(text, err=True)

    def watch(self, record: dict[str, Any]) -> None:
        """One line of metrics."""
        if self.quiet:
            return
        if record["kind"] == "validation":
            self.say(validation_line(record))
            for source, translation in record.get("samples", [])[:1]:
                self.say(f"    {source}\n    {translation}")
        elif sys.stderr.isatty():
            self.move(record)
        elif time.monotonic() - self.told > LINE_EVERY:
            self.told = time.monotonic()
            self.say(step_line(record))

    def move(self, record: dict[str, Any]) -> None:
        """The moving line."""
        if self.live is None:
            from rich.console import Console as Terminal
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (BarColumn(20), TextColumn("{task.fields[told]}"))
            self.live = Progress(*columns, console=Terminal(stderr=True), transient=True)
            self.live.add_task("", total=1.0, told="")
            self.live.start()
        self.live.update(self.live.task_ids[0], completed=record["share"], told=step_line(record))

    @contextmanager
    def progress(self, title: str, total: int) -> Iterator["Advance"]:
        """How far something long is, before training and after it."""
        self.close()
        with progress(title, total) as advance:
            yield advance

    def close(self) -> None:
        """Training is over; what is said from now on stands still."""
        if self.live:
            self.live.stop()
            self.live = None


def step_line(record: dict[str, Any]) -> str:
    """Where the training is."""
    left = record["seconds"] / record["share"] * (1 - record["share"]) if record["share"] else 0
    parts = [
        f"step {record['step']:,}",
        f"{record['share']:.0%}" if record["share"] else "",
        f"loss {record['loss']:.3f}",
        f"{record['tokens_per_second']:,.0f} tokens/s",
        f"{left / 60:.0f} min left" if left > 90 else f"{left:.0f} s left" if left else "",
    ]
    return "  ".join(part for part in parts if part)


def validation_line(record: dict[str, Any]) -> str:
    """How good it is so far."""
    figures = [f"{name} {record[name]:.3f}" for name in ("loss",) if name in record]
    figures += [f"{name} {record[name]:.1f}" for name in ("bleu", "chrf", "accuracy") if name in record]
    return (
        f"validation at step {record['step']:,}: " + "  ".join(figures) + ("  (best so far)" if record["best"] else "")
    )
