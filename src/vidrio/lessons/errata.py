"""What the two documents print wrong: where, what, what is right, and why. `vidrio lesson errata [NUMBER]`.

The words are in data/errata.toml. A slip that is a matter of numbers has a function that computes both sides on the
spot; no right figure is written down.

Read next: errata_post.py (1 to 24), errata_notes.py (25 to 33).
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

import click
import numpy as np

from vidrio.draw import show
from vidrio.errors import LessonError
from vidrio.lessons.as_data import json_text

DOCUMENTS = {"post": "The Random Transformer", "notes": "the notes on the Transformer"}

RIGHT_IN_A_ROW = (5, 8, 15)  # slips whose right side is a row of numbers that the walk does not show itself

Figures = Mapping[str, Any]  # what it is: the number or numbers


@dataclass(frozen=True)
class Slip:
    """One thing that a document prints and that is not so."""

    number: int
    document: str  # a key of DOCUMENTS
    place: str  # the part of the document
    printed: str
    right: str
    why: str

    @property
    def compute(self) -> Callable[[], Figures] | None:
        """What computes both sides; None where the slip is not a matter of numbers."""
        from vidrio.lessons import errata_notes, errata_post

        return {**errata_post.LIVE, **errata_notes.LIVE}.get(self.number)

    @property
    def figures(self) -> Figures:
        """Both sides, computed now."""
        return self.compute() if self.compute else {}


@cache
def errata() -> tuple[Slip, ...]:
    """All slips of both documents, in their order."""
    data = resources.files("vidrio.lessons").joinpath("data/errata.toml").read_text("utf-8")
    return tuple(Slip(**entry) for entry in tomllib.loads(data)["slip"])


def slip(number: int) -> Slip:
    if not 1 <= number <= len(errata()):
        raise LessonError(f"there is no slip {number}", found=f"slips 1 to {len(errata())}")
    return errata()[number - 1]


def flag(number: int) -> str:
    """A slip in the middle of a lesson: what is printed, what is right, and why."""
    return "\n".join(_told(slip(number), "! "))


def flag_with_numbers(number: int, precision: int) -> Iterator[str]:
    """The same with the right numbers, where they are a row or two."""
    one = slip(number)
    yield flag(number)
    if number in RIGHT_IN_A_ROW:
        for what, value in one.figures.items():
            if what.startswith("right"):
                yield from _figure(what, value, max(precision, 8))
    if one.compute:
        yield f"    numbers  vidrio lesson errata {number}"


def _told(one: Slip, mark: str = "") -> Iterator[str]:
    indent = " " * len(mark)
    yield show.wrap(f"Slip {one.number}, {DOCUMENTS[one.document]}; {one.place}", indent=mark, hang=indent + "  ")
    for head, text in (("printed", one.printed), ("right", one.right), ("why", one.why)):
        yield show.wrap(text, indent=f"{indent}  {head:9}", hang=indent + " " * 11)


# --- the command ------------------------------------------------------------------------------------------------------


def as_text(one: Slip, precision: int) -> Iterator[str]:
    yield from _told(one)
    figures = one.figures
    if figures:
        yield "\n  computed now"
    for what, value in figures.items():
        yield from _figure(what, value, precision)


def _figure(what: str, value: Any, precision: int) -> Iterator[str]:
    array = np.asarray(value)
    if array.dtype.kind in "Uiu" and array.ndim == 0:
        yield show.wrap(f"{what}: {value}", indent="    ", hang="      ")
    elif array.ndim == 0:
        small = 0 < abs(float(value)) < 1e-3  # a difference: its size is what matters
        drawn = f"{float(value):.2e}" if small else show.number(float(value), precision)
        yield show.wrap(f"{what}: {drawn}", indent="    ", hang="      ")
    else:
        yield show.wrap(f"{what}:", indent="    ", hang="      ")
        drawn = show.matrix(np.atleast_2d(array), (), (), precision, width=show.WIDTH - 6)
        yield from (f"      {line}".rstrip() for line in drawn.splitlines())


def as_json(slips: Sequence[Slip]) -> str:
    told = [
        {
            **asdict(one),
            "document": DOCUMENTS[one.document],
            "computed": one.figures,
        }
        for one in slips
    ]
    return json_text(told)


def as_list() -> Iterator[str]:
    """A line for each slip."""
    for document, title in DOCUMENTS.items():
        yield f"{title}\n"
        for one in errata():
            if one.document == document:
                yield show.wrap(f"{one.place}: {one.printed}", indent=f"  {one.number:2}  ", hang="      ")
        yield ""
    yield "What is right, why, and the numbers computed: vidrio lesson errata NUMBER"


@click.command()
@click.argument("number", type=int, required=False)
@click.option("--all", "everything", is_flag=True, help="All slips in full.")
@click.option("--precision", type=click.IntRange(0, 17), default=8, show_default=True, help="Decimals.")
@click.option("--json", "wants_json", is_flag=True, help="As JSON, with every computed number.")
def command(number: int | None, everything: bool, precision: int, wants_json: bool) -> None:
    """What the two documents print wrong, and what is right.

    Without a NUMBER, all slips in a line each. Example: vidrio lesson errata 1
    """
    chosen = errata() if number is None else (slip(number),)
    if wants_json:
        click.echo(as_json(chosen))
    elif number is None and not everything:
        click.echo("\n".join(as_list()))
    else:
        click.echo("\n\n".join("\n".join(as_text(one, precision)) for one in chosen))
