"""Locks, so that only one command works in a folder or on a file. The system releases them however a command ends."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from vidrio.errors import RunError

LOCK = "lock"  # in a run's folder


@contextmanager
def locked(lock: Path, work: str, do: str) -> Iterator[None]:
    """Hold this lock file; an error if another command has it."""
    held = FileLock(lock, blocking=False)
    try:
        held.acquire()
    except Timeout:
        raise RunError(f"another command is {work}", found=f"{lock} is locked", do=do) from None
    except OSError as error:
        error.filename = str(lock.parent)  # the path that cannot be written
        raise
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        held.release()


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Lock this folder. Removes it afterwards if it stayed empty."""
    made = [path for path in (home, *home.parents) if not path.exists()]
    do = "wait until it has ended, or give another folder"
    try:
        with ExitStack() as stack:
            try:
                home.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(home / LOCK, f"working in {home}", do))
            except OSError as error:
                found = str(error.strerror)
                raise RunError(f"{home} cannot be written", found=found, do="give another folder") from None
            yield
    finally:
        for path in made:
            with suppress(OSError):  # it is not empty
                path.rmdir()
