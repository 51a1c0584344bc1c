"""`vidrio lesson NAME SECTION`: print a section of a lesson, and run its experiments."""

import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vidrio.lessons.run import Language

ANSWER = "<details>"  # marks an answer: hidden at first on the page; in a terminal, the command pauses before it
SAYS = {
    "en": (
        "Lessons (to list the sections of one, run `vidrio lesson NAME`):",
        "Sections (to read one, run `vidrio lesson {} NUMBER`):",
        "Press any key when you have an answer …",
    ),
    "es": (
        "Lecciones; `vidrio lesson NOMBRE` enumera los apartados de una:",
        "Apartados; `vidrio lesson {} NÚMERO` lee uno:",
        "Cuando lo hayas pensado, pulsa cualquier tecla …",
    ),
}


def of_the_locale() -> str:
    """Return "es" if the locale is Spanish, otherwise "en"."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next(filter(None, map(os.environ.get, names)), "")
    return "es" if locale.startswith("es") else "en"


@click.command()
@click.argument("name", required=False)
@click.argument("section", required=False)
@click.option("--code", "wants_code", is_flag=True, help="Print only the section's Python code, to save and edit.")
@click.option(
    "--language", type=click.Choice(list(SAYS)), default=of_the_locale, help="Language of the lesson. [the locale's]"
)
def lesson(name: str | None, section: str | None, wants_code: bool, language: "Language") -> None:
    """Read lessons: a Transformer worked through by hand, with experiments.

    Without NAME, list the lessons; without SECTION, list the sections of the lesson. SECTION is a number, words from
    the section's title, or `all`. The experiments run as you read.

    \b
    vidrio lesson
    vidrio lesson nan
    vidrio lesson nan cause
    vidrio lesson nan all --code
    vidrio lesson nan --language es
    """
    from vidrio.lessons import run

    lessons, sections, pause = SAYS[language]
    if name is None:
        click.echo(f"{lessons}\n")
        for known in run.NAMES:
            click.echo(f"  {known:20}{run.sections(known, language)[0].title}")
    elif wants_code:
        click.echo(run.python(run.chosen(name, section or "all", language)), nl=False)
    elif section is None:
        first, *others = run.sections(name, language)
        show(map(str, first.parts), pause)
        click.echo(f"\n{sections.format(name)}\n")
        for number, other in enumerate(others, 1):
            click.echo(f"  {number:2}  {other.title}")
    else:
        with TemporaryDirectory() as folder:
            for one in run.chosen(name, section, language):
                show(run.read(one, Path(folder)), pause)


def show(pieces: Iterable[str], pause: str) -> None:
    """Print Markdown, pausing before each answer so that the user can think first."""
    for piece in pieces:
        before, details, after = piece.partition(ANSWER)
        _show(before)
        if details:
            click.pause(f"{pause}\n")
            _show(after.partition("</summary>")[2])


def _show(markdown: str) -> None:
    if text := markdown.replace("</details>", "").strip("\n"):
        click.echo(f"{text}\n")
