"""The command line: `vidrio VERB …`.

Each verb lives in its own file under `commands/` and is imported only when it is called, so that `vidrio --help` stays
instant and nobody pays for what they do not use. Stdout is data, stderr is talk. Exit codes: 0 done, 1 a problem that
the message explains, 2 a mistyped command, 130 interrupted.
"""

import os
import sys

import click

from vidrio._version import __version__
from vidrio.commands._lazy import Lazy
from vidrio.errors import VidrioError

# verb: (module that holds a click command of the same name, one line of help)
VERBS = {
    "translate": ("vidrio.commands.translate", "Translate text, files or standard input."),
    "look": ("vidrio.commands.look", "Look inside: every step from text to text, with its numbers."),
    "why": ("vidrio.commands.why", "The receipt of one number: formula, values, recomputation."),
    "check": ("vidrio.commands.check", "Recompute numbers of a trace independently; the exit code tells."),
    "lesson": ("vidrio.commands.lesson", "Lessons: the worked example, the NaN laboratory, exercises."),
    "train": ("vidrio.commands.train", "Learn to translate from a file of sentence pairs."),
    "data": ("vidrio.commands.data", "Look at, clean and fetch sentence pairs."),
    "evaluate": ("vidrio.commands.evaluate", "Score a model on a test set: BLEU, chrF, TER."),
    "serve": ("vidrio.commands.serve", "Open the page: type, translate, look inside."),
    "score": ("vidrio.commands.score", "The model's log-probability of given translations."),
}

# Third-party modules that a light install has not: the extra of pyproject.toml that brings each
EXTRAS = {"torch": "train", "sacrebleu": "train", "zstandard": "train"}


class ReaderLeft(Exception):
    """Nobody reads stdout any more (`vidrio look … | head`)."""


class Verbs(Lazy):
    """The verbs."""

    table = VERBS
    noun = "verb"

    def invoke(self, context: click.Context) -> object:
        try:
            result = super().invoke(context)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise ReaderLeft from None  # or click would end the process itself, with exit code 1
        except SystemExit as leaving:
            if isinstance(leaving.__context__, BrokenPipeError):  # and that is how rich would end it
                raise ReaderLeft from None
            raise


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vidrio")
def vidrio() -> None:
    """A Transformer translator made of glass: it translates, it learns, and every number can be looked at."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; the only place where errors become messages."""
    try:
        result = vidrio.main(args=arguments, prog_name="vidrio", standalone_mode=False)
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
    except ReaderLeft:
        # Not a problem, and Python must not complain at exit either, when it flushes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A file that cannot be read, a disk that is full: the system says it well enough.
        click.echo(f"vidrio: {error}", err=True)
        return 1
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        click.echo(
            f"vidrio: this needs more than the light install\n  found: {error.name} is not installed\n"
            f'  do: pip install "vidrio[{extra}]"',
            err=True,
        )
        return 1
