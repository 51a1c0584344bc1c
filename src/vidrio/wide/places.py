"""Files of any file system that pyarrow knows: local ones, s3://, gs://, abfs://, hdfs://, fsspec+…://. Found by a
pattern, written whole or not at all."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from vidrio.errors import DataError

WILD = frozenset("*?[")
RENAMES = ("local", "hdfs")  # elsewhere an object is there when it is closed, and moving it is copying it


def needs_ray() -> DataError:
    return DataError("--ray needs Ray and pyarrow", found="they are not installed", do="pip install 'vidrio[ray]'")


@dataclass(frozen=True)
class Place:
    """A file or folder on a file system, and how the user calls it."""

    name: str
    system: Any  # a pyarrow.fs.FileSystem
    path: str

    @staticmethod
    def of(name: str) -> "Place":
        try:
            from pyarrow import ArrowException
            from pyarrow.fs import FileSystem, LocalFileSystem
        except ModuleNotFoundError:
            raise needs_ray() from None
        if "://" not in name:
            return Place(name, LocalFileSystem(), str(Path(name).absolute()))
        try:
            return Place(name, *FileSystem.from_uri(name))
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

    def files(self, *, recursive: bool = False) -> "list[tuple[str, Place]]":
        """What lies in the folder, sorted, each with its path from here."""
        from pyarrow.fs import FileSelector

        infos = self.system.get_file_info(FileSelector(self.path, allow_not_found=True, recursive=recursive))
        names = (info.path[len(self.path.rstrip("/")) + 1 :] for info in infos if info.is_file)
        return [(name, self / name) for name in sorted(names)]

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


def matching(patterns: Sequence[str]) -> "dict[str, Place]":
    """The files that the patterns (or folders) name, by the path that each shall have in the folder of outputs."""
    found: dict[str, Place] = {}
    for pattern in patterns:
        parts = pattern.split("/")
        fixed = next((n for n, part in enumerate(parts) if WILD & set(part)), len(parts))
        if fixed < len(parts):
            folder = Place.of("/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else "."))
            below = folder.files(recursive=fixed < len(parts) - 1)
            some = [(name, place) for name, place in below if _matches(name, parts[fixed:])]
        elif Place.of(pattern).size() is None:
            some = Place.of(pattern).files()
        else:
            some = [(parts[-1], Place.of(pattern))]
        some = [(name, place) for name, place in some if not name.startswith((".", "_"))]
        if not some:
            raise DataError(f"{pattern} names no file", do="give a file, a folder, or a pattern like 'in/*.txt'")
        if twice := next((name for name, _ in some if name in found), None):
            raise DataError("two inputs would have one output", found=twice, do="give them in two commands")
        found |= some
    return found


def _matches(name: str, wild: Sequence[str]) -> bool:
    parts = name.split("/")
    return len(parts) == len(wild) and all(map(fnmatchcase, parts, wild))
