"""What the tokenizers' library does where a file holds what it does not expect: it panics, and says so."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from threading import Lock

from vidrio.errors import TokenizerError

_aside = Lock()


@contextmanager
def without_its_own_words() -> Iterator[None]:
    """The library writes to stderr before Python hears of a panic, and what it writes may be out of a hostile file.
    What others write meanwhile comes a little later."""
    with _aside, TemporaryFile() as aside:
        try:
            stderr = os.dup(2)
        except OSError:  # it is closed
            yield
            return
        try:
            os.dup2(aside.fileno(), 2)
            yield
            aside.seek(0)
            others = aside.read()
        except BaseException:
            others = b""
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        if others:
            os.write(2, others)


@contextmanager
def told_of_panics() -> Iterator[None]:
    """A panic in our words. A file can hold what the library does not expect of itself; what it raises is no
    Exception."""
    try:
        with without_its_own_words():
            yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(
            "this tokenizer cannot be used", found=f"{error!s:.200}", do="use an undamaged model folder"
        ) from None
