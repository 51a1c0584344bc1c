"""The second document, section by section, with its slips put right and every claim computed: `vidrio lesson notes`.

The words are in data/notes.toml; `measure_…` measures, and `values_of_…` is what the results are called on the page.
"""

from collections.abc import Callable, Mapping
from typing import Any

import click

from vidrio.draw import show
from vidrio.errors import LessonError, nearest
from vidrio.lessons import notes_attention, notes_positions, notes_text
from vidrio.lessons.as_data import json_text
from vidrio.lessons.pages import laid_out, pages

# section, in the document's order: what measures it, and what names the results for its page, written with a precision
SECTIONS: dict[str, tuple[Callable[[], Any], Callable[[Any, int], Mapping[str, Any]]]] = {
    "positions": (notes_positions.measure_positions, notes_positions.values_of_positions),
    "sums": (notes_positions.measure_sums, notes_positions.values_of_sums),
    "heads": (notes_attention.measure_heads, notes_attention.values_of_heads),
    "mask": (notes_attention.measure_mask, notes_attention.values_of_mask),
    "tokens": (notes_text.measure_tokens, notes_text.values_of_tokens),
    "structure": (notes_text.first_step, notes_text.values_of_structure),
    "forcing": (notes_text.measure_forcing, notes_text.values_of_forcing),
}


def section_text(section: str, precision: int) -> str:
    """A section, measured and told."""
    measure, values_of = SECTIONS[section]
    return laid_out(pages("notes")[section]["page"], values_of(measure(), precision), precision)


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
    abouts = {name: pages("notes")[name]["about"] for name in SECTIONS}
    if section is None and as_json:
        click.echo(json_text(abouts))
        return
    if section is None:
        click.echo("The second document; read a section with `vidrio lesson notes SECTION`:\n")
        click.echo(show.table([[f"  {name}", about] for name, about in abouts.items()]))
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
        click.echo(json_text({name: SECTIONS[name][0]() for name in chosen}))
    else:
        texts = (f"{name}: {abouts[name]}\n\n{section_text(name, precision)}" for name in chosen)
        click.echo("\n\n\n".join(texts))
