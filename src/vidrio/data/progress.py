"""Progress of long work: values that the command line reads while the work runs."""

from dataclasses import dataclass


@dataclass
class Work:
    """A piece of work that may take long."""

    title: str
    total: int = 0  # 0: not known
    done: int = 0


@dataclass
class Progress:
    """The current piece of work, if it may take long."""

    work: Work | None = None
