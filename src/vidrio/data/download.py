"""Fetch a file over HTTP: it goes on where it stopped, and a file that is there is whole."""

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
    """Fetch `url` into `path`, through a file beside it that a later call goes on with.

    With a mirror, `https://host/file` is fetched from `MIRROR/host/file`.
    """
    part = path.with_name(f"{path.name}.part")
    for attempt in range(1, _TRIES + 1):
        try:
            _fetch(url, mirror, part, progress)
            part.replace(path)
            part.with_suffix(".tag").unlink(missing_ok=True)
            return
        except HTTPError as error:
            if error.code == 416:  # what is there is no part of what the server has now
                part.unlink(missing_ok=True)
            elif error.code < 500 or attempt == _TRIES:
                do = "check the name, or try again later"
                raise DataError(f"{url} cannot be fetched", found=f"{error.code} {error.reason}", do=do) from None
        except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
            if attempt == _TRIES:
                reason = error.reason if isinstance(error, URLError) else error
                do = "check the network; the same command goes on where this stopped"
                raise DataError(f"{url} cannot be fetched", found=str(reason), do=do) from None
        except OSError as error:
            raise DataError(f"{path} cannot be written", found=str(error.strerror), do="make room") from None
        time.sleep(wait * 2 ** (attempt - 1))


def get_json(url: str, *, mirror: str = "") -> object:
    """A small JSON answer."""
    try:
        with _open(url, mirror, {}) as answer:
            return json.loads(answer.read(1 << 20))
    except HTTPError as error:
        raise DataError(f"{url} cannot be asked", found=f"{error.code} {error.reason}", do="try again later") from None
    except (OSError, HTTPException, ValueError) as error:
        raise DataError(f"{url} cannot be asked", found=str(error), do="check the network") from None


def _open(url: str, mirror: str, headers: dict[str, str]) -> HTTPResponse:
    if urlsplit(mirror or url).scheme not in ("http", "https"):
        what = f"{mirror} is no address of a mirror" if mirror else f"{url} is no web address"
        raise DataError(what, do="give one that begins with http:// or https://")
    if mirror:
        parts = urlsplit(url)
        url = f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}" + (f"?{parts.query}" if parts.query else "")
    request = Request(url, headers={"User-Agent": f"vidrio/{__version__}", "Accept-Encoding": "identity", **headers})
    answer: HTTPResponse = urlopen(request, timeout=_PATIENCE)
    return answer


def _fetch(url: str, mirror: str, part: Path, progress: Progress) -> None:
    """One attempt. A part is gone on with only if the server says that it is still the same file."""
    tag = part.with_suffix(".tag")
    have = part.stat().st_size if part.exists() and tag.exists() else 0
    headers = {"Range": f"bytes={have}-", "If-Range": tag.read_text(encoding="ascii")} if have else {}
    with _open(url, mirror, headers) as answer:
        goes_on = (
            have > 0 and answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        )
        have = have if goes_on else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdecimal() else 0
        mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if mark and not mark.startswith("W/"):
            tag.write_text(mark, encoding="ascii")
        else:
            tag.unlink(missing_ok=True)
        fetching = progress.work = Work(f"fetching {part.stem}", total, have)
        with part.open("ab" if goes_on else "wb") as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                fetching.done += len(block)
        progress.work = None
        if total and part.stat().st_size != total:
            raise ConnectionError(f"{part.stat().st_size:,} of {total:,} bytes came")
