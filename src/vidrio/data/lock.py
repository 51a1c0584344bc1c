"""One command at a time works in a run's folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from vidrio.errors import RunError

LOCK = "lock"  # held while a command works in the folder; released by the system, however the command ends


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Work in this folder while no other command does. A folder that stays empty is gone again."""
    made = [path for path in (home, *home.parents) if not path.exists()]
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{home} cannot be made", found=str(error.strerror), do="give another folder") from None
    try:
        with locked(home / LOCK, f"in {home}"):
            yield
    finally:
        for path in made:
            with suppress(OSError):  # it is not empty
                path.rmdir()


@contextmanager
def locked(path: Path, where: str) -> Iterator[None]:
    """While this file is there and locked, no other command gets it."""
    lock = FileLock(path, blocking=False)
    try:
        path.parent.stat()  # a folder that is not there is not made
        lock.acquire()
    except Timeout:
        raise RunError(
            f"another command is at work {where}",
            found=f"{path} is locked",
            do="wait until it has ended, or write elsewhere",
        ) from None
    except OSError as error:
        raise RunError(f"{path} cannot be written", found=str(error.strerror), do="write elsewhere") from None
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        lock.release()
