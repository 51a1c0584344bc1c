"""How far long work is: a bar on the terminal after two seconds; where stderr is no terminal, now and then a line."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vidrio.data.progress import Advance

_PATIENCE = 2.0  # seconds
LINE_EVERY = 10.0  # seconds between two lines, where stderr is not a terminal


@contextmanager
def progress(title: str, total: int) -> Iterator["Advance"]:
    """`with progress("reading", total) as advance: … advance(done since last time)`; a total of 0 is not known."""
    if not sys.stderr.isatty():
        yield _lines(title, total)
        return
    begun, done_so_far, ended = time.monotonic(), 0, False
    bar: Any = None
    task: Any = None
    one_at_a_time = Lock()

    def show() -> None:
        nonlocal bar, task
        with one_at_a_time:
            if bar is None and not ended:
                from rich.console import Console
                from rich.progress import Progress

                bar = Progress(console=Console(stderr=True), transient=True)
                bar.start()
                task = bar.add_task(title, total=total or None)

    def advance(done: int) -> None:
        nonlocal done_so_far
        done_so_far += done
        if bar is None and time.monotonic() - begun > _PATIENCE:
            show()
        if task is not None:
            bar.update(task, completed=done_so_far)

    timer = Timer(_PATIENCE, show)  # what does not advance is shown too
    timer.daemon = True
    timer.start()
    try:
        yield advance
    finally:
        timer.cancel()
        with one_at_a_time:
            ended = True
        if bar is not None:
            bar.stop()


def _lines(title: str, total: int) -> "Advance":
    told, done_so_far = time.monotonic(), 0

    def advance(done: int) -> None:
        nonlocal told, done_so_far
        done_so_far += done
        if time.monotonic() - told > LINE_EVERY and done_so_far != total:
            told = time.monotonic()
            print(f"{title}: {done_so_far / total:.0%}" if total else f"{title} …", file=sys.stderr, flush=True)

    return advance
