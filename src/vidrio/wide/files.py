"""Files on any file system that pyarrow knows (local ones, s3://, gs://, abfs://, hdfs://, fsspec+…://)."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from uuid import uuid4

from vidrio.errors import DataError


class Place(NamedTuple):
    """A file or folder on a file system, with the name that the user gave."""

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

    @property
    def base(self) -> str:
        return PurePosixPath(self.path).name

    def size(self) -> int | None:
        """Size in bytes; None if there is no such file."""
        info = self.system.get_file_info(self.path)
        return info.size if info.is_file else None

    def is_same(self, other: "Place") -> bool:
        """Whether this is the other file, perhaps by another path."""
        paths = {os.path.realpath(p.path) if p.system.type_name == "local" else p.path for p in (self, other)}
        return len(paths) == 1 and self.system.type_name == other.system.type_name

    def reading(self) -> BufferedReader:
        """The file's bytes as a stream, not decompressed."""
        return BufferedReader(self.system.open_input_stream(self.path, compression=None))

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A stream into a file that gets its name when it is complete.

        In an object store, too: closing a stream there completes the object, even after an error.
        """
        folder = PurePosixPath(self.path).parent
        self.system.create_dir(str(folder), recursive=True)
        half = str(folder / f".{self.base}.{uuid4().hex}.part")
        try:
            with self.system.open_output_stream(half) as stream:
                yield stream
            self.system.move(half, self.path)
        except BaseException:
            with suppress(FileNotFoundError):
                self.system.delete_file(half)
            raise


def matching(patterns: Sequence[str]) -> list[Place]:
    """The files that match: files, folders, or patterns in a folder such as in/*.txt."""
    from pyarrow.fs import FileSelector

    found: dict[str, Place] = {}
    for pattern in patterns:
        folder, slash, last = pattern.rpartition("/")
        if not set("*?[") & set(last):
            folder, slash, last = pattern, "", "*"
        place = Place.of(folder + slash or ".")
        some = [place]
        if place.size() is None:
            infos = place.system.get_file_info(FileSelector(place.path, allow_not_found=True))
            names = sorted(info.base_name for info in infos if info.is_file)
            some = [place / name for name in names if fnmatchcase(name, last) and not name.startswith((".", "_"))]
        if not some:
            raise DataError(f"{pattern} matches no file", do="give a file, a folder, or a pattern such as 'in/*.txt'")
        for one in some:
            if one.base in found:
                raise DataError("two inputs would have the same output", found=one.base, do="use two commands")
            found[one.base] = one
    return list(found.values())
