"""The server's settings, each set by an option of `vidrio serve` or by an environment variable."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of the server. As in LibreTranslate, −1 means no limit."""

    models: tuple[str, ...] = ()  # names or folders; if empty, all available models
    hosts: tuple[str, ...] = ()  # additional host names of the server
    proxies: tuple[str, ...] = ()  # reverse proxies whose X-Forwarded-For is trusted
    page: bool = True
    shortlist: bool = False  # whether to consider only the tokens on a model's shortlist, if it has one
    cors: str = ""  # the origin whose scripts may call the server; "*" allows every origin, and "" none
    connections: int = 500  # maximum number of simultaneous connections
    # Requests
    char_limit: int = 200_000  # characters per request
    batch_limit: int = 1_000  # texts per request
    alternatives_limit: int = 16
    req_limit: int = -1  # requests per client per minute
    body_limit: int = 2 << 20  # bytes; larger bodies are refused before parsing
    body_seconds: float = 30  # seconds within which a body must arrive
    # Keys
    keys: Path | None = None  # the file of API keys
    key_required: bool = False
    queue: int = 400_000  # maximum number of characters in the queue
    threads: int = 0  # number of tasks to run in parallel; 0 means one per core
    # Files
    files: Path | None = None  # the folder for translated files; None disables the translation of files
    file_limit: int = 20 << 20  # bytes per uploaded file
    file_char_limit: int = 1_000_000  # characters of text per file
    file_minutes: float = 60  # minutes until a translated file is deleted
    # Logs
    log: bool = False  # whether to log one line per request, without the texts
    suggestions: Path | None = None  # the file to append suggested translations to


DEFAULTS = Settings()
