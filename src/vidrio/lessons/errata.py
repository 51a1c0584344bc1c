"""`vidrio lesson errata [NUMBER]`: what the two documents print wrong, with both sides computed on the spot.

A slip that is a matter of numbers has a function that computes them; what each number is, data/errata.toml says.

Read next: errata_figures.py.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import click
import numpy as np

from vidrio.lessons import pages
from vidrio.lessons.errata_figures import FIGURES
from vidrio.lessons.slips import DOCUMENTS, Slip, flag, slip, slips, told
from vidrio.look import matrix as show
from vidrio.look import terminal, writing
from vidrio.look.blocks import Block, Note, Numbers, apart

RIGHT_IN_A_ROW = (5, 8, 15)  # slips whose right side is a row of numbers that the walk does not show itself


def figures(number: int) -> Mapping[str, Any]:
    """Both sides of a slip, computed now: what it is, and the number or numbers. Empty where no number is wrong."""
    names = slip(number).figures
    computed = FIGURES[number]() if names else {}
    return {
        what: name["text"] if isinstance(name, dict) else pages.value_of(name, computed) for what, name in names.items()
    }


def flag_with_numbers(number: int, precision: int) -> Iterator[Block]:
    """A slip in the walk, with the right numbers where they are a row or two."""
    yield from flag(number)
    if number in RIGHT_IN_A_ROW:
        for what, value in figures(number).items():
            if slip(number).figures[what].startswith("right"):
                yield from _figure(what, value, max(precision, 8))
    if number in FIGURES:
        yield f"    numbers  vidrio lesson errata {number}"


def in_full(slip: Slip, precision: int) -> Iterator[Block]:
    yield from told(slip)
    computed = figures(slip.number)
    if computed:
        yield "\n  computed now"
    for what, value in computed.items():
        yield from _figure(what, value, precision)


def _figure(what: str, value: Any, precision: int) -> Iterator[Block]:
    array = np.asarray(value)
    if array.ndim:
        yield Note(f"{what}:", indent=4, hang=6)
        rows = show.matrix(Numbers(np.atleast_2d(array), "", (), ()), precision, writing.WIDTH - 6)
        yield from (f"      {line}".rstrip() for line in rows.splitlines())
        return
    if array.dtype.kind in "Uiu":
        text = str(value)
    elif 0 < abs(float(value)) < 1e-3:  # a difference: its size is what matters
        text = f"{float(value):.2e}"
    else:
        text = writing.number(float(value), precision)
    yield Note(f"{what}: {text}", indent=4, hang=6)


@click.command()
@click.argument("number", type=int, required=False)
@click.option("--all", "everything", is_flag=True, help="All slips in full.")
@click.option("--precision", type=click.IntRange(0, 17), default=8, show_default=True, help="Decimals.")
def command(number: int | None, everything: bool, precision: int) -> None:
    """What the two documents print wrong, and what is right.

    Without a NUMBER, all slips in a line each. Example: vidrio lesson errata 1
    """
    chosen = slips() if number is None else (slip(number),)
    if number is None and not everything:
        by_document = {key: [slip for slip in slips() if slip.document == key] for key in DOCUMENTS}
        click.echo(pages.text(pages.pages("errata")["list"], by_document))
    else:
        click.echo(terminal.text(apart(in_full(slip, precision) for slip in chosen)))
