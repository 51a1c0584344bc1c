"""Files, read with a limit and written whole or not at all."""

import json
import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from vidrio.errors import ModelError, about_file

LARGEST_JSON = 64 * 1024 * 1024  # bytes; a tokenizer beyond it is refused before it is parsed
HASHED_AT_ONCE = 1 << 24  # bytes; between blocks other threads may keep this one waiting
LARGEST_OBJECT = 8 * 1024 * 1024  # bytes of any other JSON that is read: parsed, it takes up to thirty times as much


def write_atomically(path: Path, data: bytes) -> None:
    """Write a whole file or nothing: into a temporary file beside it, then moved into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name[:100]}.{os.urandom(8).hex()}.part"  # `.` has no name to change
    try:
        with about_file(path), temporary.open("xb") as file:
            keep_access(path, temporary)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def keep_access(path: Path, successor: Path) -> None:
    """Who may read and write the file that takes the place of another: those who might before, as far as we may say
    so. Where there is none yet it is what the user's umask says."""
    with suppress(FileNotFoundError):
        before = path.stat()
        with suppress(OSError, AttributeError):  # only root gives files away; other systems have no owners
            os.chown(successor, before.st_uid, before.st_gid)
        with suppress(OSError):  # a file system without modes
            os.chmod(successor, stat.S_IMODE(before.st_mode))


def write_output(path: Path, data: bytes) -> None:
    """Write what a user wants at `path`: a file whole or not at all, where a link leads to; into a device or a pipe,
    which must stay what it is, as it comes."""
    if is_plain_file(path):
        write_atomically(real_place(path), data)
        return
    with about_file(path), path.open("wb", buffering=0) as file:
        write_all(file, data)


def write_all(file: BinaryIO | FileIO, data: bytes) -> None:
    """All of it: an unbuffered file may take a part of what it is given."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def is_plain_file(path: Path) -> bool:
    """Whether a file of ours may take its place: a regular file, where links lead to, or none yet."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def real_place(path: Path) -> Path:
    """Where a link leads to, so that it stays a link; the path itself where it is none."""
    return path.resolve() if path.is_symlink() else path


def read_json(path: Path, *, what: str) -> dict[str, Any]:
    """A JSON object from a file of reasonable size."""
    try:
        size = path.stat().st_size
        if size > LARGEST_OBJECT:
            raise ModelError(f"{path} is too large", found=f"{size:,} bytes", do=f"at most {LARGEST_OBJECT:,} are read")
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = f"there is no {path}"
        raise ModelError(f"{what} cannot be read", found=found, do="give the path of a model folder") from None
    except (OSError, ValueError, RecursionError) as error:  # ValueError: not UTF-8, no JSON, a number of 10,000 digits
        raise ModelError(f"{path} cannot be read", found=str(error), do="use an undamaged model folder") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path} cannot be read", found=f"a JSON {type(data).__name__}, not an object")
    return data


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal."""
    import hashlib

    checksum = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while block := file.read(HASHED_AT_ONCE):
            checksum.update(block)
    return checksum.hexdigest()
