"""What the two documents print wrong: where, what, what is right, and why. The words are in data/errata.toml.

Read next: errata.py, which computes both sides.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from vidrio.draw import show
from vidrio.errors import LessonError

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


@cache
def slips() -> tuple[Slip, ...]:
    """All slips of both documents, in their order."""
    data = resources.files("vidrio.lessons").joinpath("data/errata.toml").read_text("utf-8")
    return tuple(Slip(**entry) for entry in tomllib.loads(data)["slip"])


def slip(number: int) -> Slip:
    if not 1 <= number <= len(slips()):
        raise LessonError(f"there is no slip {number}", found=f"slips 1 to {len(slips())}")
    return slips()[number - 1]


def flag(number: int) -> str:
    """A slip in the middle of a lesson: what is printed, what is right, and why."""
    return "\n".join(lines(slip(number), "! "))


def lines(slip: Slip, mark: str = "") -> Iterator[str]:
    """A slip as text, with a mark before its first line."""
    indent = " " * len(mark)
    yield show.wrap(f"Slip {slip.number}, {DOCUMENTS[slip.document]}; {slip.place}", indent=mark, hang=indent + "  ")
    for head, text in (("printed", slip.printed), ("right", slip.right), ("why", slip.why)):
        yield show.wrap(text, indent=f"{indent}  {head:9}", hang=indent + " " * 11)
