"""Report the messages, training metrics and progress of long tasks."""

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
    """Callbacks for the messages and metrics of a task, and its current work, which the command line polls."""

    say: Callable[[str], object] = lambda text: None
    watch: Callable[[dict[str, Any]], object] = lambda record: None
    work: Work | None = None
