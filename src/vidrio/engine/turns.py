"""A fair lock: threads acquire it in the order of their requests, so a tight loop cannot starve other threads."""

import threading
from collections import deque


class Turns:
    """A lock for `with turns:` blocks. Only one thread at a time runs such a block."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._line = deque[threading.Lock]()  # the thread whose lock is first has its turn

    def __enter__(self) -> None:
        mine = threading.Lock()
        with self._guard:
            self._line.append(mine)
            if self._line[0] is not mine:
                mine.acquire()
        try:
            mine.acquire()
        except BaseException:  # e.g. KeyboardInterrupt while waiting
            self._leave(mine)
            raise

    def __exit__(self, *error: object) -> None:
        self._leave(self._line[0])

    def _leave(self, mine: threading.Lock) -> None:
        with self._guard:
            had_turn = self._line[0] is mine
            self._line.remove(mine)
            if had_turn and self._line:
                self._line[0].release()
