"""Write translated lines. Output to standard output, devices and pipes is written directly. Output to a file is written
to a partial file, which is renamed when it is complete. An interrupted command can be resumed from the partial file."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

import click

from vidrio.errors import DataError, about_file
from vidrio.model.files import is_plain_file, keep_access, real_place

PART = ".vidrio-part"  # suffix of a partial file
LOCK = ".vidrio-lock"


@contextmanager
def writing(target: Path | None, *, resume: bool) -> Iterator[tuple[BinaryIO, int]]:
    """Open the output, and yield it with the number of lines that an earlier command has written."""
    if target is None:
        with about_file("stdout"):
            yield sys.stdout.buffer, 0
            sys.stdout.buffer.flush()
    elif is_plain_file(target):
        with _growing(target, resume=resume) as growing:
            yield growing
    elif resume:
        raise DataError(f"{target} cannot be resumed", found="a device or a pipe", do="omit --resume")
    else:
        with about_file(target), target.open("wb") as file:
            yield file, 0


@contextmanager
def _growing(target: Path, *, resume: bool) -> Iterator[tuple[BinaryIO, int]]:
    """Open the partial file, and rename it to the target when it is complete. Only one command at a time can write to
    the partial file, and no command discards the lines of another command."""
    part = part_of(target)
    with _locked(target):
        done = whole_lines(part)
        if done and not resume:
            raise DataError(
                f"an interrupted command has already translated part of {target}",
                found=f"{in_words(done)} in {part}",
                do="add --resume to continue after them, or delete that file to start over",
            )
        try:
            with about_file(part), part.open("ab" if done else "wb") as file:
                keep_access(target, part)
                yield file, done
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            _tell_what_is_left(part)
            raise
        os.replace(part, real_place(target))


def is_complete(target: Path) -> bool:
    """Return whether the output file exists and has no partial file."""
    if not target.is_file():
        return False
    with _locked(target):
        return not part_of(target).exists()


def _locked(target: Path) -> AbstractContextManager[None]:
    from vidrio.data.lock import locked

    lock = part_of(target).with_suffix(LOCK)
    os.stat(lock.parent)  # raises an error if the folder does not exist; locking would create it
    return locked(lock, f"writing {target}", "wait for it to finish, or choose another --output")


def part_of(target: Path) -> Path:
    """Return the path of the partial file for an output."""
    place = real_place(target)
    return place.with_name(f"{place.name}{PART}")


def whole_lines(part: Path) -> int:
    """Count the complete lines of a partial file, and remove an incomplete last line."""
    count = length = 0
    with suppress(FileNotFoundError):
        with part.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    count, length = count + 1, length + len(line)
        os.truncate(part, length)
    return count


def in_words(lines: int) -> str:
    return f"{lines:,} finished line" + "s" * (lines != 1)


def _tell_what_is_left(part: Path) -> None:
    """After an error, print how to resume, or remove the partial file if it has no complete lines."""
    with suppress(OSError):
        if done := whole_lines(part):
            click.echo(f"vidrio: {in_words(done)} in {part}; add --resume to continue after them", err=True)
        else:
            part.unlink(missing_ok=True)


def refuse_same_file(output: Path | TextIO, inputs: Iterable[Path | TextIO]) -> None:
    """Raise DataError if the output is also an input, even under a different name."""
    with suppress(OSError):  # the file does not exist, or the stream has no file descriptor
        written = _status(output)
        for source in inputs:
            if stat.S_ISREG(written.st_mode) and os.path.samestat(written, _status(source)):
                name = output if isinstance(output, Path) else "standard output"
                raise DataError(f"{name} is also an input, which would be lost", do="write to another file")


def _status(file: Path | TextIO) -> os.stat_result:
    return file.stat() if isinstance(file, Path) else os.fstat(file.fileno())
