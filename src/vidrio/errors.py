"""Errors that are reported to users.

Every message has three parts: what is wrong, what was found, and what to do. The exit code is 1. An invalid command
line raises click's `UsageError`, with exit code 2. Bugs raise ordinary Python exceptions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike


class VidrioError(Exception):
    """The base class of all reported errors. Its message says what is wrong, what was found, and what to do."""

    def __init__(self, what: str, *, found: str = "", do: str = "") -> None:
        self.what, self.found, self.do = what, found, do
        super().__init__(
            "\n".join(part for part in (what, found and f"  found: {found}", do and f"  do: {do}") if part)
        )


class DataError(VidrioError):
    """Sentence pairs or text files that cannot be used."""


class TokenizerError(VidrioError):
    """A tokenizer that cannot be trained or read, or that cannot represent a text."""


class ModelError(VidrioError):
    """A model folder that is missing, damaged or in an unknown format."""


class ConfigError(VidrioError):
    """Invalid sizes or options."""


class AddressError(VidrioError):
    """An address that does not exist in the model."""


class LessonError(VidrioError):
    """A lesson or section that does not exist."""


class RunError(VidrioError):
    """A training run that cannot be started, resumed or continued."""


class InputError(VidrioError):
    """An input that cannot be processed."""


def nearest(name: str, valid: list[str], *, count: int = 5) -> str:
    """Return the valid names closest to `name`, separated by commas."""
    from difflib import get_close_matches

    close = get_close_matches(name, valid, n=count, cutoff=0.4) or valid[:count]
    return ", ".join(close)


@contextmanager
def about_file(path: PathLike[str] | str) -> Iterator[None]:
    """Add the file's name to an OSError that has none. (A failed write, unlike `open`, does not report the name.)"""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
