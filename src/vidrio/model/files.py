"""Files: read with a size limit, written completely or not at all."""

import os
import re
import shutil
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from vidrio.errors import ModelError, about_file
from vidrio.model.json_text import json_data

# Names of temporary files of write_atomically and safetensors.
LEFTOVER = re.compile(r"\..*\.[0-9a-f]{16}\.part|\.tmp[A-Za-z0-9]{6}")
LARGEST_JSON = 8 * 1024 * 1024  # limit in bytes; parsed, they take up to thirty times as much


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file completely or not at all: to a temporary file beside it, which is then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name[:100]}.{os.urandom(8).hex()}.part"  # `.` has no name to replace
    try:
        with temporary.open("xb") as file:
            keep_access(path, temporary)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None  # not the temporary file's
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_leftovers(folder: Path) -> None:
    """Remove a killed command's temporary files from this folder, which no other command may use."""
    for path in folder.rglob(".*"):
        if LEFTOVER.fullmatch(path.name):
            path.unlink(missing_ok=True)


def keep_access(path: Path, successor: Path) -> None:
    """Give a file's successor its mode."""
    with suppress(OSError):
        shutil.copymode(path, successor)


def write_output(path: Path, data: bytes) -> None:
    """Write a user's output: into a device or a pipe, or else a whole file, behind a symbolic link."""
    if is_plain_file(path):
        write_atomically(real_place(path), data)
        return
    with about_file(path), path.open("wb", buffering=0) as file:
        write_all(file, data)


def write_all(file: BinaryIO | FileIO, data: bytes) -> None:
    """Write all of it: an unbuffered file may take a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def is_plain_file(path: Path) -> bool:
    """Whether there is a regular file, or none yet."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def real_place(path: Path) -> Path:
    """The target of a symbolic link, so that it stays a link; else the path itself."""
    return path.resolve() if path.is_symlink() else path


def read_text(path: Path, largest: int = LARGEST_JSON) -> str:
    """Read a text of limited size; ValueError if it is larger, or not UTF-8."""
    size = path.stat().st_size
    if size > largest:
        raise ValueError(f"{size:,} bytes, and at most {largest:,} are read")
    return path.read_text(encoding="utf-8")


def read_json(path: Path, *, what: str) -> dict[str, Any]:
    """Read a JSON object from a file of limited size."""
    try:
        data = json_data(read_text(path))
    except FileNotFoundError:
        found = f"there is no {path}"
        raise ModelError(f"{what} cannot be read", found=found, do="give the path of a model folder") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read", found=str(error), do="use an undamaged model folder") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path} cannot be read", found=f"a JSON {type(data).__name__}, not an object")
    return data


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
