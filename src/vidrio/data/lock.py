"""Lock a folder or file, so that only one command uses it. The system releases the lock when the process ends."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from vidrio.errors import RunError

LOCK = "lock"  # name of the lock file in a run's folder


@contextmanager
def locked(lock: Path, work: str, do: str) -> Iterator[None]:
    """Hold a lock file. Raises RunError if another command holds it."""
    held = FileLock(lock, blocking=False)
    try:
        held.acquire()
    except Timeout:
        raise RunError(f"another command is {work}", found=f"{lock} is locked", do=do) from None
    except OSError as error:
        error.filename = str(lock.parent)  # report the folder, which is not writable
        raise
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        held.release()


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Lock a folder, creating it if necessary. Folders that were created are removed at the end if they are empty."""
    made = [path for path in (home, *home.parents) if not path.exists()]
    do = "wait until it has finished, or use another folder"
    try:
        with ExitStack() as stack:
            try:
                home.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(home / LOCK, f"working in {home}", do))
            except OSError as error:
                found = str(error.strerror)
                raise RunError(f"{home} cannot be written", found=found, do="use another folder") from None
            yield
    finally:
        for path in made:
            with suppress(OSError):  # not empty
                path.rmdir()
