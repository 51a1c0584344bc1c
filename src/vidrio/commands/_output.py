"""Lines out: to standard output, a device or a pipe as they come; into a file that grows under another name until all
of it is there."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from vidrio.errors import DataError, about_file
from vidrio.model.files import is_plain_file, keep_access, real_place


class Output:
    """Where lines go."""

    def __init__(self, file: BinaryIO, name: Path | str, done: int = 0) -> None:
        self.done = done  # lines that an earlier command has written
        self._file, self._name = file, name

    def write(self, line: str) -> None:
        with about_file(self._name):  # a full disk's error does not name the file
            self._file.write(f"{line}\n".encode())

    def flush(self) -> None:
        with about_file(self._name):
            self._file.flush()


@contextmanager
def writing(target: Path | None, *, resume: bool = False) -> Iterator[Output]:
    """Where lines go. With `resume` those that stand in the part of an earlier command stay there."""
    if target is None:
        output = Output(sys.stdout.buffer, "stdout")
        yield output
        output.flush()
    elif is_plain_file(target):
        with _growing(real_place(target), resume=resume) as output:
            yield output
    elif resume:
        raise DataError(f"{target} is not a file, so nothing in it can be continued", do="leave out --resume")
    else:  # a device or a pipe stays what it is
        with about_file(target), target.open("wb") as file:
            yield Output(file, target)


@contextmanager
def _growing(target: Path, *, resume: bool) -> Iterator[Output]:
    part = part_of(target)
    done = length = 0
    if resume and part.exists():
        done, length = whole_lines_of(part)
        os.truncate(part, length)  # half a line at its end goes away
    try:
        with about_file(part), part.open("ab" if length else "wb") as file:
            keep_access(target, part)
            yield Output(file, part, done)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        click.echo(f"vidrio: what is done so far is in {part}; the same command with --resume goes on", err=True)
        raise
    os.replace(part, target)


def part_of(target: Path) -> Path:
    """Where an output grows until all of it is there."""
    place = real_place(target)
    return place.with_name(f"{place.name}.part")


def whole_lines_of(path: Path) -> tuple[int, int]:
    """How many lines a file holds, and their length in bytes."""
    count = length = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                count, length = count + 1, length + len(line)
    return count, length
