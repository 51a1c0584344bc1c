"""Lines in, lines out: from files and pipes of any size, in constant memory, and never half a line."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from queue import Empty, Queue
from types import FrameType
from typing import BinaryIO

from vidrio.errors import DataError

READ_AT_ONCE = 64 * 1024  # bytes


def lines_of_file(file: BinaryIO, decode: Callable[[bytes], str]) -> Iterator[str]:
    """The lines of a file, read as they are needed."""
    return (decode(line.removesuffix(b"\n")) for line in file)


def chunks_of_pipe(descriptor: int, decode: Callable[[bytes], str], size: Callable[[], int]) -> Iterator[list[str]]:
    """The lines of a pipe or terminal as they come, about `size()` characters at a time if there are so many.

    An empty chunk comes before waiting: what is there gets its answer.
    """
    queue: Queue[list[bytes] | OSError | None] = Queue(maxsize=4)
    threading.Thread(target=_read, args=(descriptor, queue), daemon=True).start()
    lines: list[str] = []
    length = 0
    while True:
        try:
            read = queue.get_nowait()
        except Empty:
            if lines:
                yield lines
            yield []
            lines, length = [], 0
            read = queue.get()
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
    if lines:
        yield lines


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
    """Where lines go to: standard output, or a file of our own that grows by whole lines."""

    def __init__(self, part: Path | None) -> None:
        self.done = 0  # lines that were there before
        self._length: int | None = None  # of what is in our own file
        self._file: BinaryIO | FileIO = sys.stdout.buffer
        if part is not None:
            self.done, self._length = _whole_lines_of(part)
            self._file = part.open("r+b", buffering=0)
            self._file.truncate(self._length)  # half a line at its end goes away
            self._file.seek(self._length)

    def write(self, lines: Iterable[str]) -> None:
        """Hand these lines on at once: to our own file all of them or (on a disk that is full) none."""
        data = memoryview("".join(f"{line}\n" for line in lines).encode())
        with whole_lines():
            try:
                while data:
                    data = data[self._file.write(data) :]
                self._file.flush()
            except OSError:
                if self._length is not None:  # never standard output: what stands there before may be somebody else's
                    with suppress(OSError):
                        self._file.truncate(self._length)
                raise
        if self._length is not None:
            self._length = self._file.tell()

    def finish(self) -> None:
        """Now our own file is complete, and on the disk."""
        if self._length is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._length is not None:
            self._file.close()


def _whole_lines_of(part: Path) -> tuple[int, int]:
    """How many lines a file holds, and their length in bytes; the file is made if it is not there."""
    part.touch()
    count = length = 0
    with part.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                count, length = count + 1, length + len(line)
    return count, length


def skipped(chunks: Iterator[list[str]], count: int) -> Iterator[list[str]]:
    """The chunks without the first `count` lines."""
    left = count
    for chunk in chunks:
        if left >= len(chunk) > 0:
            left -= len(chunk)
        else:
            yield chunk[left:]
            left = 0 if chunk else left
    if left:
        raise DataError(
            "there is more output than input",
            found=f"{count} lines are translated already, the input has {count - left}",
            do="give the same input as before, or leave out --resume to start afresh",
        )
