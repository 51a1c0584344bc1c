"""What long work reports: lines of text, a training's metrics, and how much is done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Work:
    """A piece of work that may take long."""

    title: str
    total: int = 0  # 0: not known
    done: int = 0


@dataclass
class Progress:
    """Receives the reports; the command line reads `work` while the work runs."""

    say: Callable[[str], object] = lambda text: None
    watch: Callable[[dict[str, Any]], object] = lambda record: None
    work: Work | None = None
