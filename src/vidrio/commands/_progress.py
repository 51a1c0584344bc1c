"""Print messages and progress to stderr while a command runs.

On a terminal, progress is shown on one line, which is updated in place. The line appears after two seconds or at the
first training step. If stderr is not a terminal, a new line is printed at most every ten seconds.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Any

import click

from vidrio.data.progress import Progress, Work

PATIENCE = 2.0  # seconds before progress is shown
LINE_EVERY = 10.0  # seconds between lines if stderr is not a terminal
LOOKS = 0.1  # seconds between updates
TO_THE_START = "\r\x1b[K"  # return to the start of the line and clear it


class Console:
    """A context manager that shows the progress reported to its attribute `progress`."""

    def __init__(self) -> None:
        self.progress = Progress(self.say, self.watch)
        self._step = ""  # the latest training step
        self._work: Work | None = None  # the work seen at the last update
        self._since = self._said = time.monotonic()  # when the work began, and when a line was last printed
        self._line, self._writing = "", Lock()  # the progress line that is currently shown
        self._ended = Event()
        self._thread = Thread(target=self._keep_looking, daemon=True)

    def __enter__(self) -> "Console":
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._ended.set()
        self._thread.join()
        self._change("")

    def say(self, text: str) -> None:
        """Print a line."""
        self._change("", f"{text}\n")

    def watch(self, record: dict[str, Any]) -> None:
        """Print validation metrics, or record a training step to show in the progress line."""
        if record["kind"] == "validation":
            self.say(validation_line(record))
            for source, translation in record.get("samples", [])[:1]:
                self.say(f"    {source}\n    {translation}")
        else:
            self._step = "" if record["share"] >= 1 else step_line(record)

    def look(self, now: float) -> None:
        """Update the progress display. Training steps are shown immediately, other tasks only if they take long."""
        work, text = self.progress.work, self._step
        if work is not self._work:
            self._work, self._since = work, now
        if work is not None and not 0 < work.total <= work.done and now - self._since > PATIENCE:
            text = f"{work.title}: {work.done / work.total:.0%}" if work.total else f"{work.title} …"
        if sys.stderr.isatty():
            from shutil import get_terminal_size

            self._change(text[: get_terminal_size().columns - 1])
        elif text and now - max(self._since, self._said) > LINE_EVERY:
            self._said = now
            self.say(text)

    def _keep_looking(self) -> None:
        while not self._ended.wait(LOOKS):
            self.look(time.monotonic())

    def _change(self, line: str, above: str = "") -> None:
        """Update the progress line, and print text above it."""
        with self._writing:
            if line != self._line or above:
                click.echo(f"{TO_THE_START if self._line else ''}{above}{line}", nl=False, err=True)
                self._line = line


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int], object]]:
    """Show a progress bar if stderr is a terminal. To update it, call the yielded function with the amount done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    with Console() as console:
        work = console.progress.work = Work(title, total)
        yield lambda done: setattr(work, "done", done)


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
