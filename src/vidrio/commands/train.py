"""`vidrio train pairs.tsv --to my-model`: from a file of sentence pairs to a translator; nothing else is needed."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._progress import LINE_EVERY, progress
from vidrio.commands.train_options import Grouped, read_request, train_options

if TYPE_CHECKING:
    from vidrio.data.progress import Advance
    from vidrio.learn.run.finish import Judgement
    from vidrio.learn.run.request import Reporter
    from vidrio.learn.train import Learned

TRY_IT = {
    "translate": 'vidrio translate --model {folder} "…"',
    "classify": 'vidrio look --model {folder} "…"',
    "generate": 'vidrio look --model {folder} "…"',
}


@click.command(cls=Grouped)
@click.argument("pairs", nargs=-1, required=True)
@click.option("--to", required=True, type=click.Path(path_type=Path), help="The model's folder; a run there goes on.")
@click.option("--from", "start", metavar="MODEL", help="Learn on from this model: a folder, or a packaged one's name.")
@click.option("--task", type=click.Choice(["translate", "classify", "generate"]), default="translate")
@click.option("--device", help="cpu, cuda, cuda:1 … [a GPU, if there is one]")
@click.option("--threads", type=click.IntRange(1), help="CPU threads. [all cores]")
@train_options
def train(pairs: tuple[str, ...], to: Path, threads: int | None, **given: Any) -> None:
    """Learn to translate from PAIRS: a table with two columns, or two files with aligned lines.

    Reads, cleans and counts; holds sentences out; learns a tokenizer; chooses a size; trains; evaluates; writes the
    model. Stop it at any moment: the same command goes on where it was.

    With --task classify, PAIRS has the columns text and class; with --task generate, one text a line.
    """
    from vidrio.learn.run.machine import settle

    settle()  # before PyTorch is imported
    request = read_request(pairs, to, given, tuple(sys.argv[1:]))
    from vidrio.learn import train as training
    from vidrio.learn.processes.processes import join, leave
    from vidrio.learn.run.finish import finish
    from vidrio.learn.run.request import Reporter

    training.use_machine(threads)
    processes = join(request.choices.device)
    console = Console(quiet=not processes.leads)
    reporter = Reporter(console.say, console.watch, console.progress) if processes.leads else Reporter()
    try:
        learned = training.train(request, reporter, processes)
    except KeyboardInterrupt:
        console.say("stopped; the same command goes on from here")
        raise
    finally:
        console.close()
        leave()
    if learned is not None:
        judgement = finish(learned, reporter)
        console.say(f"report: {write_report(learned, judgement, reporter)}")
        console.say(f"wrote {to}")
        console.say(f"try it: {TRY_IT[learned.plan.task].format(folder=to)}")


def write_report(learned: "Learned", judgement: "Judgement", reporter: "Reporter") -> Path:
    """The page on how the model became what it is."""
    from vidrio.draw.page import write_report as write_page
    from vidrio.learn.run.finish import LIMITS
    from vidrio.look import report
    from vidrio.model.folder import write_atomically
    from vidrio.model.json_text import json_text

    task, data = learned.task, learned.request.run / "data" / "data.json"
    if task.kind != "translate":
        what = {"unit": "texts", "pairs": task.pairs, "report": task.tally.to_json()}
        write_atomically(data, f"{json_text(what, indent=2)}\n".encode())
    sources, references = zip(*task.test, strict=True) if task.test else ((), ())
    ending = report.Ending(
        sources=sources,
        references=references,
        translations=judgement.translations,
        scores=judgement.scores,
        limits=LIMITS,
        warnings=judgement.warnings,
    )
    return write_page(learned.request.folder, ending, data, reporter.progress)


class Console:
    """What the learner sees on stderr: a moving line in a terminal, now and then a line elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.live: Any = None
        self.last_line = 0.0  # when a step was told last

    def say(self, text: str) -> None:
        if self.live:
            self.live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        elif not self.quiet:
            click.echo(text, err=True)

    def watch(self, record: dict[str, Any]) -> None:
        """One line of metrics."""
        if record["kind"] == "validation":
            self.say(validation_line(record))
            for source, translation in record.get("samples", [])[:1]:
                self.say(f"    {source}\n    {translation}")
        elif sys.stderr.isatty():
            self.move(record)
        elif time.monotonic() - self.last_line > LINE_EVERY:
            self.last_line = time.monotonic()
            self.say(step_line(record))

    def move(self, record: dict[str, Any]) -> None:
        """The moving line."""
        if self.live is None:
            from rich.console import Console as Terminal
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (BarColumn(20), TextColumn("{task.fields[line]}"))
            self.live = Progress(*columns, console=Terminal(stderr=True), transient=True)
            self.live.add_task("", total=1.0, line="")
            self.live.start()
        self.live.update(self.live.task_ids[0], completed=record["share"], line=step_line(record))

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
