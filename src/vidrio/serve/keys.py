"""API keys, in a text file that the server's operator writes, one per line:

    NAME KEY [requests per minute [characters per request]]      -1: no limit; lines that begin with # are comments

And how many requests each client has made in this minute.
"""

import hmac
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from vidrio.errors import ConfigError
from vidrio.serve.requests import busy

WINDOW = 60  # seconds


class Key(NamedTuple):
    """What a key allows; −1 is no limit, None the server's own."""

    name: str
    req_limit: int = -1  # requests a minute
    char_limit: int | None = None  # characters a request


class Keys:
    """The keys in a file. Every call reads it anew, so a change counts from the moment it is made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read()  # a mistake is told before anybody asks

    def find(self, secret: str) -> Key | None:
        found = None
        for known, key in self._read():
            if hmac.compare_digest(known.encode(), secret.encode("utf-8", "surrogatepass")):
                found = key
        return found

    def _read(self) -> list[tuple[str, Key]]:
        try:
            rows = [line.split() for line in self.path.read_text(encoding="utf-8").splitlines()]
            return [(row[1], Key(row[0], *map(int, row[2:]))) for row in rows if row and not row[0].startswith("#")]
        except (OSError, ValueError, IndexError, TypeError) as error:
            raise ConfigError(
                f"{self.path} is not a file of API keys",
                found=str(error),
                do="write one key per line: NAME KEY, and optionally requests per minute and characters per request",
            ) from None


class RequestLimits:
    """Counts the requests of each client in the current minute; all counts are forgotten when the next one begins."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minute, self._counts = 0, Counter[str]()

    def take(self, client: str, requests: int, limit: int) -> None:
        """Refuse what is more than the limit; −1 is none."""
        now = self._clock()
        if int(now // WINDOW) != self._minute:
            self._minute, self._counts = int(now // WINDOW), Counter()
        if limit != -1 and self._counts[client] + requests > limit:
            raise busy(429, f"Slowdown: too many requests ({limit} per 1 minute)", WINDOW - now % WINDOW)
        self._counts[client] += requests
