"""Lines in: from files and pipes of any size, in constant memory."""

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from queue import Empty, Queue

import click

from vidrio.commands._progress import bar
from vidrio.errors import DataError
from vidrio.text.utf8 import Decoder

READ_AT_ONCE = 64 * 1024  # bytes
AWAKE = 0.2  # seconds after which who waits looks up: Ctrl-C may have reached another thread
DO = "convert it to UTF-8, or add --errors replace"


@contextmanager
def reading(source: Path | None, errors: str = "strict") -> Iterator[Iterator[Iterable[str]]]:
    """The lines of a file or of standard input, in groups: of a file all together, read as they are needed; of a pipe
    or a terminal those that are there at a time, so that each gets its answer before the next one is waited for."""
    decode = Decoder("standard input" if source is None else str(source), errors, DO)
    if source is None:
        if sys.stdin.isatty():
            click.echo("vidrio: type a line and press Enter; Ctrl-D ends", err=True)
        file = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115  (closed below)
    else:
        file = source.open("rb")
    with file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            with bar("translating", os.fstat(file.fileno()).st_size) as show:
                yield iter([_lines_of(file, decode, show)])
        else:
            yield (map(decode, lines) for lines in _as_they_come(file.fileno()))
    warn_replaced(decode.replaced)


def warn_replaced(lines: int) -> None:
    if lines:
        click.echo(f"vidrio: {lines} lines were not UTF-8; what could not be read is now �", err=True)


def _lines_of(file: BufferedReader, decode: Callable[[bytes], str], show: Callable[[int], object]) -> Iterator[str]:
    done = 0
    for line in file:
        yield decode(line.removesuffix(b"\n"))
        done += len(line)
        show(done)


def _as_they_come(descriptor: int) -> Iterator[list[bytes]]:
    queue: Queue[list[bytes] | OSError | None] = Queue(maxsize=4)
    threading.Thread(target=_read, args=(descriptor, queue), daemon=True).start()
    while True:
        blocks = [_next(queue)]
        while not queue.empty():
            blocks.append(queue.get())
        yield [line for block in blocks if isinstance(block, list) for line in block]
        if isinstance(end := blocks[-1], OSError):
            raise end
        if end is None:
            return


def _next(queue: "Queue[list[bytes] | OSError | None]") -> list[bytes] | OSError | None:
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


def read_aligned(paths: Sequence[Path]) -> list[list[str]]:
    """Files whose lines belong together, such as those of a test set."""
    files = [read_lines(path) for path in paths]
    if not any(files):
        raise DataError("there is nothing to score", found=f"{paths[0]} is empty", do="give a line for each sentence")
    if len({len(lines) for lines in files}) > 1:
        counts = ", ".join(f"{path} has {len(lines):,}" for path, lines in zip(paths, files, strict=True))
        raise DataError(
            "the lines of these files do not belong together", found=counts, do="give as many lines in each"
        )
    return files


def read_lines(path: Path) -> list[str]:
    """All lines of a file."""
    decode = Decoder(str(path))
    with path.open("rb") as file:
        return [decode(line.removesuffix(b"\n")).removesuffix("\r") for line in file]
