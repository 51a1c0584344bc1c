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
from typing import Any, BinaryIO

import click

from vidrio.errors import DataError, about_file
from vidrio.model.files import is_plain_file, read_json, real_place, refuse_other, write_atomically
from vidrio.model.json_text import json_text

ENDS = 1 << 20  # bytes of a file at its beginning and its end that tell it from others
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
        data = memoryview("".join(f"{line}\n" for line in lines).encode())
        with about_file(self._name), whole_lines():  # a full disk does not tell whose it is
            while data:
                data = data[self._file.write(data) :]
            self._file.flush()


class GrowingFile(Output):
    """A file of our own: of the lines that are handed on together, all are in it or (on a full disk) none."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("r+b" if path.exists() else "w+b", buffering=0), path)
        self.done, self._length = _whole_lines_of(path)
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
    target = real_place(target)
    part, manifest = (target.with_name(target.name + end) for end in (".part", ".part.json"))
    if resume and part.exists():
        _check_identity(part, manifest, identity)
    else:
        part.unlink(missing_ok=True)
        write_atomically(manifest, f"{json_text(dict(identity), indent=2)}\n".encode())
    try:
        with closing(GrowingFile(part)) as output:
            yield output
    except BaseException:
        click.echo(f"vidrio: what is done so far is in {part}; the same command with --resume goes on", err=True)
        raise
    _remember(part, identity)
    os.replace(part, target)
    manifest.unlink(missing_ok=True)


def _check_identity(part: Path, manifest: Path, identity: Identity) -> None:
    """Refuse to go on with what belongs to something else."""
    if manifest.is_file():
        refuse_other(part, read_json(manifest, what=f"what {part} belongs to"), identity)


def _remember(output: Path, identity: Identity) -> None:
    """Write beside a file's contents what it belongs to, where the file system has a place for that."""
    with suppress(OSError, AttributeError):
        os.setxattr(output, ATTRIBUTE, json_text(dict(identity)).encode())


def _remembered(output: Path) -> Mapping[str, Any] | None:
    with suppress(OSError, AttributeError, ValueError):
        before = json.loads(os.getxattr(output, ATTRIBUTE))
        return before if isinstance(before, dict) else None
    return None


def is_complete(target: Path, source: Path | None, identity: Identity) -> bool:
    """Whether a translation of these things stands there and none has been begun since. It must have as many lines as
    its source; that is all there is to tell it by where a file system keeps no attributes of files."""
    target = real_place(target)
    if not target.is_file() or target.with_name(f"{target.name}.part").exists():
        return False
    if (before := _remembered(target)) is not None:
        refuse_other(target, before, identity)
    done = _whole_lines_of(target)[0]
    if source is not None and (wanted := count_lines(source)) != done:
        raise DataError(
            f"{target} is not the translation of {source}",
            found=f"{done:,} lines for {wanted:,}",
            do="leave out --resume to translate it afresh",
        )
    return True


def count_lines(path: Path) -> int:
    """The lines of a file; the last one may lack its line end."""
    count, last = 0, b""
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            count += block.count(b"\n")
            last = block
    return count + (last[-1:] not in (b"", b"\n"))


def file_identity(path: Path) -> str:
    """What tells a file from others: its size and a checksum of both ends."""
    from hashlib import sha256

    size = path.stat().st_size
    with path.open("rb") as file:
        checksum = sha256(file.read(ENDS))
        file.seek(max(0, size - ENDS))
        checksum.update(file.read(ENDS))
    return f"{size} bytes, {checksum.hexdigest()[:16]}"


def _whole_lines_of(path: Path) -> tuple[int, int]:
    """How many lines a file holds, and their length in bytes."""
    count = length = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                count, length = count + 1, length + len(line)
    return count, length
