"""Fetch a file over HTTP: what is there when it is done is whole."""

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
_WAITS = (1, 2, 4)  # seconds before each further try
_TIMEOUT = 30  # seconds without an answer
_NETWORK = (URLError, HTTPException, TimeoutError, ConnectionError)  # HTTPError is a URLError


def fetch(url: str, path: Path, progress: Progress, *, mirror: str = "") -> None:
    """Fetch `url` into `path`. With a mirror, `https://host/file` is fetched from `MIRROR/host/file`."""
    part = path.with_name(f"{path.name}.part")
    try:
        for wait in (*_WAITS, None):
            try:
                _fetch(url, mirror, part, progress)
                part.replace(path)
                return
            except _NETWORK as error:
                if wait is None or (isinstance(error, HTTPError) and error.code < 500):
                    raise _unreachable(url, error) from None
                time.sleep(wait)
    except OSError as error:
        raise DataError(f"{path} cannot be written", found=str(error.strerror), do="make room") from None
    finally:
        part.unlink(missing_ok=True)


def _unreachable(url: str, error: Exception) -> DataError:
    if isinstance(error, HTTPError):
        found, do = f"{error.code} {error.reason}", "check the name, or try again later"
    else:
        found, do = str(getattr(error, "reason", error)), "check the network, and try again"
    return DataError(f"{url} cannot be fetched", found=found, do=do)


def _open(url: str, mirror: str) -> HTTPResponse:
    for address, what in ((mirror or url, "a mirror"), (url, "a web page")):
        if urlsplit(address).scheme not in ("http", "https"):
            do = "give one that begins with http:// or https://"
            raise DataError(f"{address} is no address of {what}", do=do)
    if mirror:
        url = f"{mirror.rstrip('/')}/{url.partition('://')[2]}"
    request = Request(url, headers={"User-Agent": f"vidrio/{__version__}", "Accept-Encoding": "identity"})
    answer: HTTPResponse = urlopen(request, timeout=_TIMEOUT)
    return answer


def _fetch(url: str, mirror: str, part: Path, progress: Progress) -> None:
    with _open(url, mirror) as answer, part.open("wb") as file:
        length = answer.headers.get("Content-Length")
        work = progress.work = Work(f"fetching {part.stem}", int(length) if length and length.isdecimal() else 0)
        while block := answer.read(_BLOCK):
            file.write(block)
            work.done += len(block)
        progress.work = None
    if work.total and work.done != work.total:
        raise ConnectionError(f"{work.done:,} of {work.total:,} bytes came")
