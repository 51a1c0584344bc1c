"""What long tasks report: lines of text, metrics of a training, and progress."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Work:
    """A task that may take long."""

    title: str
    total: int = 0  # 0: not known
    done: int = 0


@dataclass
class Progress:
    """Receives the reports. The command line reads `work` while the task runs."""

    say: Callable[[str], object] = lambda text: None
    watch: Callable[[dict[str, Any]], object] = lambda record: None
    work: Work | None = None
