"""What an operator may set; each is a flag of `vidrio serve` and an environment variable."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Settings:
    """−1 is no limit, as in LibreTranslate."""

    models: tuple[str, ...] = ()  # names or folders; empty: the packaged ones
    hosts: tuple[str, ...] = ()  # names besides this machine's own under which the server answers
    page: bool = True
    cors: str = "*"  # which sites' scripts may ask; empty: none
    # Requests
    char_limit: int = -1  # characters of a request
    batch_limit: int = -1  # texts of a request
    alternatives_limit: int = 16
    req_limit: int = -1  # requests a minute of one client
    body_limit: int = 2 << 20  # bytes, refused before anything is parsed
    body_seconds: float = 30  # in which a request has to arrive
    # Keys
    keys: Path | None = None  # the file of API keys
    key_required: bool = False
    queue: int = 400_000  # characters that may wait
    threads: int = 16  # requests that are translated at the same time
    # Files
    files: Path | None = None  # where translated files lie; None: no files
    file_limit: int = 20 << 20  # bytes of an upload
    file_minutes: float = 60  # after which a translated file is deleted
    # What is kept
    log: bool = False  # a line for each request, without its texts
    suggestions: Path | None = None  # the file to which suggested translations are added


DEFAULTS = Settings()
