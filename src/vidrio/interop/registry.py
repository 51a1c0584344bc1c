"""Mozilla's registry of Firefox's models: which ones are offered, and their files, fetched with checks.

MIRROR/db/models.json   {"models": {"en-es": [{"architecture", "releaseStatus", "files": {"model": {"path", …}}, …}]}}
MIRROR/PATH             one file, compressed by gzip
"""

import hashlib
import http.client
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from vidrio.errors import ModelError, nearest
from vidrio.interop.foreign import CARD
from vidrio.model.files import LARGEST_JSON, write_atomically
from vidrio.model.json_record import fitted, shown
from vidrio.model.json_text import json_data

MOZILLA = "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data"
LICENCE = "MPL-2.0"
PAIR = r"[A-Za-z_]{2,12}-[A-Za-z_]{2,12}"
PATH = r"[\w+-][\w.+-]*(?:/[\w+-][\w.+-]*)*"
LARGEST_FILE = 1 << 30  # bytes, unpacked
AT_ONCE = 1 << 18  # bytes
PATIENCE = 30.0  # seconds without an answer
TRIES = 2
NOT_FETCHED = (URLError, http.client.HTTPException, TimeoutError, ConnectionError, zlib.error, EOFError)

Bar = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]


class Mirror(NamedTuple):
    """Where the registry is, and what shows how far a file is."""

    address: str = MOZILLA
    bar: Bar = lambda title, total: nullcontext(lambda done: None)


MOZILLAS = Mirror()


class Offer(NamedTuple):
    """A model of the registry."""

    name: str  # en-es
    architecture: str
    status: str
    files: dict[str, dict[str, Any]]  # by kind; each with its path
    scores: dict[str, float]  # on FLORES-200+

    @property
    def languages(self) -> tuple[str, str]:
        source, _, target = self.name.partition("-")
        return source, target

    @property
    def released(self) -> bool:
        return self.status.startswith("Release")


def offers(mirror: str) -> list[Offer]:
    """All models of the registry; of each pair the released and the best ones first."""
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
        if (
            not re.fullmatch(PATH, file["path"])
            or not isinstance(size, int | None)
            or not isinstance(checksum, str | None)
        ):
            raise ValueError(f"a file {shown(file)}")
    if not re.fullmatch(PAIR, name) or "model" not in files:
        raise ValueError(f"an entry {shown(name)} with {', '.join(files)}")
    metrics = fitted(dict[str, dict[str, Any]], entry.get("metrics", {})).get("flores200-plus", {})
    scores = {shown(metric)[1:-1]: value for metric, value in metrics.items() if type(value) in (int, float)}
    return Offer(name, str(entry.get("architecture")), str(entry.get("releaseStatus")), files, scores)


def choose(name: str, mirror: str) -> Offer:
    """The released model of a pair; of several the one with the best score."""
    all_offers = offers(mirror)
    of_pair = [offer for offer in all_offers if offer.name == name]
    if not of_pair or not of_pair[0].released:
        names = sorted({offer.name for offer in all_offers if offer.released})
        found = f"its status is {of_pair[0].status!r:.40}" if of_pair else f"{len(names)} released pairs"
        do = f"vidrio models --available lists them, such as {nearest(name, names)}" if names else ""
        raise ModelError(f"there is no released model {name}", found=found, do=do)
    return of_pair[0]


def fetch(offer: Offer, to: Path, mirror: Mirror) -> None:
    """The files of a model, and its card, in a folder. What an earlier call fetched is not fetched again."""
    to.mkdir(parents=True, exist_ok=True)
    for file in offer.files.values():
        path = to / Path(file["path"]).name.removesuffix(".gz")
        url = f"{checked(mirror.address)}/{quote(file['path'])}"
        for attempt in range(1, TRIES + 1):
            try:
                _fetch_file(url, path, file, mirror.bar)
                break
            except (*NOT_FETCHED, ModelError) as error:
                refused = isinstance(error, HTTPError) and error.code < 500
                if attempt == TRIES or refused:
                    raise (error if isinstance(error, ModelError) else _unreachable(url, error)) from None
    scores = "".join(f"| {metric} | {value:g} |\n" for metric, value in offer.scores.items())
    version = offer.files["model"]["path"].rpartition("/exported/")[0].rpartition("/")[2]
    card = (
        f"---\nlicense: {LICENCE}\n---\n\n# {offer.name}\n\nA translation model of Firefox, by Mozilla: "
        f"{offer.architecture}, {version or 'no version'}, {offer.status}. Its repository names the Mozilla Public "
        f"License 2.0.\n\n"
        f"From {checked(mirror.address)}/{offer.files['model']['path']}\n"
    )
    card += f"\n| FLORES-200+ | Mozilla's figure |\n|---|---|\n{scores}" if scores else ""
    write_atomically(to / CARD, card.encode())


