"""List the models in Mozilla's registry of Firefox models, and download and verify their files.

MIRROR/db/models.json   {"models": {"en-es": [{"architecture", "releaseStatus", "files": {"model": {"path", …}}, …}]}}
MIRROR/PATH             one file, compressed with gzip
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from vidrio.errors import ModelError, about_file, nearest
from vidrio.interop.foreign import CARD
from vidrio.model.files import LARGEST_JSON, sha256, write_all, write_atomically
from vidrio.model.json_record import fitted, shown
from vidrio.model.json_text import json_data

MOZILLA = "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data"
LICENCE = "MPL-2.0"
PAIR = r"[A-Za-z_]{2,12}-[A-Za-z_]{2,12}"
PATH = r"[\w+-][\w.+-]*(?:/[\w+-][\w.+-]*)*"
LARGEST_FILE = 1 << 30  # maximum size in bytes, decompressed
AT_ONCE = 1 << 18  # chunk size in bytes
PATIENCE = 30.0  # timeout in seconds
NOT_FETCHED = (URLError, HTTPException, TimeoutError, ConnectionError, gzip.BadGzipFile, zlib.error, EOFError)

Bar = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]


class Mirror(NamedTuple):
    """The address of the registry, and a function that reports download progress."""

    address: str = MOZILLA
    bar: Bar = lambda title, total: nullcontext(lambda done: None)


MOZILLAS = Mirror()


class Offer(NamedTuple):
    """A model listed in the registry."""

    name: str  # en-es
    architecture: str
    status: str
    files: dict[str, dict[str, Any]]  # the registry's entry for each kind of file, including the path
    scores: dict[str, float]  # scores on FLORES-200+

    @property
    def languages(self) -> tuple[str, str]:
        source, _, target = self.name.partition("-")
        return source, target

    @property
    def released(self) -> bool:
        return self.status.startswith("Release")


def offers(mirror: str) -> list[Offer]:
    """Return all models in the registry, sorted by language pair, then by status (released first), then by score."""
    url = f"{checked(mirror)}/db/models.json"
    try:
        with _opened(url) as answer:
            data = answer.read(LARGEST_JSON + 1)
        if len(data) > LARGEST_JSON:
            raise ValueError(f"more than {LARGEST_JSON:,} bytes")
        models = fitted(dict[str, list[dict[str, Any]]], json_data(data)["models"])
        found = [_offer(name, entry) for name, entries in models.items() for entry in entries]
    except NOT_FETCHED as error:
        raise _unreachable(url, error) from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        do = "check the address (--mirror)"
        raise ModelError(f"{url} is not a registry of models", found=f"{error!s:.200}", do=do) from None
    return sorted(found, key=lambda offer: (offer.name, not offer.released, -offer.scores.get("comet22", 0.0)))


def _offer(name: str, entry: dict[str, Any]) -> Offer:
    files = {kind: dict(file) for kind, file in fitted(dict[str, Any], entry["files"]).items()}
    for file in files.values():
        size, checksum = file.get("uncompressedSize"), file.get("uncompressedHash")
        typed = isinstance(size, int | None) and isinstance(checksum, str | None)
        if not typed or not re.fullmatch(PATH, file["path"]):
            raise ValueError(f"a file {shown(file)}")
    if not re.fullmatch(PAIR, name) or "model" not in files:
        raise ValueError(f"an entry {shown(name)} with {', '.join(files)}")
    metrics = fitted(dict[str, dict[str, Any]], entry.get("metrics", {})).get("flores200-plus", {})
    scores = {shown(metric)[1:-1]: value for metric, value in metrics.items() if type(value) in (int, float)}
    return Offer(name, str(entry.get("architecture")), str(entry.get("releaseStatus")), files, scores)


def choose(name: str, mirror: str) -> Offer:
    """Return the released model of a language pair. If there are several, return the model with the best score."""
    all_offers = offers(mirror)
    of_pair = [offer for offer in all_offers if offer.name == name]
    if not of_pair or not of_pair[0].released:
        names = sorted({offer.name for offer in all_offers if offer.released})
        found = f"its status is {of_pair[0].status!r:.40}" if of_pair else f"{len(names)} released pairs"
        do = f"vidrio models --available lists them, e.g. {nearest(name, names)}" if names else ""
        raise ModelError(f"there is no released model {name}", found=found, do=do)
    return of_pair[0]


def fetch(offer: Offer, to: Path, mirror: Mirror) -> None:
    """Download a model's files to a folder, and write the model's card. Existing files are not downloaded again."""
    to.mkdir(parents=True, exist_ok=True)
    for file in offer.files.values():
        path = to / Path(file["path"]).name.removesuffix(".gz")
        url = f"{checked(mirror.address)}/{quote(file['path'])}"
        try:
            try:
                _fetch_file(url, path, file, mirror.bar)
            except (*NOT_FETCHED, ModelError) as error:
                if isinstance(error, HTTPError) and error.code < 500:
                    raise
                _fetch_file(url, path, file, mirror.bar)  # retry once
        except NOT_FETCHED as error:
            raise _unreachable(url, error) from None
    write_atomically(to / CARD, _card(offer, f"{checked(mirror.address)}/{offer.files['model']['path']}").encode())


def _card(offer: Offer, origin: str) -> str:
    version = offer.files["model"]["path"].rpartition("/exported/")[0].rpartition("/")[2] or "no version"
    scores = "".join(f"| {metric} | {value:g} |\n" for metric, value in offer.scores.items())
    return f"""---
