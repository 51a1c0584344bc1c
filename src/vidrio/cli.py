"""The command line: `vidrio VERB …`.

Each verb lives in its own file under `commands/` and is imported only when it is called, so that `vidrio --help` stays
instant and nobody pays for what they do not use. Stdout is data, stderr is talk. Exit codes: 0 done, 1 a problem that the
message explains, 2 a mistyped command, 130 interrupted.
"""

import os
import sys

import click

from vidrio import __version__
from vidrio.errors import VidrioError

# verb: (module that holds a click command of the same name, one line of help)
VERBS = {
    "translate": ("vidrio.commands.translate", "Translate text, files or standard input."),
    "look": ("vidrio.commands.look", "Look inside: every step from text to text, with its numbers."),
    "why": ("vidrio.commands.why", "The receipt of one number: formula, substituted values, recomputation."),
    "check": ("vidrio.commands.check", "Recompute numbers of a trace independently; the exit code tells."),
    "lesson": ("vidrio.commands.lesson", "Lessons: the worked example, the NaN laboratory, exercises."),
    "train": ("vidrio.commands.train", "Learn to translate from a file of sentence pairs."),
    "data": ("vidrio.commands.data", "Look at, clean and fetch sentence pairs."),
    "evaluate": ("vidrio.commands.evaluate", "Score a model on a test set: BLEU, chrF, TER."),
    "score": ("vidrio.commands.score", "The model's log-probability of given translations."),
}


class Verbs(click.Group):
    """A click group that imports a verb only when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module = __import__(VERBS[name][0], fromlist=[name])
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in VERBS.items()])


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vidrio")
def vidrio() -> None:
    """A Transformer translator made of glass: it translates, it learns, and every number can be looked at."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; the only place where errors become messages."""
    try:
        result = vidrio.main(args=arguments, prog_name="vidrio", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except VidrioError as error:
        click.echo(f"vidrio: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("vidrio: interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader went away (`vidrio look … | head`): not a problem, and Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
