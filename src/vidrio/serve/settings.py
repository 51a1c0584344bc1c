"""The operator's settings; each is an option of `vidrio serve` and an environment variable."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Settings:
    """−1 means no limit, as in LibreTranslate."""

    models: tuple[str, ...] = ()  # names or folders; empty: the packaged models
    hosts: tuple[str, ...] = ()  # additional host names of the server
    proxies: tuple[str, ...] = ()  # reverse proxies whose X-Forwarded-For is trusted
    page: bool = True
    shortlist: bool = False  # whether models that have a shortlist choose among its words only
    cors: str = ""  # the website whose scripts may call the server; "*": any; empty: none
    connections: int = 500  # open at the same time
    # Requests
    char_limit: int = 200_000  # characters per request
    batch_limit: int = 1_000  # texts per request
    alternatives_limit: int = 16
    req_limit: int = -1  # requests per minute and client
    body_limit: int = 2 << 20  # bytes; more is refused before parsing
    body_seconds: float = 30  # for a request to arrive
    # Keys
    keys: Path | None = None  # the file of API keys
    key_required: bool = False
    queue: int = 400_000  # characters that may wait
    threads: int = 0  # pieces of work at the same time; 0: one per core
    # Files
    files: Path | None = None  # where translated files are kept; None: no files
    file_limit: int = 20 << 20  # bytes of an upload
    file_char_limit: int = 1_000_000  # characters of its text
    file_minutes: float = 60  # after which a translated file is deleted
    # What is kept
    log: bool = False  # a line per request, without its texts
    suggestions: Path | None = None  # the file to which suggested translations are added


DEFAULTS = Settings()
