"""Read files up to a size limit, and write files atomically."""

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

# The names of temporary files created by write_atomically and by safetensors.
LEFTOVER = re.compile(r"\..*\.[0-9a-f]{16}\.part|\.tmp[A-Za-z0-9]{6}")
LARGEST_JSON = 8 * 1024 * 1024  # maximum size in bytes; parsed JSON takes up to thirty times as much memory


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically, by renaming a temporary file in the same folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name[:100]}.{os.urandom(8).hex()}.part"  # with_name would fail for `.`
    try:
        with temporary.open("xb") as file:
            keep_access(path, temporary)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None  # report the path instead of the temporary file
        with suppress(OSError):
            temporary.unlink()
        raise


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files left behind by a killed command. No other command may be using the folder."""
    for path in folder.rglob(".*"):
        if LEFTOVER.fullmatch(path.name):
            path.unlink(missing_ok=True)


def keep_access(path: Path, successor: Path) -> None:
    """Copy a file's mode to the file that will replace it."""
    with suppress(OSError):
        shutil.copymode(path, successor)


def write_output(path: Path, data: bytes) -> None:
    """Write output for the user: atomically to files, directly to devices and pipes. Symbolic links are followed."""
    if is_plain_file(path):
        write_atomically(real_place(path), data)
        return
    with about_file(path), path.open("wb", buffering=0) as file:
        write_all(file, data)


def write_all(file: BinaryIO | FileIO, data: bytes) -> None:
    """Write all data, in several calls if an unbuffered file accepts only part of it."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def is_plain_file(path: Path) -> bool:
    """Return whether the path is a regular file or does not exist yet."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def real_place(path: Path) -> Path:
    """Return the path, or the target if the path is a symbolic link. Writing to the target preserves the link."""
    return path.resolve() if path.is_symlink() else path


def read_text(path: Path, largest: int = LARGEST_JSON) -> str:
    """Read a UTF-8 text file. Raises ValueError if it is too large or not UTF-8."""
    size = path.stat().st_size
    if size > largest:
        raise ValueError(f"{size:,} bytes; the limit is {largest:,}")
    return path.read_text(encoding="utf-8")


def read_json(path: Path, *, what: str) -> dict[str, Any]:
    """Read a JSON object from a file, up to a size limit."""
    try:
        data = json_data(read_text(path))
    except FileNotFoundError:
        found = f"there is no {path}"
        raise ModelError(f"{what} cannot be read", found=found, do="use the path of a model folder") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read", found=str(error), do="use an undamaged model folder") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path} cannot be read", found=f"a JSON {type(data).__name__}, not an object")
    return data


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
