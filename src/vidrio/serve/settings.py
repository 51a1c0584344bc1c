"""What an operator may set; each is a flag of `vidrio serve` and an environment variable."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Settings:
    """−1 is no limit, as in LibreTranslate."""

    models: tuple[str, ...] = ()  # names or folders; empty: the packaged ones
    hosts: tuple[str, ...] = ()  # names besides this machine's own under which the server answers
    proxies: tuple[str, ...] = ()  # addresses of reverse proxies, whose X-Forwarded-For is believed
    page: bool = True
    shortlist: bool = False  # whether models that have a shortlist choose among its words only
    cors: str = ""  # the website whose scripts may call the server; "*": any; empty: none
    connections: int = 500  # open at the same time
    # Requests
    char_limit: int = 200_000  # characters of a request
    batch_limit: int = 1_000  # texts of a request
    alternatives_limit: int = 16
    req_limit: int = -1  # requests a minute of one client
    body_limit: int = 2 << 20  # bytes, refused before anything is parsed
    body_seconds: float = 30  # in which a request has to arrive
    # Keys
    keys: Path | None = None  # the file of API keys
    key_required: bool = False
    queue: int = 400_000  # characters that may wait
    threads: int = 0  # pieces of work at the same time; 0: as many as processor cores
    # Files
    files: Path | None = None  # where translated files lie; None: no files
    file_limit: int = 20 << 20  # bytes of an upload
    file_char_limit: int = 1_000_000  # characters of its text
    file_minutes: float = 60  # after which a translated file is deleted
    # What is kept
    log: bool = False  # a line for each request, without its texts
    suggestions: Path | None = None  # the file to which suggested translations are added


DEFAULTS = Settings()
