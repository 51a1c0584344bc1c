"""The second document, section by section, with its slips put right and every claim computed: `vidrio lesson notes`."""

from collections.abc import Callable, Iterator

import click

from vidrio import show
from vidrio.errors import LessonError, nearest

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


def teller(section: str) -> Callable[[int], Iterator[str]]:
    """The function that tells a section."""
    from vidrio.lessons import notes_attention, notes_positions, notes_text

    return {
        "positions": notes_positions.tell_positions,
        "sums": notes_positions.tell_sums,
        "heads": notes_attention.tell_heads,
        "mask": notes_attention.tell_mask,
        "tokens": notes_text.tell_tokens,
        "structure": notes_text.tell_structure,
        "forcing": notes_text.tell_forcing,
    }[section]


@click.command("notes")
@click.argument("section", required=False)
@click.option("--precision", type=click.IntRange(1, 17), default=show.PRECISION, show_default=True)
def command(section: str | None, precision: int) -> None:
    """The second document, section by section, put right and computed.

    \b
    vidrio lesson notes              the sections
    vidrio lesson notes mask         one of them
    vidrio lesson notes all          all of them
    """
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
    for name in SECTIONS if section == "all" else (section,):
        click.echo(f"{name}: {SECTIONS[name]}\n")
        for text in teller(name)(precision):
            click.echo(text)
        if section == "all":
            click.echo("")
