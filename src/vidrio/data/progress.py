"""How far long work is: a value, at which whoever wants looks meanwhile (the command line does)."""

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
