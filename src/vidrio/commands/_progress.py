"""What a command says on stderr while it works: lines of text, and how far it is.

On a terminal that is a moving line, which long work gets after two seconds and training from its first step on;
elsewhere a line now and then.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import click

from vidrio.data.progress import Progress, Work

PATIENCE = 2.0  # seconds that work may take unseen
LINE_EVERY = 10.0  # seconds between two lines, where stderr is not a terminal
LOOKS = 0.1  # seconds between two looks at the progress


class Console:
    """`with Console() as console:` shows `console.progress`, in which long work notes how far it is."""

    def __init__(self) -> None:
        self.progress = Progress()
        self._work: Work | None = None  # looked at last
        self._since = self._line_at = time.monotonic()  # that work began, that a line was printed
        self._step: str | None = None  # where a training is
        self._share: float | None = None
        self._bar: Any = None
        self._ended = Event()
        self._thread = Thread(target=self._keep_looking, daemon=True)

    def __enter__(self) -> "Console":
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._ended.set()
        self._thread.join()
        self._move(None, None)

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def watch(self, record: dict[str, Any]) -> None:
        """A line of a training's metrics."""
        if record["kind"] == "validation":
            self.say(validation_line(record))
            for source, translation in record.get("samples", [])[:1]:
                self.say(f"    {source}\n    {translation}")
        else:
            self._step, self._share = (None, None) if record["share"] >= 1 else (step_line(record), record["share"])
            if not sys.stderr.isatty() and time.monotonic() - self._line_at > LINE_EVERY:
                self._line_at = time.monotonic()
                self.say(step_line(record))

    def look(self, now: float) -> None:
        """Show how far the work is that takes long."""
        work = self.progress.work
        if work is not self._work:
            self._work, self._since = work, now
        title, share = self._step, self._share
        if work is not None and not 0 < work.total <= work.done and now - self._since > PATIENCE:
            title, share = work.title, work.done / work.total if work.total else None
        if sys.stderr.isatty():
            self._move(title, share)
        elif work is not None and title == work.title and now - max(self._since, self._line_at) > LINE_EVERY:
            self._line_at = now
            self.say(f"{title} …" if share is None else f"{title}: {share:.0%}")

    def _keep_looking(self) -> None:
        while not self._ended.wait(LOOKS):
            self.look(time.monotonic())

    def _move(self, text: str | None, share: float | None) -> None:
        """The moving line, as long as there is something in it."""
        if text is None:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
            return
        if self._bar is None:
            from rich.console import Console as Terminal
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(20), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=Terminal(stderr=True), transient=True)
            self._bar.add_task("", total=1.0)
            self._bar.start()
        task = self._bar.task_ids[0]
        self._bar.update(task, description=text, completed=share or 0.0, total=None if share is None else 1.0)


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], object]]:
    """A bar from the first moment on, if stderr is a terminal, and nothing else; it is called with how much is done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console as Terminal
    from rich.progress import Progress as Bar

    with Bar(console=Terminal(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=total)
        yield lambda done: shown.update(task, completed=done)


def step_line(record: dict[str, Any]) -> str:
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
    figures = [f"{name} {record[name]:.3f}" for name in ("loss",) if name in record]
    figures += [f"{name} {record[name]:.1f}" for name in ("bleu", "chrf", "accuracy") if name in record]
    return (
        f"validation at step {record['step']:,}: " + "  ".join(figures) + ("  (best so far)" if record["best"] else "")
    )
