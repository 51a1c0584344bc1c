"""`vidrio lesson NAME`: the worked example and what goes with it. Each lesson is imported only when it is called."""

import click

from vidrio.commands._lazy import Lazy

LESSONS = {
    "random-transformer": ("vidrio.lessons.random_transformer", "The worked example, from Hello World to hola …"),
    "errata": ("vidrio.lessons.errata", "What the two documents print wrong, and what is right."),
    "nan": ("vidrio.lessons.nan_laboratory", "Six blocks that explode, and what stops them."),
    "sizes": ("vidrio.lessons.sizes", "Parameters and multiplications, up to the paper's size."),
    "notes": ("vidrio.lessons.notes", "The second document: positions, masks, heads, forcing."),
    "exercises": ("vidrio.lessons.exercises", "Eight questions, each answered by an experiment."),
}


class Lessons(Lazy):
    """The lessons."""

    table = LESSONS
    noun = "lesson"
    attribute = "command"


@click.command(cls=Lessons, invoke_without_command=True, subcommand_metavar="NAME [OPTIONS]...")
@click.pass_context
def lesson(context: click.Context) -> None:
    """Lessons: a Transformer worked through by hand, and experiments on it.

    Without a name, the lessons are listed.
    """
    if context.invoked_subcommand is None:
        click.echo("Lessons; run one with `vidrio lesson NAME`:\n")
        for name, (_, says) in LESSONS.items():
            click.echo(f"  {name:20}{says}")
