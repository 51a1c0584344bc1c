"""Lines out: to standard output, a device or a pipe as they come; into a file that grows by whole lines under another
name until all of it is there."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from io import FileIO
from pathlib import Path
from types import FrameType
from typing import BinaryIO

import click

from vidrio.errors import DataError, about_file
from vidrio.model.files import (
    is_plain_file,
    keep_access,
    read_json,
    real_place,
    refuse_other,
    write_all,
    write_atomically,
)
from vidrio.model.json_text import json_text

ENDS = 1 << 20  # bytes of a file at its beginning and its end that tell it from others
SAMPLE = 8  # lines of an output, translated again to tell whether it is that of its input
ATTRIBUTE = "user.vidrio"  # of a finished output: what it belongs to
Identity = Mapping[str, str]  # what an output belongs to: of each thing a name, and what tells it from others


@contextmanager
def whole_lines() -> Iterator[None]:
    """The first Ctrl-C waits for the end of this block; a second one does not."""
    asked = False

    def later(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


class Output:
    """Lines that are handed on as they come. Nothing is taken back: what stands there before may be another's."""

    def __init__(self, file: BinaryIO | FileIO, name: Path | str) -> None:
        self.done = 0  # lines that were there before
        self._file, self._name = file, name

    def write(self, lines: Iterable[str]) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        with about_file(self._name), whole_lines():  # a full disk does not tell whose it is
            write_all(self._file, data)
            self._file.flush()


class GrowingFile(Output):
    """A file of our own: of the lines that are handed on together, all are in it or (on a full disk) none."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("r+b" if path.exists() else "w+b", buffering=0), path)
        self.done, self._length = whole_lines_of(path)
        self._file.truncate(self._length)  # half a line at its end goes away
        self._file.seek(self._length)

    def write(self, lines: Iterable[str]) -> None:
        try:
            super().write(lines)
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._length)
            raise
        self._length = self._file.tell()

    def close(self) -> None:
        """What is in it is on the disk."""
        with closing(self._file):
            os.fsync(self._file.fileno())


@contextmanager
def opened(target: Path | None, identity: Identity, *, resume: bool) -> Iterator[Output]:
    """Where lines go to. With `resume` what an earlier command has done is kept, if it belongs to the same things."""
    if target is None:
        yield Output(sys.stdout.buffer, "stdout")
        return
    if not is_plain_file(target):  # a device or a pipe stays what it is
        if resume:
            raise DataError(f"{target} is no file, so nothing in it can be gone on with", do="leave out --resume")
        with target.open("wb", buffering=0) as file:
            yield Output(file, target)
        return
    target, part = real_place(target), part_of(target)
    manifest = part.with_name(f"{part.name}.json")
    if resume and part.exists():
        if not manifest.is_file():
            raise DataError(
                f"it cannot be told what {part} belongs to",
                found=f"there is no {manifest.name} beside it",
                do="leave out --resume to start afresh; the part is then written anew",
            )
        refuse_other(part, read_json(manifest, what=f"what {part} belongs to"), identity)
    else:
        part.unlink(missing_ok=True)
        write_atomically(manifest, f"{json_text(dict(identity), indent=2)}\n".encode())
    try:
        with closing(GrowingFile(part)) as output:
            keep_access(target, part)
            yield output
    except BaseException:
        click.echo(f"vidrio: what is done so far is in {part}; the same command with --resume goes on", err=True)
        raise
    with suppress(OSError, AttributeError):  # some systems and file systems keep no attributes of files
        os.setxattr(part, ATTRIBUTE, json_text(dict(identity)).encode())
    os.replace(part, target)
    manifest.unlink(missing_ok=True)


def is_finished(target: Path) -> bool:
    """Whether an output stands there, and none has been begun since."""
    return real_place(target).is_file() and not part_of(target).exists()


def part_of(target: Path) -> Path:
    """Where an output grows until all of it is there."""
    place = real_place(target)
    return place.with_name(f"{place.name}.part")


def belongs(target: Path, identity: Identity) -> bool:
    """Whether a finished output is known to belong to these things; refused, if it is known to belong to others. Where
    a file system keeps no attributes of files, nothing is known."""
    try:
        before = json.loads(os.getxattr(real_place(target), ATTRIBUTE))
    except (OSError, AttributeError, ValueError):
        return False
    if not isinstance(before, dict):
        return False
    refuse_other(target, before, identity)
    return True


def sample_of(output: Path, count: int) -> dict[int, str]:
    """Some of an output's `count` lines, from the first to the last, each with its number (from 0)."""
    numbers = {round(step * (count - 1) / (SAMPLE - 1)) for step in range(SAMPLE)}
    with output.open("rb") as file:
        some = {number: line for number, line in enumerate(file) if number in numbers and number < count}
    return {number: line.decode(errors="replace").removesuffix("\n") for number, line in some.items()}


def same_line(before: str, now: str) -> bool:
    """Whether two lines say the same; fractions of JSON may differ in their last digits."""
    if before == now:
        return True
    with suppress(ValueError, RecursionError):
        whole = [json.loads(line, parse_float=lambda _: None) for line in (before, now)]
        return isinstance(whole[0], dict) and whole[0] == whole[1]
    return False


def file_identity(path: Path) -> str:
    """What tells a file from others: its size and a checksum of both ends."""
    from hashlib import sha256

    size = path.stat().st_size
    with path.open("rb") as file:
        checksum = sha256(file.read(ENDS))
        file.seek(max(0, size - ENDS))
        checksum.update(file.read(ENDS))
    return f"{size} bytes, {checksum.hexdigest()[:16]}"


def whole_lines_of(path: Path) -> tuple[int, int]:
    """How many lines a file holds, and their length in bytes."""
    count = length = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                count, length = count + 1, length + len(line)
    return count, length
