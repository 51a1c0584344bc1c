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
    lock = FileLock(home / LOCK, blocking=False)
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        found, do = f"{home / LOCK} is locked", "wait until it has ended, or give another folder"
        raise RunError(f"another command is at work in {home}", found=found, do=do) from None
    except OSError as error:
        raise RunError(f"{home} cannot be written", found=str(error.strerror), do="give another folder") from None
    try:
        yield
    finally:
        with suppress(OSError):
            (home / LOCK).unlink()
        lock.release()
        for path in made:
            with suppress(OSError):  # it is not empty
                path.rmdir()
