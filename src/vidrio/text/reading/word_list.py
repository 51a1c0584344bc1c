"""The words of a language, in a file that lies with a model: of translations that are nearly as likely, the one with
the fewest invented words is taken.

One word on a line, in small letters, sorted by its bytes: it is looked into where it lies, and nothing is loaded.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from vidrio.errors import ModelError, about_file
from vidrio.model.files import write_atomically
from vidrio.text.pattern import pattern

NAME = "words.txt"
LARGEST = 1 << 26  # bytes
REMEMBERED = 1 << 16  # words that were found

LETTERS = pattern(r"[^\W\d_]{2,}")  # one letter alone is a sign


def words_of(text: str) -> set[str]:
    return set(LETTERS.findall(text.casefold()))


def write(model: Path, words: Iterable[str]) -> None:
    write_sorted(model / NAME, words)


def write_sorted(path: Path, lines: Iterable[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in sorted(lines, key=str.encode)).encode())


class WordList:
    """The words that a file has."""

    def __init__(self, path: Path) -> None:
        self._lines = SortedLines(path)
        self._found: set[str] = set()

    @staticmethod
    def of(model: Path) -> "WordList | None":
        """A model's, of the language that it writes; if it has one."""
        path = model / NAME
        return WordList(path) if path.is_file() else None

    def words(self) -> set[str]:
        return set(self._lines)

    def invented(self, source: str, translation: str) -> set[str]:
        """The words of a translation that are in no list, and not in its source either."""
        new = words_of(translation) - self._found
        there = {word for word in new if word in self}
        if len(self._found) > REMEMBERED:
            self._found = set()
        self._found |= there
        return new - there - words_of(source) if new != there else set()

    def __contains__(self, word: str) -> bool:
        return next(self._lines.beginning(word), None) == word


class SortedLines:
    """What a file holds whose lines are sorted by their bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[str]:
        return (line for line in self._bytes.decode(errors="replace").split("\n") if line)

    def beginning(self, start: str) -> Iterator[str]:
        """The lines that begin with this."""
        wanted = start.encode()
        at = bisect_left(range(len(self._bytes)), wanted, key=self._line)
        while (line := self._line(at)).startswith(wanted) and at < len(self._bytes):
            yield line.decode(errors="replace")
            at = self._bytes.find(b"\n", at) + 1

    def _line(self, place: int) -> bytes:
        """The line that a place lies in."""
        start, end = self._bytes.rfind(b"\n", 0, place) + 1, self._bytes.find(b"\n", place)
        return self._bytes[start:end]

    @cached_property
    def _bytes(self) -> bytes:
        with about_file(self._path):
            if self._path.stat().st_size > LARGEST:
                raise ModelError(f"{self._path} is too large", found=f"more than {LARGEST:,} bytes", do="shorten it")
            data = self._path.read_bytes()
        return data if data.endswith(b"\n") else data + b"\n"
