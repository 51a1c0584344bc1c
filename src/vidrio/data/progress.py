"""Receives reports from long tasks: messages, training metrics and progress."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Work:
    """A task that may take a long time."""

    title: str
    total: int = 0  # 0 if unknown
    done: int = 0


@dataclass
class Progress:
    """Receives reports from a task. The command line polls `work` while the task is running."""

    say: Callable[[str], object] = lambda text: None
    watch: Callable[[dict[str, Any]], object] = lambda record: None
    work: Work | None = None
