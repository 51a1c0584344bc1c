"""Access control: who may use the server, and how much.

API keys are stored in a text file that the operator writes, with one key per line:

    NAME KEY [requests per minute [characters per request]]

−1 means no limit. Lines that begin with # are comments.
"""

import hmac
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fastapi import Request

from vidrio.errors import ConfigError
from vidrio.serve.requests import Refusal, busy
from vidrio.serve.settings import Settings

BEARER = "bearer "
WINDOW = 60  # the length of a rate-limit window, in seconds


class Key(NamedTuple):
    """The limits of a key. −1 means no limit, and None means that the server's default applies."""

    name: str
    req_limit: int = -1  # requests per minute
    char_limit: int | None = None  # characters per request


def read_keys(path: Path) -> list[tuple[str, Key]]:
    """Return the secrets in a file, each with the limits of its key."""
    try:
        rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        return [(row[1], Key(row[0], *map(int, row[2:]))) for row in rows if row and not row[0].startswith("#")]
    except (OSError, ValueError, IndexError, TypeError) as error:
        raise ConfigError(
            f"{path} is not a file of API keys",
            found=str(error),
            do="write one key per line: NAME KEY, and optionally requests per minute and characters per request",
        ) from None


class RequestLimits:
    """Counts the requests of each client in the current minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minute, self._counts = 0, Counter[str]()

    def take(self, client: str, requests: int, limit: int) -> None:
        """Count requests, and refuse them if they exceed the limit. −1 means no limit."""
        now = self._clock()
        if int(now // WINDOW) != self._minute:
            self._minute, self._counts = int(now // WINDOW), Counter()
        if limit != -1 and self._counts[client] + requests > limit:
            raise busy(429, f"Slowdown: too many requests ({limit} per 1 minute)", WINDOW - now % WINDOW)
        self._counts[client] += requests


class Access:
    """Checks the API keys from the settings, and limits each client's requests."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self._limits = settings, RequestLimits()
        if settings.keys:
            read_keys(settings.keys)  # raises an error at startup if the file is invalid

    def admit(self, request: Request, field: str) -> Key:
        """Return the key of a request, and count the request."""
        key = self.key_of(request, field)
        self.count(request, key, 1)
        return key

    def key_of(self, request: Request, field: str = "") -> Key:
        """Return the key in the field `api_key` or in the header `Authorization: Bearer KEY`. If there is no key,
        return one with the server's default limits. Refuse wrong keys, and missing keys if keys are required."""
        everybody = Key("", self.settings.req_limit)
        if self.settings.keys is None:
            return everybody
        header = request.headers.get("authorization", "")
        secret = field or (header[len(BEARER) :].strip() if header.lower().startswith(BEARER) else "")
        if secret:
            given = secret.encode("utf-8", "surrogatepass")
            # The file is read for each request, so that changes take effect at once.
            for known, key in read_keys(self.settings.keys):
                if hmac.compare_digest(known.encode(), given):
                    return key
            raise Refusal(403, "Invalid API key")
        if self.settings.key_required:
            status = 401 if request.url.path.startswith("/api/") else 403  # LibreTranslate's clients expect 403
            wanted = {"WWW-Authenticate": "Bearer"}
            raise Refusal(status, "Please contact the server operator to get an API key", wanted)
        return everybody

    def count(self, request: Request, key: Key, requests: int) -> None:
        """Count requests for a key, or for an address if there is no key, and refuse them above the rate limit."""
        client = f"key {key.name}" if key.name else request.client.host if request.client else ""
        self._limits.take(client, requests, key.req_limit)

    def characters(self, key: Key, otherwise: int | None = None) -> int:
        """Return the maximum number of characters in a request with this key. −1 means no limit."""
        limits = (key.char_limit, otherwise, self.settings.char_limit)
        return next(limit for limit in limits if limit is not None)
