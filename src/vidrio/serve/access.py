"""Control access to the server: API keys and rate limits.

The operator lists the API keys in a text file, one per line:

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
from vidrio.serve.requests import Refusal, busy, refusal_of
from vidrio.serve.settings import Settings

BEARER = "bearer "
WINDOW = 60  # the length of a rate-limit window, in seconds


class Key(NamedTuple):
    """The name and the limits of an API key. −1 means no limit, and None means the server's default limit."""

    name: str
    req_limit: int = -1  # requests per minute
    char_limit: int | None = None  # characters per request


def read_keys(path: Path) -> list[tuple[str, Key]]:
    """Read a file of API keys. Return each secret with its name and limits."""
    try:
        rows = [line.split() for line in path.read_text(encoding="utf-8-sig").splitlines()]
        return [(row[1], Key(row[0], *map(int, row[2:]))) for row in rows if row and not row[0].startswith("#")]
    except (OSError, ValueError, IndexError, TypeError) as error:
        raise ConfigError(
            f"{path} is not a file of API keys",
            found=str(error),
            do="write one key per line: NAME KEY, and optionally requests per minute and characters per request",
        ) from None


class RequestLimits:
    """Counts each client's requests in the current minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minute, self._counts = 0, Counter[str]()

    def take(self, client: str, requests: int, limit: int) -> None:
        """Count requests, or raise Refusal if they would exceed the limit. −1 means no limit."""
        now = self._clock()
        if int(now // WINDOW) != self._minute:
            self._minute, self._counts = int(now // WINDOW), Counter()
        if limit != -1 and self._counts[client] + requests > limit:
            raise busy(429, f"Slowdown: too many requests ({limit} per 1 minute)", WINDOW - now % WINDOW)
        self._counts[client] += requests


class Access:
    """Checks API keys and enforces the limits of each client."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self._limits = settings, RequestLimits()
        if settings.keys:
            read_keys(settings.keys)  # raises an error at startup if the file is invalid

    def admit(self, request: Request, field: str) -> Key:
        """Check the API key of a request, count the request, and return the key."""
        key = self.key_of(request, field)
        self.count(request, key, 1)
        return key

    def key_of(self, request: Request, field: str = "") -> Key:
        """Return the key from the `api_key` field or the `Authorization: Bearer KEY` header. If there is none, return
        a key with the server's default limits. Raise Refusal if the key is invalid, or if a required key is missing."""
        everybody = Key("", self.settings.req_limit)
        if self.settings.keys is None:
            return everybody
        header = request.headers.get("authorization", "")
        secret = field or (header[len(BEARER) :].strip() if header.lower().startswith(BEARER) else "")
        if secret:
            given = secret.encode("utf-8", "surrogatepass")
            try:  # read the file for each request, so that changes take effect immediately
                keys = read_keys(self.settings.keys)
            except ConfigError as error:
                raise refusal_of(error) from None  # the message contains a path and words of the file
            for known, key in keys:
                if hmac.compare_digest(known.encode(), given):
                    return key
            raise Refusal(403, "Invalid API key")
        if self.settings.key_required:
            status = 401 if request.url.path.startswith("/api/") else 403  # LibreTranslate's clients expect 403
            wanted = {"WWW-Authenticate": "Bearer"}
            raise Refusal(status, "Please contact the server operator to get an API key", wanted)
        return everybody

    def count(self, request: Request, key: Key, requests: int) -> None:
        """Count requests for a key, or for an address if there is no key. Raise Refusal above the rate limit."""
        client = f"key {key.name}" if key.name else request.client.host if request.client else ""
        self._limits.take(client, requests, key.req_limit)

    def characters(self, key: Key, otherwise: int | None = None) -> int:
        """Return the maximum number of characters per request for this key. −1 means no limit."""
        limits = (key.char_limit, otherwise, self.settings.char_limit)
        return next(limit for limit in limits if limit is not None)
