"""Where translated lines are written: directly to standard output, a device or a pipe; to a file completely, or as a
part to resume."""

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

PART = ".vidrio-part"  # suffix of a part's name
LOCK = ".vidrio-lock"


@contextmanager
def writing(target: Path | None, *, resume: bool) -> Iterator[tuple[BinaryIO, int]]:
    """The output, and the number of lines that an earlier command has written."""
    if target is None:
        with about_file("stdout"):
            yield sys.stdout.buffer, 0
            sys.stdout.buffer.flush()
    elif is_plain_file(target):
        with _growing(target, resume=resume) as growing:
            yield growing
    elif resume:
        raise DataError(f"{target} cannot be resumed", found="a device or a pipe", do="leave out --resume")
    else:
        with about_file(target), target.open("wb") as file:
            yield file, 0


@contextmanager
def _growing(target: Path, *, resume: bool) -> Iterator[tuple[BinaryIO, int]]:
    """A part, which is renamed to the target when it is complete. One command at a time writes it, and no command
    discards another's lines."""
    part = part_of(target)
    with _locked(target):
        done = whole_lines(part)
        if done and not resume:
            raise DataError(
                f"an interrupted command has translated a part of {target}",
                found=f"{in_words(done)} in {part}",
                do="add --resume to continue after them, or delete that file to start afresh",
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
    """Whether an output is complete: the file exists, and no part of it."""
    if not target.is_file():
        return False
    with _locked(target):
        return not part_of(target).exists()


def _locked(target: Path) -> AbstractContextManager[None]:
    from vidrio.data.lock import locked

    lock = part_of(target).with_suffix(LOCK)
    os.stat(lock.parent)  # an error if the folder does not exist: a lock would create it
    return locked(lock, f"writing {target}", "wait until it has ended, or give another --output")


def part_of(target: Path) -> Path:
    """The file that an output is written to until it is complete."""
    place = real_place(target)
    return place.with_name(f"{place.name}{PART}")


def whole_lines(part: Path) -> int:
    """The number of lines of a part. An incomplete last line is removed."""
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
    """How to continue after an error. A part without lines is removed."""
    with suppress(OSError):
        if done := whole_lines(part):
            click.echo(f"vidrio: {in_words(done)} in {part}; add --resume to continue after them", err=True)
        else:
            part.unlink(missing_ok=True)


def refuse_same_file(output: Path | TextIO, inputs: Iterable[Path | TextIO]) -> None:
    """Refuse an output that is also an input, under any name."""
    with suppress(OSError):  # the file does not exist, or the stream has no file
        written = _status(output)
        for source in inputs:
            if stat.S_ISREG(written.st_mode) and os.path.samestat(written, _status(source)):
                name = output if isinstance(output, Path) else "standard output"
                raise DataError(f"{name} is also an input, which would be lost", do="write to another file")


def _status(file: Path | TextIO) -> os.stat_result:
    return file.stat() if isinstance(file, Path) else os.fstat(file.fileno())
