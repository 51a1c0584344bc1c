"""Access control: who may ask the server to compute, and how much; one guard for every such route.

API keys are in a text file that the operator writes, one key per line:

    NAME KEY [requests per minute [characters per request]]      -1: no limit; lines that begin with # are comments
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
WINDOW = 60  # seconds


class Key(NamedTuple):
    """What a key allows; −1 means no limit, None the server's own."""

    name: str
    req_limit: int = -1  # requests a minute
    char_limit: int | None = None  # characters a request


def read_keys(path: Path) -> list[tuple[str, Key]]:
    """The secrets in a file, each with its limits."""
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
    """Counts each client's requests in the current minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minute, self._counts = 0, Counter[str]()

    def take(self, client: str, requests: int, limit: int) -> None:
        """Refuse what exceeds the limit; −1 means no limit."""
        now = self._clock()
        if int(now // WINDOW) != self._minute:
            self._minute, self._counts = int(now // WINDOW), Counter()
        if limit != -1 and self._counts[client] + requests > limit:
            raise busy(429, f"Slowdown: too many requests ({limit} per 1 minute)", WINDOW - now % WINDOW)
        self._counts[client] += requests


class Access:
    """The settings' API keys, and each client's requests."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self._limits = settings, RequestLimits()
        if settings.keys:
            read_keys(settings.keys)  # reports a mistake before the first request

    def admit(self, request: Request, field: str) -> Key:
        """The key of a request, which is counted."""
        key = self.key_of(request, field)
        self.count(request, key, 1)
        return key

    def key_of(self, request: Request, field: str = "") -> Key:
        """The key in the field `api_key` or the header `Authorization: Bearer KEY`; without one, the server's own
        limits. A wrong key is refused, and a missing one if keys are required."""
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
            status = 401 if request.url.path.startswith("/api/") else 403  # LibreTranslate's clients know 403
            wanted = {"WWW-Authenticate": "Bearer"}
            raise Refusal(status, "Please contact the server operator to get an API key", wanted)
        return everybody

    def count(self, request: Request, key: Key, requests: int) -> None:
        """Refuse a key, or without one an address, that exceeds its rate."""
        client = f"key {key.name}" if key.name else request.client.host if request.client else ""
        self._limits.take(client, requests, key.req_limit)

    def characters(self, key: Key, otherwise: int | None = None) -> int:
        """The maximum number of characters of a request with this key; −1 means no limit."""
        limits = (key.char_limit, otherwise, self.settings.char_limit)
        return next(limit for limit in limits if limit is not None)
