"""API keys in a SQLite file. A key is shown once, when it is made; what is kept is its hash.

A key has 192 random bits, so one round of SHA-256 is enough: nothing is cheaper to guess than the key itself.
"""

import hmac
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from vidrio.errors import ConfigError

TABLE = """
CREATE TABLE IF NOT EXISTS api_keys (
    name TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, req_limit INTEGER NOT NULL, char_limit INTEGER, made REAL NOT NULL
)
"""
SHOWN = 8  # hexadecimal digits of a hash by which its row is looked up; the rest is compared in constant time


class Key(NamedTuple):
    """What a key allows; −1 is no limit, None the server's own."""

    name: str
    req_limit: int = -1  # requests a minute
    char_limit: int | None = None  # characters a request


class Keys:
    """The keys in a file. Every call opens it anew, so a change counts from the moment it is made."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, key: Key) -> str:
        if not key.name.strip() or not key.name.isprintable():
            raise ConfigError(f"{key.name!r} cannot be the name of a key", do="give signs that are seen, on one line")
        secret = secrets.token_urlsafe(24)
        row = (key.name, _hash(secret), key.req_limit, key.char_limit, time.time())
        with self._opened() as database:
            try:
                database.execute("INSERT INTO api_keys VALUES (?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                do = "take another name, or remove that key first"
                raise ConfigError(f"there is a key named {key.name!r} already", do=do) from None
        return secret

    def remove(self, name: str) -> None:
        with self._opened() as database:
            if not database.execute("DELETE FROM api_keys WHERE name = ?", (name,)).rowcount:
                names = [row[0] for row in database.execute("SELECT name FROM api_keys")]
                raise ConfigError(f"there is no key named {name!r}", found=", ".join(names) or "no keys")

    def listed(self) -> list[Key]:
        with self._opened() as database:
            return [
                Key(*row) for row in database.execute("SELECT name, req_limit, char_limit FROM api_keys ORDER BY made")
            ]

    def find(self, secret: str) -> Key | None:
        asked = _hash(secret)
        with self._opened() as database:
            rows = database.execute(
                "SELECT hash, name, req_limit, char_limit FROM api_keys WHERE substr(hash, 1, ?) = ?",
                (SHOWN, asked[:SHOWN]),
            ).fetchall()
        return next((Key(*row[1:]) for row in rows if hmac.compare_digest(row[0], asked)), None)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.touch(mode=0o600)
            with closing(sqlite3.connect(self.path, timeout=10)) as database, database:
                database.execute(TABLE)
                yield database
        except (sqlite3.Error, OSError) as error:
            do = "give another file by --keys"
            raise ConfigError(f"{self.path} cannot be used for API keys", found=str(error), do=do) from None


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
