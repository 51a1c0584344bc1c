"""Files of any file system that pyarrow knows (local ones, s3://, gs://, abfs://, hdfs://, fsspec+…://), found by a
pattern, written whole or not at all; and the parts of a file of lines, always the same ones."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from uuid import uuid4

from vidrio.errors import DataError

RENAMES = ("local", "hdfs")  # elsewhere an object is there when it is closed, and moving it is copying it
PART = 1 << 18  # bytes, hardly more: some seconds of a worker's time
BLOCK = 1 << 16  # bytes


@dataclass(frozen=True)
class Place:
    """A file or folder on a file system, and what the user calls it."""

    name: str
    system: Any  # a pyarrow.fs.FileSystem
    path: str

    @staticmethod
    def of(name: str) -> "Place":
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem

        try:
            return Place(name, *FileSystem.from_uri(name if "://" in name else Path(name).absolute()))
        except (ArrowException, OSError, ValueError, ImportError) as error:
            raise DataError(f"{name} cannot be opened", found=str(error), do="check the address") from None

    def __truediv__(self, name: str) -> "Place":
        return Place(f"{self.name.rstrip('/')}/{name}", self.system, f"{self.path.rstrip('/')}/{name}")

    def size(self) -> int | None:
        """In bytes; None where there is no such file."""
        info = self.system.get_file_info(self.path)
        return info.size if info.is_file else None

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        with self.system.open_input_file(self.path) as file:
            file.seek(start)
            return file.read(length)

    def files(self) -> "list[Place]":
        """The files in this folder, sorted by name; none where there is no such folder."""
        from pyarrow.fs import FileSelector

        infos = self.system.get_file_info(FileSelector(self.path, allow_not_found=True))
        return [self / name for name in sorted(info.base_name for info in infos if info.is_file)]

    def remove(self) -> None:
        with suppress(FileNotFoundError):  # another may have been here first
            if self.size() is not None:
                self.system.delete_file(self.path)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A stream into a file that is there when all is written."""
        self.system.create_dir(str(PurePosixPath(self.path).parent), recursive=True)
        renames = self.system.type_name in RENAMES
        half = f"{self.path}.{uuid4().hex}.part" if renames else self.path
        try:
            with self.system.open_output_stream(half) as stream:
                yield stream
            if renames:
                self.system.move(half, self.path)
        except BaseException:
            Place(half, self.system, half).remove()
            raise

    @property
    def base(self) -> str:
        return PurePosixPath(self.path).name


def matching(patterns: Sequence[str]) -> list[Place]:
    """The files that these name: files, folders, or patterns in a folder such as in/*.txt."""
    found: dict[str, Place] = {}
    for pattern in patterns:
        folder, slash, last = pattern.rpartition("/")
        if set("*?[") & set(last):
            some = [place for place in Place.of(folder + slash or ".").files() if fnmatchcase(place.base, last)]
        elif Place.of(pattern).size() is None:
            some = Place.of(pattern).files()
        else:
            some = [Place.of(pattern)]
        some = [place for place in some if not place.base.startswith((".", "_"))]
        if not some:
            raise DataError(f"{pattern} names no file", do="give a file, a folder, or a pattern like 'in/*.txt'")
        for place in some:
            if place.base in found:
                raise DataError("two inputs would have one output", found=place.base, do="give them in two commands")
            found[place.base] = place
    return list(found.values())


class Part(NamedTuple):
    """Some lines of a file, always the same ones."""

    number: int
    start: int  # the byte where it begins
    bytes: int
    first: int  # the number of its first line, from 1
    lines: int
    file: int  # its number


@dataclass(frozen=True)
class File:
    """A file, where its answers go, and where the parts of those lie until then."""

    source: Place
    target: Place
    folder: Place

    def place(self, part: Part) -> Place:
        return self.folder / f"{part.number:06}"

    def parts_there(self, parts: Sequence[Part]) -> set[Part]:
        there = {place.base for place in self.folder.files()}
        return {part for part in parts if self.place(part).base in there}

    def forget_parts(self) -> None:
        for place in self.folder.files():
            place.remove()


def cut_lines(file: File, number: int) -> list[Part]:
    """Parts of about the same size, cut at the ends of lines; `number` is the file's."""
    parts: list[Part] = []
    size = file.source.size() or 0
    wanted = size / max(1, -(-size // PART))
    at = start = lines = 0
    first, last = 1, b"\n"
    with file.source.system.open_input_stream(file.source.path, compression=None) as stream:
        while block := stream.read(BLOCK):
            lines += block.count(b"\n")
            at += len(block)
            last = block[-1:]
            end = at - len(block) + block.rfind(b"\n") + 1
            if wanted <= at - start and at < size and b"\n" in block:
                parts.append(Part(len(parts), start, end - start, first, lines, number))
                start, first, lines = end, first + lines, 0
    if at > start:
        parts.append(Part(len(parts), start, at - start, first, lines + (last != b"\n"), number))
    return parts


def lines_of(file: File, part: Part) -> Sequence[bytes]:
    return file.source.read(part.start, part.bytes).removesuffix(b"\n").split(b"\n")


def join_lines(file: File, parts: Sequence[Part]) -> None:
    """Put a file together."""
    with file.target.writing() as stream:
        for part in parts:
            stream.write(file.place(part).read())
