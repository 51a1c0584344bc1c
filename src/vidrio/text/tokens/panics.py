"""What the tokenizers' library does where a file holds what it does not expect: it panics, and says so; or it leaves
texts out without a word."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from threading import Lock

import tokenizers

from vidrio.errors import TokenizerError

_aside = Lock()


@contextmanager
def at_work() -> Iterator[None]:
    """The library at work. What it raises in a panic is no Exception."""
    try:
        with _without_its_own_words():
            yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(
            "this tokenizer cannot be used", found=f"{error!s:.200}", do="use an undamaged model folder"
        ) from None


def leaves_texts_out(engine: tokenizers.Tokenizer) -> bool:
    """Whether the template has no place for the text, so that not even a token becomes one."""
    probe = engine.id_to_token(engine.get_vocab_size() - 1)
    try:
        return bool(probe and not probe.isspace() and not engine.encode(probe, add_special_tokens=False).ids)
    except Exception:  # a vocabulary without the unknown; it is told when a text is read
        return False


@contextmanager
def _without_its_own_words() -> Iterator[None]:
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
