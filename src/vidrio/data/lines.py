"""Lines of text files, plain or compressed, one at a time.

A line ends with \\n or \\r\\n. A byte-order mark is removed. A line that is not text (not UTF-8, with NUL, longer than
a million bytes) comes with its fault, so that line numbers and aligned files stay in step.
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
_ROUND = 4096  # lines between two updates of the progress
_OPENERS = {".gz": gzip.open, ".xz": lzma.open}


class Line(NamedTuple):
    """A line and its number, from 1. With a fault, the text is only good for showing."""

    number: int
    text: str
    fault: str = ""


def plain_name(path: Path) -> Path:
    """The path without the suffix of a compression."""
    return path.with_suffix("") if path.suffix in (*_OPENERS, ".zst") else path


def read_lines(path: Path, work: Work | None = None) -> Iterator[Line]:
    """Every line of a file. Progress is counted in bytes of the file as it lies on disk."""
    number = counted = 0
    try:
        with path.open("rb") as raw, _decompressed(raw, path) as file:
            _refuse_utf16(path, file.peek(4)[:4])
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                yield _line(number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
                while len(line) > LONGEST_LINE and not line.endswith(b"\n"):  # the rest of a line that is too long
                    line = file.readline(LONGEST_LINE + 1) or b"\n"
                if work and number % _ROUND == 0:
                    counted, before = raw.tell(), counted
                    work.done += counted - before
            if work:
                work.done += raw.tell() - counted
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise DataError(f"{path} cannot be read", found=str(error.strerror), do="check its permissions") from None
        what, found = f"{path} is damaged, or not what its name says", f"after {number:,} lines: {error}"
        raise DataError(what, found=found, do="fetch or pack it again") from None


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
    if path.suffix == ".zst":
        raise DataError(f"{path} is compressed with zstd", do="unpack it first: zstd -d")
    opener = _OPENERS.get(path.suffix)
    return io.BufferedReader(opener(raw) if opener else raw, _BUFFER)  # type: ignore[operator]


def _refuse_utf16(path: Path, start: bytes) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        found = f"the byte-order mark of {'UTF-16' if start[2:] != bytes(2) else 'UTF-32'}"
        raise DataError(f"{path} is not UTF-8", found=found, do="convert it, with iconv or an editor")


def _line(number: int, line: bytes) -> Line:
    if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
        return Line(number, line[:1000].decode(errors="replace"), "line too long")
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Line(number, line.decode(errors="replace"), "invalid UTF-8")
    return Line(number, text, "NUL character" if "\0" in text else "")
