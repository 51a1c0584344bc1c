"""Read lines from files, pipes and terminals, and translate them in constant memory, however large the input is."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vidrio.commands._output import is_complete, part_of, refuse_same_file, writing
from vidrio.commands._progress import bar
from vidrio.errors import DataError, about_file

if TYPE_CHECKING:
    from vidrio.commands._work import Work

READ_AT_ONCE = 1 << 20  # bytes


def translate_lines(work: "Work") -> None:
    """Translate the input line by line. With --resume, continue the output of an earlier command."""
    request = work.request
    source = Path(request.sources[0]) if request.sources else None
    target = None if request.target is None else Path(request.target)
    for output in (sys.stdout,) if target is None else (target, part_of(target)):
        refuse_same_file(output, [source or sys.stdin, *([request.glossary] if request.glossary else [])])
    if request.resume and target and is_complete(target):
        click.echo(f"vidrio: {target} is complete", err=True)
        return
    with writing(target, resume=request.resume) as (output, done):
        at, left = done + 1, done
        for lines in arriving(source):
            left -= sum(1 for _ in islice(lines, left))
            for line in work.on_lines(lines, at):
                output.write(f"{line}\n".encode())
                at += 1
            output.flush()
        if source is not None and (summary := work.summary(at - 1 - done)):
            click.echo(f"vidrio: {summary}", err=True)
        if left:
            raise DataError(
                "there is more output than input",
                found=f"{done} lines are already translated, but the input has {done - left}",
                do="give the same input as before, or delete the partial file to start over",
            )


class Decoder:
    """Decodes lines one by one, without an initial byte-order mark. An error states which line is not UTF-8."""

    def __init__(self, name: str) -> None:
        self._name, self._number = name, 0

    def __call__(self, raw: bytes) -> str:
        self._number += 1
        try:
            return raw.decode("utf-8-sig" if self._number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"line {self._number} of {self._name} is not UTF-8",
                found=f"byte 0x{raw[error.start]:02X} at position {error.start + 1} of the line",
                do="convert it to UTF-8",
            ) from None


def arriving(source: Path | None) -> Iterator[Iterator[str]]:
    """Yield the lines of a file or of standard input in batches, as they arrive. Lines from a pipe or a terminal are
    therefore translated before the next lines are read."""
    name = "standard input" if source is None else str(source)
    decode = Decoder(name)
    if source is None and sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        click.echo(f"vidrio: type a line and press Enter; press {end} to finish", err=True)
    rest: list[bytes] = []
    done = 0
    with open(sys.stdin.fileno() if source is None else source, "rb", buffering=0, closefd=source is not None) as file:
        status = os.fstat(file.fileno())
        is_file = stat.S_ISREG(status.st_mode)
        with bar("translating", status.st_size) if is_file else nullcontext(lambda done: None) as show:
            while data := read_some(file, name):
                *lines, last = data.split(b"\n")
                if lines:
                    yield map(decode, [b"".join([*rest, lines[0]]), *lines[1:]])
                    rest = []
                rest.append(last)
                done += len(data)
                show(done)
    if any(rest):
        yield map(decode, [b"".join(rest)])


def read_some(file: FileIO, name: str) -> bytes:
    with about_file(name):
        return file.read(READ_AT_ONCE)


def read_lines(path: Path) -> list[str]:
    """Return all lines of a file."""
    decode = Decoder(str(path))
    with path.open("rb") as file:
        return [decode(line.removesuffix(b"\n")).removesuffix("\r") for line in file]


def read_aligned(paths: Sequence[Path]) -> list[list[str]]:
    """Read line-aligned files, such as the sources and references of a test set."""
    files = [read_lines(path) for path in paths]
    if not any(files):
        raise DataError("there is nothing to score", found=f"{paths[0]} is empty", do="write one text per line")
    if len({len(lines) for lines in files}) > 1:
        counts = ", ".join(f"{path} has {len(lines):,}" for path, lines in zip(paths, files, strict=True))
        raise DataError("these files do not have the same number of lines", found=counts, do="align them line by line")
    return files
