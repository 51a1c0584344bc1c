"""Access files on any file system that pyarrow supports (local, s3://, gs://, abfs://, hdfs://, fsspec+…://)."""

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
    """A file or folder on a file system, with the name given by the user."""

    name: str
    system: Any  # a pyarrow.fs.FileSystem
    path: str

    @staticmethod
    def of(name: str) -> "Place":
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem

        try:
            return Place(name, *FileSystem.from_uri(name if "://" in name else str(Path(name).absolute())))
        except (ArrowException, OSError, ValueError, ImportError) as error:
            raise DataError(f"{name} cannot be opened", found=str(error), do="check the address") from None

    def __truediv__(self, name: str) -> "Place":
        return Place(f"{self.name.rstrip('/')}/{name}", self.system, f"{self.path.rstrip('/')}/{name}")

    @property
    def base(self) -> str:
        return PurePosixPath(self.path).name

    def size(self) -> int | None:
        """Return the size in bytes, or None if the file does not exist."""
        info = self.system.get_file_info(self.path)
        return info.size if info.is_file else None

    def is_same(self, other: "Place") -> bool:
        """Return whether both places are the same file, possibly via different paths."""
        paths = {os.path.realpath(p.path) if p.system.type_name == "local" else p.path for p in (self, other)}
        return len(paths) == 1 and self.system.type_name == other.system.type_name

    def reading(self) -> BufferedReader:
        """Open the file as a stream of bytes, without decompression."""
        return BufferedReader(self.system.open_input_stream(self.path, compression=None))

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Write to a temporary file, which is renamed when it is complete.

        Object stores need this, too: closing a stream completes the object even after an error.
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
    """Return the files that match any of these files, folders or patterns (such as in/*.txt)."""
    from pyarrow.fs import FileSelector

    found: dict[str, Place] = {}
    for pattern in patterns:
        folder, slash, last = pattern.rpartition("/")
        if not set("*?[") & set(last) or ("://" not in pattern and Path(pattern).is_file()):
            folder, slash, last = pattern, "", "*"
        place = Place.of(folder + slash or ".")
        some = [place]
        if place.size() is None:
            infos = place.system.get_file_info(FileSelector(place.path, allow_not_found=True))
            names = sorted(info.base_name for info in infos if info.is_file)
            some = [place / name for name in names if fnmatchcase(name, last) and not name.startswith((".", "_"))]
        if not some:
            raise DataError(f"{pattern} matches no file", do="use a file, a folder, or a pattern such as 'in/*.txt'")
        for one in some:
            if one.base in found:
                raise DataError("two inputs would have the same output", found=one.base, do="translate them separately")
            found[one.base] = one
    return list(found.values())
