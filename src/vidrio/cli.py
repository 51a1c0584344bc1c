"""The command line: `vidrio VERB …`.

Each command is in its own file in `commands/` and is imported only when it is called, so that `vidrio --help` starts
quickly. Data is written to stdout, messages to stderr. The exit code is 0 for success, 1 for a reported error, 2 for an
invalid command line and 130 for an interruption.
"""

import errno
import gc
import io
import os
import sys
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from typing import NoReturn

import click

from vidrio._version import __version__
from vidrio.errors import VidrioError

# command: (module with a click command of the same name, help line)
VERBS = {
    "translate": ("vidrio.commands.translate", "Translate text, files or standard input."),
    "look": ("vidrio.commands.look", "Show every step of a translation with its numbers."),
    "why": ("vidrio.commands.why", "Explain a word of a translation, or one number."),
    "check": ("vidrio.commands.check", "Recompute every number independently, and report disagreements."),
    "lesson": ("vidrio.commands.lesson", "Read lessons: the worked example, the NaN laboratory, exercises."),
    "train": ("vidrio.commands.train", "Train a translator on sentence pairs."),
    "data": ("vidrio.commands.data", "Clean sentence pairs."),
    "evaluate": ("vidrio.commands.evaluate", "Score a model on a test set: BLEU, chrF, TER."),
    "site": ("vidrio.commands.site", "Write the page as static files for any web server."),
    "serve": ("vidrio.commands.serve", "Serve the page and a translation API."),
    "models": ("vidrio.commands.models", "List models: packaged, imported, or available from Mozilla."),
    "import": ("vidrio.commands.import_", "Convert another program's model to a model folder."),
    "export": ("vidrio.commands.export", "Convert a model to another program's format."),
}

# The number of new objects after which Python's garbage collector looks for cycles. With the default of 700, it took a
# tenth of the startup and translation time.
OBJECTS = 20_000

# Third-party modules that the light install lacks, each with the extra in pyproject.toml that installs it.
EXTRAS = {
    "torch": "train",
    "sacrebleu": "train",
    "ctranslate2": "interop",
    "google": "interop",  # protobuf
    "sentencepiece": "interop",
    "pyarrow": "ray",
    "ray": "ray",
}


class ReaderLeft(Exception):
    """The process reading stdout has closed it (`vidrio look … | head`)."""


class Verbs(click.Group):
    """The group of commands. A command is imported only when it is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module, short_help = VERBS[name]
        command: click.Command = getattr(import_module(module), name + "_" * iskeyword(name))
        command.short_help = short_help
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], VERBS, n=1, cutoff=0.4)
            context.fail(f"There is no command {args[0]!r}." + (f" Did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in VERBS.items()])

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise ReaderLeft from None  # otherwise click would exit with code 1


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vidrio")
def vidrio() -> None:
    """A Transformer translator that shows every number: translate, train, and look inside."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code. Only this function turns errors into messages."""
    gc.set_threshold(OBJECTS)
    _replace_closed_streams()
    # A redirected stdout is UTF-8, like all files; on Windows, it would not be.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=None if sys.stdout.isatty() else "utf-8", errors="backslashreplace")
    try:
        result = vidrio.main(args=arguments, prog_name="vidrio", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except VidrioError as error:
        click.echo(f"vidrio: {error}", err=True)
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("vidrio: interrupted", err=True)
        if arguments is None:
            _leave_at_once(130)
        return 130
    except (ReaderLeft, BrokenPipeError):
        _drop_what_is_left()
        return 0
    except OSError as error:
        # The system's message is clear enough, but it does not mention stdout. Errors about other files have a name
        # (`about_file`). Flushing may succeed even after an error, because the buffer may have dropped those bytes.
        if not _stdout_is_writable() or error.errno in (errno.EBADF, errno.ENOSPC, errno.EFBIG):
            error.filename = error.filename or "stdout"
        click.echo(f"vidrio: {error}", err=True)
        return 1
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        click.echo(
            f"vidrio: an optional dependency is missing\n  found: {error.name} is not installed\n"
            f"  do: in the repository, run: pip install -c constraints.txt -e '.[{extra}]'",
            err=True,
        )
        return 1


def _leave_at_once(code: int) -> NoReturn:
    """Exit without waiting for threads, which may still be translating a line of several megabytes."""
    with suppress(OSError):
        sys.stdout.flush()
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _stdout_is_writable() -> bool:
    """Flush stdout and return whether this succeeded. If not, drop the rest of the buffer."""
    try:
        sys.stdout.flush()
        return True
    except OSError:
        _drop_what_is_left()
        return False


def _drop_what_is_left() -> None:
    """Redirect stdout to the null device. Otherwise, Python reports an error when it flushes stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replace_closed_streams() -> None:
    """Replace streams that were closed at startup (`>&-`), which Python sets to None. Otherwise, the next file opened
    would get the stream's file descriptor, and libraries would print into that file. Using a replaced stdin or stdout
    raises an error; messages to stderr are dropped."""
    for name, mode, access in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, access), mode, encoding="utf-8"))  # noqa: SIM115
