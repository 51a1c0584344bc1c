"""The second document, section by section, with its slips put right and every claim computed: `vidrio lesson notes`."""

from collections.abc import Callable, Iterator
from typing import Any

import click

from vidrio.draw import show
from vidrio.errors import LessonError, nearest
from vidrio.lessons.as_data import json_text

# section: (what it is about, where it is told); in the document's order
SECTIONS = {
    "positions": "Sine or learned positions; what is lost without any.",
    "sums": "YOUR CAT IS A LOVELY CAT: ten sums, two wrong, and impossible positions.",
    "heads": "Four heads: not four slices of 128, and what W^O is for.",
    "mask": "Hiding the future: −∞ before the softmax, and why zeros do not hide.",
    "tokens": "Start, end, unknown, padding.",
    "structure": "The ten steps from sentence to word, put right, with their numbers.",
    "forcing": "Teacher forcing: the two rows aligned, and a live pass.",
}


def measure_and_tell(section: str) -> tuple[Callable[[], Any], Callable[[Any, int], Iterator[str]]]:
    """What measures a section's numbers, and what tells them with a precision."""
    from vidrio.lessons import notes_attention, notes_positions, notes_text

    pairs: dict[str, tuple[Callable[[], Any], Callable[[Any, int], Iterator[str]]]] = {
        "positions": (notes_positions.measure_positions, notes_positions.tell_positions),
        "sums": (notes_positions.measure_sums, notes_positions.tell_sums),
        "heads": (notes_attention.measure_heads, notes_attention.tell_heads),
        "mask": (notes_attention.measure_mask, notes_attention.tell_mask),
        "tokens": (notes_text.measure_tokens, notes_text.tell_tokens),
        "structure": (notes_text.first_step, notes_text.tell_structure),
        "forcing": (notes_text.measure_forcing, notes_text.tell_forcing),
    }
    return pairs[section]


@click.command("notes")
@click.argument("section", required=False)
@click.option("--precision", type=click.IntRange(0, 17), default=show.PRECISION, show_default=True, help="Decimals.")
@click.option("--json", "as_json", is_flag=True, help="What is measured, as JSON.")
def command(section: str | None, precision: int, as_json: bool) -> None:
    """The second document, section by section, put right and computed.

    \b
    vidrio lesson notes              the sections
    vidrio lesson notes mask         one of them
    vidrio lesson notes all          all of them
    """
    if section is None and as_json:
        click.echo(json_text(SECTIONS))
        return
    if section is None:
        click.echo("The second document; read a section with `vidrio lesson notes SECTION`:\n")
        click.echo(show.table([[f"  {name}", says] for name, says in SECTIONS.items()]))
        click.echo("\n  all         all of them")
        click.echo("\nIts glossary of sizes: vidrio lesson sizes --glossary")
        return
    if section not in (*SECTIONS, "all"):
        raise LessonError(
            f"the notes have no section {section!r}",
            found=f"nearest: {nearest(section, [*SECTIONS, 'all'], count=2)}",
            do=f"choose one of {', '.join(SECTIONS)}, all",
        )
    chosen = tuple(SECTIONS) if section == "all" else (section,)
    if as_json:
        click.echo(json_text({name: measure_and_tell(name)[0]() for name in chosen}))
        return
    for name in chosen:
        measure, tell = measure_and_tell(name)
        click.echo(f"{name}: {SECTIONS[name]}\n")
        for text in tell(measure(), precision):
            click.echo(text)
        if name != chosen[-1]:
            click.echo("\n")
