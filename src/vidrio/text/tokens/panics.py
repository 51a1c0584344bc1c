"""What the tokenizers' library does where a file holds what it does not expect: it panics, and says so."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from threading import Lock

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
