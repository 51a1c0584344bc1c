"""`vidrio lesson NAME SECTION`: a section of a lesson, whose experiments run while it is read."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import click

ANSWER = "<details>"  # what follows is folded on a page; in a terminal the reader is asked to think first


@click.command()
@click.argument("name", required=False)
@click.argument("section", required=False)
@click.option("--code", "wants_code", is_flag=True, help="Only the Python of the section, to save and to change.")
def lesson(name: str | None, section: str | None, wants_code: bool) -> None:
    """Lessons: a Transformer worked through by hand, and experiments on it.

    Without a name, the lessons are listed; without a section, the lesson's sections. SECTION is a number, words of its
    title, or `all`. Its experiments run while you read.

    \b
    vidrio lesson
    vidrio lesson nan
    vidrio lesson nan cause
    vidrio lesson nan all --code
    """
    from vidrio.lessons import run

    if name is None:
        click.echo("Lessons; `vidrio lesson NAME` lists the sections of one:\n")
        for known in run.NAMES:
            click.echo(f"  {known:20}{run.sections(known)[0].title}")
    elif wants_code:
        click.echo(run.python(run.chosen(name, section or "all")), nl=False)
    elif section is None:
        first, *others = run.sections(name)
        show(str(part) for part in first.parts)
        click.echo(f"\nSections; `vidrio lesson {name} NUMBER` reads one:\n")
        for number, other in enumerate(others, 1):
            click.echo(f"  {number:2}  {other.title}")
    else:
        with TemporaryDirectory() as folder:
            for one in run.chosen(name, section):
                show(run.read(one, Path(folder)))


def show(pieces: Iterable[str]) -> None:
    for piece in pieces:
        before, details, after = piece.partition(ANSWER)
        _show(before)
        if details:
            click.pause("When you have thought, press any key …\n")
            _show(after.partition("</summary>")[2])


def _show(markdown: str) -> None:
    if text := markdown.replace("</details>", "").strip("\n"):
        click.echo(f"{text}\n")
