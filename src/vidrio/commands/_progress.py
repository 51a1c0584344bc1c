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
        self._step = ""  # where a training is
        self._work: Work | None = None  # looked at last
        self._since = self._said = time.monotonic()  # when that work began, when a line was printed
        self._line: Any = None  # the moving one
        self._ended = Event()
        self._thread = Thread(target=self._keep_looking, daemon=True)

    def __enter__(self) -> "Console":
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._ended.set()
        self._thread.join()
        self._move("")

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._line is not None:
            self._line.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def watch(self, record: dict[str, Any]) -> None:
        """A line of a training's metrics."""
        if record["kind"] == "validation":
            self.say(validation_line(record))
            for source, translation in record.get("samples", [])[:1]:
                self.say(f"    {source}\n    {translation}")
        else:
            self._step = "" if record["share"] >= 1 else step_line(record)

    def look(self, now: float) -> None:
        """Show how far the work is: training at once, other work if it takes long."""
        work, text = self.progress.work, self._step
        if work is not self._work:
            self._work, self._since = work, now
        if work is not None and not 0 < work.total <= work.done and now - self._since > PATIENCE:
            text = f"{work.title}: {work.done / work.total:.0%}" if work.total else f"{work.title} …"
        if sys.stderr.isatty():
            self._move(text)
        elif text and now - max(self._since, self._said) > LINE_EVERY:
            self._said = now
            self.say(text)

    def _keep_looking(self) -> None:
        while not self._ended.wait(LOOKS):
            self.look(time.monotonic())

    def _move(self, text: str) -> None:
        """The moving line, as long as there is something in it."""
        if not text:
            if self._line is not None:
                self._line.stop()
                self._line = None
            return
        from rich.console import Console as Terminal
        from rich.text import Text

        if self._line is None:
            self._line = Terminal(stderr=True).status(Text(text))
            self._line.start()
        self._line.update(Text(text))


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
