"""What the two documents print wrong: where, what, what is right, and why. The words are in data/errata.toml.

Read next: errata.py, which computes both sides.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from vidrio.errors import LessonError
from vidrio.look.blocks import Block, Note

DOCUMENTS = {"post": "The Random Transformer", "notes": "the notes on the Transformer"}


@dataclass(frozen=True)
class Slip:
    """One thing that a document prints and that is not so."""

    number: int
    document: str  # a key of DOCUMENTS
    place: str  # the part of the document
    printed: str
    right: str
    why: str
    figures: Mapping[str, Any] = field(default_factory=dict)  # what a number is: its name, or text as it stands


@cache
def slips() -> tuple[Slip, ...]:
    """All slips of both documents, in their order."""
    data = resources.files("vidrio.lessons").joinpath("data/errata.toml").read_text("utf-8")
    return tuple(Slip(**entry) for entry in tomllib.loads(data)["slip"])


def slip(number: int) -> Slip:
    if not 1 <= number <= len(slips()):
        raise LessonError(f"there is no slip {number}", found=f"slips 1 to {len(slips())}")
    return slips()[number - 1]


def flag(number: int) -> Iterator[Block]:
    """A slip in the middle of a lesson: what is printed, what is right, and why."""
    yield from told(slip(number), "! ")


def told(slip: Slip, mark: str = "") -> Iterator[Block]:
    """A slip, with a mark before its first line."""
    indent = len(mark)
    yield Note(f"{mark}Slip {slip.number}, {DOCUMENTS[slip.document]}; {slip.place}", hang=indent + 2)
    for head, text in (("printed", slip.printed), ("right", slip.right), ("why", slip.why)):
        yield Note(f"{head:9}{text}", indent=indent + 2, hang=indent + 11)
