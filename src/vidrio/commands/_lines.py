"""Lines in: from files and pipes of any size, in constant memory."""

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue

import click

from vidrio.commands._progress import bar
from vidrio.errors import DataError
from vidrio.text.utf8 import Decoder

READ_AT_ONCE = 64 * 1024  # bytes
DO = "convert it to UTF-8, or go on with --errors replace"


def chunks_of_pipe(descriptor: int, decode: Callable[[bytes], str], size: Callable[[], int]) -> Iterator[list[str]]:
    """The lines of a pipe or terminal as they come, about `size()` characters at a time if there are so many.

    An empty chunk comes before waiting: what is there gets its answer.
    """
    queue: Queue[list[bytes] | OSError | None] = Queue(maxsize=4)
    threading.Thread(target=_read, args=(descriptor, queue), daemon=True).start()
    lines: list[str] = []
    length = 0
    try:
        while True:
            try:
                read = queue.get_nowait()
            except Empty:
                if lines:
                    yield lines
                yield []
                lines, length = [], 0
                read = _next(queue)
            if isinstance(read, OSError):
                raise read
            if read is None:
                break
            for line in read:
                lines.append(decode(line))
                length += len(line)
                if length >= size():
                    yield lines
                    lines, length = [], 0
    except Exception:  # those before the line that cannot be read are translated
        yield lines
        raise
    if lines:
        yield lines


def _next(queue: "Queue[list[bytes] | OSError | None]") -> list[bytes] | OSError | None:
    """What comes next. Woken now and then, since Ctrl-C may have reached the other thread."""
    from vidrio.translate.stream import AWAKE

    while True:
        with suppress(Empty):
            return queue.get(timeout=AWAKE)


def _read(descriptor: int, queue: "Queue[list[bytes] | OSError | None]") -> None:
    """In its own thread. Not through sys.stdin, whose lock would not let the program end while a read is waiting."""
    rest: list[bytes] = []
    try:
        while data := os.read(descriptor, READ_AT_ONCE):
            *lines, last = data.split(b"\n")
            if lines:
                queue.put([b"".join([*rest, lines[0]]), *lines[1:]])
                rest = []
            rest.append(last)
    except OSError as error:
        queue.put(error)
        return
    if any(rest):
        queue.put([b"".join(rest)])
    queue.put(None)


def skipped(
    chunks: Iterator[list[str]], count: int, check: Callable[[dict[int, str]], None], numbers: Collection[int]
) -> Iterator[list[str]]:
    """The chunks without the first `count` lines; before the others come, those with these numbers (from 0) are
    checked."""
    at, kept = 0, dict[int, str]()
    for chunk in chunks:
        rest = chunk[count - at :]
        if at < count:
            kept |= {number: chunk[number - at] for number in numbers if at <= number < at + len(chunk)}
            at += len(chunk) - len(rest)
            if at == count:
                check(kept)
        yield rest
    if at < count:
        raise DataError(
            "there is more output than input",
            found=f"{count} lines are translated already, the input has {at}",
            do="give the same input as before, or leave out --resume to start afresh",
        )


@contextmanager
def reading(
    source: Path | None, errors: str, at_once: Callable[[], int]
) -> Iterator[tuple[Iterator[list[str]], Callable[[], object]]]:
    """Chunks of lines, and what to call when some of them are done."""
    from vidrio.translate.stream import in_chunks

    decode = Decoder("standard input" if source is None else str(source), errors, DO)
    if source is None:
        if sys.stdin.isatty():
            click.echo("vidrio: type a line and press Enter; Ctrl-D ends", err=True)
        yield chunks_of_pipe(sys.stdin.fileno(), decode, at_once), lambda: None
    else:
        with source.open("rb") as file:
            if file.seekable():
                lines = (decode(line.removesuffix(b"\n")) for line in file)
                with bar("translating", os.fstat(file.fileno()).st_size) as show:
                    yield in_chunks(lines, at_once), lambda: show(file.tell())
            else:  # a named pipe
                yield chunks_of_pipe(file.fileno(), decode, at_once), lambda: None
    tell_replaced(decode.replaced)


def tell_replaced(lines: int) -> None:
    if lines:
        click.echo(f"vidrio: {lines} lines were not UTF-8; what could not be read is now �", err=True)
