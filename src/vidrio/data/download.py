"""Fetch a file over HTTP: what is there when it is done is whole."""

import json
import time
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from vidrio._version import __version__
from vidrio.data.progress import Progress, Work
from vidrio.errors import DataError

_BLOCK = 1 << 18  # bytes
_TRIES = 4
_PATIENCE = 30  # seconds without an answer


def fetch(url: str, path: Path, progress: Progress, *, mirror: str = "", wait: float = 1.0) -> None:
    """Fetch `url` into `path`. With a mirror, `https://host/file` is fetched from `MIRROR/host/file`."""
    part = path.with_name(f"{path.name}.part")
    try:
        for attempt in range(1, _TRIES + 1):
            try:
                _fetch(url, mirror, part, progress)
                part.replace(path)
                return
            except (URLError, HTTPException, TimeoutError, ConnectionError) as error:  # HTTPError is a URLError
                status = error.code if isinstance(error, HTTPError) else 500
                if attempt == _TRIES or status < 500:
                    raise _unreachable(f"{url} cannot be fetched", error) from None
            except OSError as error:
                raise DataError(f"{path} cannot be written", found=str(error.strerror), do="make room") from None
            time.sleep(wait * 2 ** (attempt - 1))
    finally:
        part.unlink(missing_ok=True)


def get_json(url: str, *, mirror: str = "") -> object:
    """A small JSON answer."""
    try:
        with _open(url, mirror) as answer:
            return json.loads(answer.read(1 << 20))
    except (OSError, HTTPException, ValueError) as error:
        raise _unreachable(f"{url} cannot be asked", error) from None


def _unreachable(what: str, error: Exception) -> DataError:
    if isinstance(error, HTTPError):
        found = f"{error.code} {error.reason}"
        return DataError(what, found=found, do="check the name, or try again later")
    reason = error.reason if isinstance(error, URLError) else error
    return DataError(what, found=str(reason), do="check the network, and try again")


def _open(url: str, mirror: str) -> HTTPResponse:
    if urlsplit(mirror or url).scheme not in ("http", "https"):
        what = f"{mirror} is no address of a mirror" if mirror else f"{url} is no web address"
        raise DataError(what, do="give one that begins with http:// or https://")
    if mirror:
        parts = urlsplit(url)
        url = f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}" + (f"?{parts.query}" if parts.query else "")
    request = Request(url, headers={"User-Agent": f"vidrio/{__version__}", "Accept-Encoding": "identity"})
    answer: HTTPResponse = urlopen(request, timeout=_PATIENCE)
    return answer


def _fetch(url: str, mirror: str, part: Path, progress: Progress) -> None:
    with _open(url, mirror) as answer, part.open("wb") as file:
        length = answer.headers.get("Content-Length")
        total = int(length) if length and length.isdecimal() else 0
        fetching = progress.work = Work(f"fetching {part.stem}", total)
        while block := answer.read(_BLOCK):
            file.write(block)
            fetching.done += len(block)
        progress.work = None
    if total and fetching.done != total:
        raise ConnectionError(f"{fetching.done:,} of {total:,} bytes came")
