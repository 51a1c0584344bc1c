"""`vidrio lesson errata [NUMBER]`: what the two documents print wrong, with both sides computed on the spot.

A slip that is a matter of numbers has a function that computes them; no right figure is written down.

Read next: errata_post.py (1 to 24), errata_notes.py (25 to 33).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
import numpy as np

from vidrio.draw import show
from vidrio.lessons import errata_notes, errata_post
from vidrio.lessons.as_data import json_text
from vidrio.lessons.slips import DOCUMENTS, Slip, flag, lines, slip, slips

FIGURES = errata_post.FIGURES | errata_notes.FIGURES
RIGHT_IN_A_ROW = (5, 8, 15)  # slips whose right side is a row of numbers that the walk does not show itself


def figures(number: int) -> Mapping[str, Any]:
    """Both sides of a slip, computed now: what it is, and the number or numbers. Empty where no number is wrong."""
    return FIGURES[number]() if number in FIGURES else {}


def flag_with_numbers(number: int, precision: int) -> Iterator[str]:
    """A slip in the walk, with the right numbers where they are a row or two."""
    yield flag(number)
    if number in RIGHT_IN_A_ROW:
        for what, value in figures(number).items():
            if what.startswith("right"):
                yield from _figure(what, value, max(precision, 8))
    if number in FIGURES:
        yield f"    numbers  vidrio lesson errata {number}"


def as_text(slip: Slip, precision: int) -> Iterator[str]:
    yield from lines(slip)
    computed = figures(slip.number)
    if computed:
        yield "\n  computed now"
    for what, value in computed.items():
        yield from _figure(what, value, precision)


def _figure(what: str, value: Any, precision: int) -> Iterator[str]:
    array = np.asarray(value)
    if array.ndim:
        yield show.wrap(f"{what}:", indent="    ", hang="      ")
        rows = show.matrix(np.atleast_2d(array), (), (), precision, width=show.WIDTH - 6)
        yield from (f"      {line}".rstrip() for line in rows.splitlines())
        return
    if array.dtype.kind in "Uiu":
        text = str(value)
    elif 0 < abs(float(value)) < 1e-3:  # a difference: its size is what matters
        text = f"{float(value):.2e}"
    else:
        text = show.number(float(value), precision)
    yield show.wrap(f"{what}: {text}", indent="    ", hang="      ")


def as_json(chosen: Sequence[Slip]) -> str:
    return json_text([{**asdict(s), "document": DOCUMENTS[s.document], "computed": figures(s.number)} for s in chosen])


def as_list() -> Iterator[str]:
    """A line for each slip."""
    for document, title in DOCUMENTS.items():
        yield f"{title}\n"
        for s in slips():
            if s.document == document:
                yield show.wrap(f"{s.place}: {s.printed}", indent=f"  {s.number:2}  ", hang="      ")
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
    chosen = slips() if number is None else (slip(number),)
    if wants_json:
        click.echo(as_json(chosen))
    elif number is None and not everything:
        click.echo("\n".join(as_list()))
    else:
        click.echo("\n\n".join("\n".join(as_text(slip, precision)) for slip in chosen))
