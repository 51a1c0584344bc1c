"""Lines of text files, plain or compressed, one at a time, whatever the file holds.

A line ends with \\n or \\r\\n. A byte-order mark is removed. A line that is no text (not UTF-8, with NUL, longer than a
million bytes) is yielded with its fault and not as text, so that line numbers and aligned files stay in step.
"""

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vidrio.data.progress import Work
from vidrio.errors import DataError

LONGEST_LINE = 1_000_000  # bytes
_BUFFER = 1 << 20  # bytes
_ROUND = 4096  # lines after which the progress is counted
_SUFFIXES = (".gz", ".xz", ".zst")


class Line(NamedTuple):
    """A line and its number, from 1. With a fault, the text is only something to show."""

    number: int
    text: str
    fault: str = ""


def plain_name(path: Path) -> Path:
    """The path without the suffix of a compression."""
    return path.with_suffix("") if path.suffix in _SUFFIXES else path


def read_lines(path: Path, work: Work | None = None) -> Iterator[Line]:
    """Every line of a file. The bytes that are read of it are done of the work."""
    number = counted = 0
    try:
        with path.open("rb") as raw, _decompressed(raw, path) as file:
            _refuse_utf16(path, file)
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                yield _line(number, line, whole=_finish(file, line))
                if work and number % _ROUND == 0:
                    counted, before = raw.tell(), counted
                    work.done += counted - before
            if work:
                work.done += raw.tell() - counted
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        raise _unreadable(path, number, error) from None


def problem(path: Path) -> str:
    """Why a file cannot be read at all; empty if it can."""
    if not path.exists():
        return f"there is no file {path}"
    if not path.is_file():
        return f"{path} is not a file"
    try:
        path.open("rb").close()
    except OSError as error:
        return f"{path} cannot be opened: {error.strerror}"
    return ""


def _decompressed(raw: io.BufferedReader, path: Path) -> io.BufferedReader:
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER)
    if path.suffix == ".xz":
        return io.BufferedReader(lzma.LZMAFile(raw), _BUFFER)
    if path.suffix == ".zst":
        raise DataError(f"{path} is compressed with zstd", do="unpack it first: zstd -d")
    return io.BufferedReader(raw, _BUFFER)


def _refuse_utf16(path: Path, file: io.BufferedReader) -> None:
    start = file.peek(4)[:4]
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        name = "UTF-16" if start[2:] != b"\0\0" else "UTF-32"
        raise DataError(
            f"{path} is not UTF-8", found=f"the byte-order mark of {name}", do="convert it, with iconv or an editor"
        )


def _finish(file: io.BufferedReader, line: bytes) -> bool:
    """Skip what is left of a line that was not read to its end; False if there was such a rest."""
    if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
        return True
    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass
    return False


def _line(number: int, line: bytes, *, whole: bool) -> Line:
    if not whole:
        return Line(number, line[:1000].decode(errors="replace"), "line too long")
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Line(number, line.decode(errors="replace"), "invalid UTF-8")
    return Line(number, text, "NUL character" if "\0" in text else "")


def _unreadable(path: Path, number: int, error: Exception) -> DataError:
    if isinstance(error, OSError) and error.errno:
        return DataError(f"{path} cannot be read", found=str(error.strerror), do="check the file and its rights")
    found = f"after {number:,} lines: {error}"
    return DataError(f"{path} is damaged, or not what its name says", found=found, do="fetch or pack it again")
