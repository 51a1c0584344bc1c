"""What can go wrong for a user.

Every message has the same three parts: what is wrong, what was found, what to do. The exit code is 1.
A mistake in *how a command was typed* is click's `UsageError`, exit code 2. A programming mistake stays a Python error.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike


class VidrioError(Exception):
    """A user's problem, told so that the user can solve it."""

    exit_code = 1

    def __init__(self, what: str, *, found: str = "", do: str = "") -> None:
        self.what, self.found, self.do = what, found, do
        super().__init__(
            "\n".join(part for part in (what, found and f"  found: {found}", do and f"  do: {do}") if part)
        )


class DataError(VidrioError):
    """Sentence pairs or text files that cannot be used, or their encoding."""


class TokenizerError(VidrioError):
    """A tokenizer that cannot be learned or read, or a text that it cannot hold."""


class ModelError(VidrioError):
    """A model folder that is missing, damaged or of another format."""


class ConfigError(VidrioError):
    """An impossible choice of sizes or options."""


class AddressError(VidrioError):
    """An address that names no number of this model."""


class LessonError(VidrioError):
    """A lesson or a section that there is not."""


class RunError(VidrioError):
    """A training run that cannot start, resume or go on."""


class InputError(VidrioError):
    """A text that cannot be worked on."""


def nearest(name: str, valid: list[str], *, count: int = 5) -> str:
    """The valid names nearest to `name`, as part of a sentence."""
    from difflib import get_close_matches

    close = get_close_matches(name, valid, n=count, cutoff=0.4) or valid[:count]
    return ", ".join(close)


@contextmanager
def about_file(path: PathLike[str] | str) -> Iterator[None]:
    """Name the file in what the system says about it: a write to a full disk, unlike an `open`, does not tell where."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
