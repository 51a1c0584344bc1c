"""Where sentence pairs can be had, by name, with their licence: `tatoeba:eng-spa`, `opus:Tatoeba:en-es`.

Whatever the source, the end is the same: one TSV file (source, target, and what else the source gives), and beside it
FILE.origin.json, which says where it came from and goes into the model card of what is learned from it.
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from vidrio.data.download import fetch, get_json
from vidrio.data.progress import Progress
from vidrio.errors import DataError
from vidrio.model.files import sha256, write_atomically
from vidrio.model.json_text import json_text

# The addresses, all of them.
TATOEBA = "https://www.manythings.org/anki/{other}-eng.zip"  # Tatoeba's pairs with English, packed for flash cards
OPUS = "https://opus.nlpl.eu/opusapi/"

_LARGEST_LICENCE = 4000  # characters of a licence text that are kept


@dataclass(kw_only=True)
class Origin:
    """Where a file of pairs came from."""

    name: str = ""
    addresses: list[str]
    licence: str
    attribution: str
    homepage: str
    languages: list[str]
    pairs: int = 0
    fetched: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    checksum: str = ""  # sha256 of the TSV file
    fetched_checksums: list[str] = field(default_factory=list)  # sha256 of what was fetched


def get(name: str, to: Path | None, progress: Progress, *, mirror: str = "") -> tuple[Path, Origin]:
    """Fetch the pairs of this name into a TSV file."""
    source, _, rest = name.partition(":")
    if source not in _SOURCES or not rest:
        known = ", ".join(example for example, _ in _SOURCES.values())
        raise DataError(f"{name} names no data to fetch", do=f"use a name like these: {known}")
    path = to or Path(re.sub(r"[^\w.-]+", ".", name) + ".tsv")
    if not path.parent.is_dir():
        raise DataError(f"there is no folder {path.parent}", do="make it, or give another --to")
    origin = _SOURCES[source][1](rest, path, progress, mirror)
    origin.name, origin.checksum = name, sha256(path)
    text = json_text(asdict(origin), indent=2) + "\n"
    write_atomically(origin_path(path), text.encode())
    return path, origin


def origin_path(path: Path) -> Path:
    """Where the origin of a file of pairs is told."""
    return path.with_name(f"{path.name}.origin.json")


def origin_of(path: Path) -> Origin | None:
    """Where a file of pairs came from, if it was fetched by `get`."""
    try:
        return Origin(**json.loads(origin_path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _tatoeba(rest: str, path: Path, progress: Progress, mirror: str) -> Origin:
    """`eng-spa` or `spa-eng`: everyday sentences with their translations, each with its attribution."""
    languages = _languages(rest, r"[a-z]{3}")
    if "eng" not in languages:
        other = "-".join(code[:2] for code in languages)
        raise DataError(f"tatoeba:{rest} has no English side", do=f"use OPUS: vidrio data get opus:Tatoeba:{other}")
    [other] = [code for code in languages if code != "eng"]
    url = TATOEBA.format(other=other)
    with _fetched(url, path, progress, mirror) as (packed, checksum):
        english_first = languages[0] == "eng"
        pairs = _write(path, (_turned(row, english_first) for row in _lines(packed, f"{other}.txt", url)))
    return Origin(
        addresses=[url],
        licence="CC BY 2.0 FR",
        attribution=_TATOEBA_SAYS,
        homepage="https://tatoeba.org",
        languages=languages,
        pairs=pairs,
        fetched_checksums=[checksum],
    )


_TATOEBA_SAYS = "Sentences from the Tatoeba Project (tatoeba.org), by manythings.org/anki; authors in the third column"


def _turned(row: str, english_first: bool) -> str:
    first, _, rest = row.partition("\t")
    second, _, attribution = rest.partition("\t")
    return f"{first}\t{second}\t{attribution}" if english_first else f"{second}\t{first}\t{attribution}"


def _opus(rest: str, path: Path, progress: Progress, mirror: str) -> Origin:
    """`CORPUS:en-es` or `CORPUS:en-es:VERSION`: the aligned text files of an OPUS corpus."""
    corpus, _, pair = rest.partition(":")
    pair, _, version = pair.partition(":")
    languages = _languages(pair, r"[A-Za-z_]{2,8}")
    asked = {"corpus": corpus, "source": languages[0], "target": languages[1], "preprocessing": "moses"}
    answer = get_json(f"{OPUS}?{urlencode({**asked, 'version': version or 'latest'})}", mirror=mirror)
    corpora = answer.get("corpora") if isinstance(answer, dict) else None
    url = corpora[0].get("url") if isinstance(corpora, list) and corpora and isinstance(corpora[0], dict) else None
    if not isinstance(url, str):
        raise DataError(f"OPUS has no corpus {corpus} for {pair}", do="look for its name at https://opus.nlpl.eu")
    with _fetched(url, path, progress, mirror) as (packed, checksum):
        sides = [_lines(packed, f".{code}", url) for code in languages]
        pairs = _write(path, (f"{_untabbed(a)}\t{_untabbed(b)}" for a, b in zip(*sides, strict=True)))
        licence = "".join(_text(packed, name) for name in packed.namelist() if name.rpartition("/")[2] == "LICENSE")
    homepage = f"https://opus.nlpl.eu/{corpus}"
    says = f"{corpus} from OPUS (opus.nlpl.eu; J. Tiedemann, 2012, Parallel Data, Tools and Interfaces in OPUS)"
    licence = licence.strip()[:_LARGEST_LICENCE] or f"not told in the archive; see {homepage}"
    return Origin(
        addresses=[url],
        licence=licence,
        attribution=says,
        homepage=homepage,
        languages=languages,
        pairs=pairs,
        fetched_checksums=[checksum],
    )


def _untabbed(text: str) -> str:
    return text.replace("\t", " ")


_SOURCES: dict[str, tuple[str, Callable[[str, Path, Progress, str], Origin]]] = {
    "tatoeba": ("tatoeba:eng-spa", _tatoeba),
    "opus": ("opus:Tatoeba:en-es", _opus),
}


def _languages(text: str, code: str) -> list[str]:
    codes = text.split("-")
    if len(codes) != 2 or codes[0] == codes[1] or not all(re.fullmatch(code, one) for one in codes):
        raise DataError(
            f"{text!r} names no two languages", do="write them with a hyphen: eng-spa for tatoeba, en-es for opus"
        )
    return codes


@contextmanager
def _fetched(url: str, path: Path, progress: Progress, mirror: str) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """An archive, fetched, and its checksum. It is gone again once what it holds is written."""
    archive = path.with_name(f"{path.name}.zip")
    fetch(url, archive, progress, mirror=mirror)
    try:
        packed = zipfile.ZipFile(archive)
    except (zipfile.BadZipFile, OSError) as error:
        archive.unlink(missing_ok=True)
        raise DataError(f"{url} is no zip archive", found=str(error), do="try again later") from None
    with packed:
        yield packed, sha256(archive)
    archive.unlink()


def _lines(packed: zipfile.ZipFile, ending: str, url: str) -> Iterator[str]:
    """The lines of the one file in the archive whose name ends so."""
    names = [name for name in packed.namelist() if name.endswith(ending)]
    if len(names) != 1:
        found = ", ".join(packed.namelist()[:10])
        raise DataError(f"{url} does not hold one file that ends in {ending}", found=found, do="look at the archive")
    with packed.open(names[0]) as file:
        for line in file:
            yield line.decode(errors="replace").rstrip("\r\n")


def _text(packed: zipfile.ZipFile, name: str) -> str:
    with packed.open(name) as file:
        return file.read(_LARGEST_LICENCE * 4).decode(errors="replace")


def _write(path: Path, rows: Iterator[str]) -> int:
    """Write rows to a file, whole or not at all; how many there were."""
    part, count = path.with_name(f"{path.name}.part"), 0
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(row + "\n")
                count += 1
        part.replace(path)
    except ValueError:  # zip(strict=True)
        raise DataError(
            f"the two sides of {path.name} have different lengths", found=f"they part after {count:,} lines"
        ) from None
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} cannot be written", found=str(error), do="make room, or fetch it again") from None
    finally:
        part.unlink(missing_ok=True)
    return count