license: {LICENCE}
---

# {offer.name}

A translation model for Firefox, by Mozilla: {offer.architecture}, {version}, {offer.status}. Its repository is licensed
under the Mozilla Public License 2.0.

From {origin}
""" + (f"\n| FLORES-200+ | Mozilla's figure |\n|---|---|\n{scores}" if scores else "")


def _fetch_file(url: str, path: Path, entry: dict[str, Any], bar: Bar) -> None:
    """Download, decompress and verify one file, resuming an earlier attempt."""
    if path.is_file() and entry.get("uncompressedHash") in (None, "", sha256(path)):
        return  # from an earlier attempt, unless the registry has a new file since
    part = path.with_name(f"{path.name}.gz.part")
    done = part.stat().st_size if part.is_file() else 0
    try:
        with _opened(url, done) as answer, part.open("ab" if answer.status == 206 else "wb", 0) as file:
            total = file.tell() + int(answer.headers.get("Content-Length") or 0)
            with bar(path.name, total) as show:
                while data := answer.read(AT_ONCE):
                    with about_file(part):
                        write_all(file, data)
                    show(file.tell())
                    if file.tell() > LARGEST_FILE:
                        raise HTTPException(f"more than {LARGEST_FILE:,} bytes")
            if file.tell() < total:
                raise IncompleteRead(b"", total - file.tell())
    except HTTPError as error:
        if error.code != 416:  # 416 means that the download is already complete
            raise
    try:
        _unpack(part, path, entry)
    finally:
        part.unlink()


def _unpack(packed: Path, path: Path, entry: dict[str, Any]) -> None:
    """Decompress a gzip file, and check its size and checksum against the registry."""
    checksum, size = hashlib.sha256(), 0
    most = min(LARGEST_FILE, entry.get("uncompressedSize") or LARGEST_FILE)
    temporary = path.with_name(f"{path.name}.unpacked")
    with about_file(temporary), gzip.open(packed) as unpacked, temporary.open("wb") as file:
        while size <= most and (data := unpacked.read(AT_ONCE)):
            size += file.write(data)
            checksum.update(data)
    found = checksum.hexdigest()
    if not 0 < size <= most or found != (entry.get("uncompressedHash") or found):
        temporary.unlink()
        do = "try again; if the error persists, the file has been modified"
        raise ModelError(f"{path.name} is not the file of the registry", found=f"{size:,} bytes, sha256 {found}", do=do)
    temporary.replace(path)


def checked(mirror: str) -> str:
    """Return the registry's address without a trailing slash. Only HTTP and HTTPS are allowed."""
    try:
        scheme = urlsplit(mirror).scheme
    except ValueError:  # http://[
        scheme = ""
    if scheme not in ("http", "https"):
        raise ModelError(f"{mirror} is not the address of a registry", do="use an address that begins with https://")
    return mirror.rstrip("/")


def _opened(url: str, begin: int = 0) -> Any:
    headers = {"User-Agent": "vidrio", **({"Range": f"bytes={begin}-"} if begin else {})}
    try:
        return urlopen(Request(url, headers=headers), timeout=PATIENCE)
    except HTTPError as error:
        error.close()
        raise


def _unreachable(url: str, error: BaseException) -> ModelError:
    reason = getattr(error, "reason", None) or error
    do = "check the network, or set another address with --mirror or VIDRIO_MIRROR"
    return ModelError(f"{url} cannot be fetched", found=f"{reason!s:.200}", do=do)
