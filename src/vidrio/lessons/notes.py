"""The second document, section by section, with its slips put right and every claim computed: `vidrio lesson notes`.

The words are in data/notes.toml, which names what is measured.
"""

from collections.abc import Callable
from typing import Any

import click

from vidrio.errors import LessonError, nearest
from vidrio.lessons import notes_attention, notes_positions, notes_text, pages
from vidrio.look import writing

# section, in the document's order: what measures it
SECTIONS: dict[str, Callable[[], Any]] = {
    "positions": notes_positions.measure_positions,
    "sums": notes_positions.measure_sums,
    "heads": notes_attention.measure_heads,
    "mask": notes_attention.measure_mask,
    "tokens": notes_text.measure_tokens,
    "structure": notes_text.measure_structure,
    "forcing": notes_text.measure_forcing,
}


def section_text(section: str, precision: int) -> str:
    """A section, measured and told."""
    named = pages.public(SECTIONS[section]()) | {"cat": notes_positions.CAT_SENTENCE}
    return pages.text(pages.pages("notes")[section]["page"], named, precision)


@click.command("notes")
@click.argument("section", required=False)
@click.option("--precision", type=click.IntRange(0, 17), default=writing.PRECISION, show_default=True, help="Decimals.")
def command(section: str | None, precision: int) -> None:
    """The second document, section by section, put right and computed.

    \b
    vidrio lesson notes              the sections
    vidrio lesson notes mask         one of them
    vidrio lesson notes all          all of them
    """
    texts = pages.pages("notes")
    abouts = {name: texts[name]["about"] for name in SECTIONS}
    if section is None:
        listed = {"sections": list(abouts.items())}
        click.echo(pages.text(texts["list"], listed))
        return
    if section not in (*SECTIONS, "all"):
        raise LessonError(
            f"the notes have no section {section!r}",
            found=f"nearest: {nearest(section, [*SECTIONS, 'all'], count=2)}",
            do=f"choose one of {', '.join(SECTIONS)}, all",
        )
    chosen = tuple(SECTIONS) if section == "all" else (section,)
    sections = (f"{name}: {abouts[name]}\n\n{section_text(name, precision)}" for name in chosen)
    click.echo("\n\n\n".join(sections))
