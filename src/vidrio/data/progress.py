"""How far a long piece of work has come: a value that the command line looks at meanwhile."""

from dataclasses import dataclass


@dataclass
class Work:
    """Something that may take long."""

    title: str
    total: int = 0  # 0: not known
    done: int = 0


@dataclass
class Progress:
    """What is being done now, if it may take long."""

    work: Work | None = None