def _fetch_file(url: str, path: Path, told: dict[str, Any], bar: Bar) -> None:
    """One file, unpacked and checked; continued where an earlier attempt ended."""
    if path.is_file():
        return
    part = path.with_name(f"{path.name}.gz.part")
    done = part.stat().st_size if part.is_file() else 0
    try:
        answer = _opened(url, {"Range": f"bytes={done}-"} if done else {})
    except HTTPError as error:
        if error.code != 416:  # all of it is there
            raise
    else:
        with answer, part.open("ab" if answer.status == 206 else "wb") as file:
            done = file.tell()
            total = done + int(answer.headers.get("Content-Length") or 0)
            with bar(path.name, total) as show:
                while data := answer.read(AT_ONCE):
                    file.write(data)
                    show(file.tell())
                    if file.tell() > LARGEST_FILE:
                        raise http.client.HTTPException(f"more than {LARGEST_FILE:,} bytes")
                if file.tell() < total:
                    raise http.client.IncompleteRead(b"", total - file.tell())
    try:
        with part.open("rb") as packed:
            _unpack(packed, path, told)
    except (zlib.error, EOFError, ModelError):
        part.unlink()
        raise
    part.unlink()


def _unpack(packed: BinaryIO, path: Path, told: dict[str, Any]) -> None:
    """Write what a gzip file holds, if it has the size and the checksum that the registry gives."""
    unpacker, checksum, size = zlib.decompressobj(wbits=31), hashlib.sha256(), 0
    most = min(LARGEST_FILE, told.get("uncompressedSize") or LARGEST_FILE)
    temporary = path.with_name(f"{path.name}.unpacked")
    with temporary.open("wb") as file:
        for data in _chunks(packed, unpacker):
            file.write(data)
            checksum.update(data)
            size += len(data)
            if size > most:
                break
    found, expected = checksum.hexdigest(), told.get("uncompressedHash")
    if size > most or (expected and found != expected):
        temporary.unlink()
        do = "try again; if it stays so, the file has been changed"
        raise ModelError(f"{path.name} is not the file of the registry", found=f"{size:,} bytes, sha256 {found}", do=do)
    temporary.replace(path)


def _chunks(packed: BinaryIO, unpacker: Any) -> Iterator[bytes]:
    while data := packed.read(AT_ONCE):
        while data and not unpacker.eof:
            yield unpacker.decompress(data, AT_ONCE)
            data = unpacker.unconsumed_tail
    if not unpacker.eof:
        raise EOFError("it ends too early")


def checked(mirror: str) -> str:
    """The address of a registry, without its last slash; no other scheme than HTTP."""
    if urlsplit(mirror).scheme not in ("http", "https"):
        raise ModelError(f"{mirror} is not the address of a registry", do="give one that begins with https://")
    return mirror.rstrip("/")


def _opened(url: str, headers: dict[str, str] | None = None) -> Any:
    try:
        return urlopen(Request(url, headers={"User-Agent": "vidrio", **(headers or {})}), timeout=PATIENCE)
    except HTTPError as error:
        error.close()
        raise


def _unreachable(url: str, error: BaseException) -> ModelError:
    reason = getattr(error, "reason", None) or error
    do = "check the network; --mirror or VIDRIO_MIRROR names another address"
    return ModelError(f"{url} cannot be fetched", found=f"{reason!s:.200}", do=do)
