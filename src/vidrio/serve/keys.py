"""API keys in a text file, a line for each: its hash, requests a minute, characters a request, name. And how many
requests each client has made in this minute.

A key is shown once, when it is made; the file holds its hash. A key has 192 random bits, so one round of SHA-256 is
enough: nothing is cheaper to guess than the key itself.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from vidrio.errors import ConfigError
from vidrio.model.files import write_atomically
from vidrio.serve.refusal import busy

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

    def add(self, key: Key) -> str:
        if not key.name.strip() or not key.name.isprintable():
            raise ConfigError(f"{key.name!r} cannot be the name of a key", do="give visible characters, on one line")
        keys = self._read()
        if key.name in {other.name for other in keys.values()}:
            do = "take another name, or remove that key first"
            raise ConfigError(f"there is a key named {key.name!r} already", do=do)
        secret = secrets.token_urlsafe(24)
        self._write({**keys, _hash(secret): key})
        return secret

    def remove(self, name: str) -> None:
        keys = self._read()
        left = {hashed: key for hashed, key in keys.items() if key.name != name}
        if len(left) == len(keys):
            names = ", ".join(key.name for key in keys.values())
            raise ConfigError(f"there is no key named {name!r}", found=names or "no keys")
        self._write(left)

    def listed(self) -> list[Key]:
        return list(self._read().values())

    def find(self, secret: str) -> Key | None:
        return self._read().get(_hash(secret))

    def _read(self) -> dict[str, Key]:
        if not self.path.exists():
            return {}
        try:
            rows = [line.split("\t") for line in self.path.read_text(encoding="utf-8").splitlines()]
            return {hashed: Key(name, int(req), int(char) if char else None) for hashed, req, char, name in rows}
        except (OSError, ValueError) as error:
            do = "give another file by --keys"
            raise ConfigError(f"{self.path} cannot be used for API keys", found=str(error), do=do) from None

    def _write(self, keys: dict[str, Key]) -> None:
        rows = [
            f"{hashed}\t{key.req_limit}\t{'' if key.char_limit is None else key.char_limit}\t{key.name}\n"
            for hashed, key in keys.items()
        ]
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
        write_atomically(self.path, "".join(rows).encode())


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


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
