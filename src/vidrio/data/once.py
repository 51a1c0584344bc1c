"""Work that is done once: a folder made for a key is used again while the key is the same."""

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from vidrio.errors import DataError
from vidrio.model.files import write_atomically
from vidrio.model.json_text import json_text


def checksum(key: Any) -> str:
    """A checksum of anything that can be written as JSON."""
    return sha256(json_text(key).encode()).hexdigest()


def is_made(folder: Path, key: str) -> bool:
    stamp = folder / "key"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == key


def once(folder: Path, key: str, make: Callable[[Path], object]) -> Path:
    """The folder as `make` fills it for this key: whole, whatever ends the work halfway."""
    if is_made(folder, key):
        return folder
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        make(part)
        write_atomically(part / "key", key.encode())
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be written", found=str(error.strerror), do="make room") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder
