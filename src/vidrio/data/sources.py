"""Where sentence pairs can be had, by name, with their licence: `tatoeba:eng-spa`, `opus:Tatoeba:en-es`.

Whatever the source, the result is one TSV file (source, target, and what else the source gives), and beside it
FILE.origin.json, which says where it came from and goes into the model card of what is learned from it.
"""

import json
import re
import zipfile
from collections.abc import Iterator
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

_LONGEST_LICENCE = 4000  # characters


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
        do = "use a name like these: tatoeba:eng-spa, opus:Tatoeba:en-es"
        raise DataError(f"{name} names no data to fetch", do=do)
    path = to or Path(re.sub(r"[^\w.-]+", ".", name) + ".tsv")
    if not path.parent.is_dir():
        raise DataError(f"there is no folder {path.parent}", do="make it, or give another --to")
    find, rows = _SOURCES[source]
    origin = find(rest, mirror)
    origin.name = name
    archive = path.with_name(f"{path.name}.zip")
    try:
        fetch(origin.addresses[0], archive, progress, mirror=mirror)
        with zipfile.ZipFile(archive) as packed:
            origin.pairs = _write(path, rows(packed, origin))
            origin.licence = _licence(packed) or origin.licence
        origin.fetched_checksums = [sha256(archive)]
    except (zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{origin.addresses[0]} is no zip archive", found=str(error), do="try again later") from None
    finally:
        archive.unlink(missing_ok=True)
    origin.checksum = sha256(path)
    write_atomically(origin_path(path), (json_text(asdict(origin), indent=2) + "\n").encode())
    return path, origin


def origin_path(path: Path) -> Path:
    """The file that says where a file of pairs came from."""
    return path.with_name(f"{path.name}.origin.json")


def origin_of(path: Path) -> Origin | None:
    """Where a file of pairs came from, if it was fetched by `get`."""
    try:
        return Origin(**json.loads(origin_path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


# --- Tatoeba: everyday sentences with their translations, each with its attribution -----------------------------------

_TATOEBA_CREDIT = (
    "Sentences from the Tatoeba Project (tatoeba.org), by manythings.org/anki; authors in the third column"
)


def _tatoeba(rest: str, mirror: str) -> Origin:
    """`eng-spa` or `spa-eng`."""
    languages = _languages(rest, r"[a-z]{3}")
    if "eng" not in languages:
        other = "-".join(code[:2] for code in languages)
        raise DataError(f"tatoeba:{rest} has no English side", do=f"use OPUS: vidrio data get opus:Tatoeba:{other}")
    return Origin(
        addresses=[TATOEBA.format(other=_other(languages))],
        licence="CC BY 2.0 FR",
        attribution=_TATOEBA_CREDIT,
        homepage="https://tatoeba.org",
        languages=languages,
    )


def _tatoeba_rows(packed: zipfile.ZipFile, origin: Origin) -> Iterator[str]:
    for line in _lines(packed, f"{_other(origin.languages)}.txt"):
        english, other, *attribution = line.split("\t")
        sides = [english, other] if origin.languages[0] == "eng" else [other, english]
        yield "\t".join([*sides, *attribution])


def _other(languages: list[str]) -> str:
    [other] = [code for code in languages if code != "eng"]
    return other


# --- OPUS: aligned text files of many corpora -------------------------------------------------------------------------

_OPUS_CREDIT = "from OPUS (opus.nlpl.eu; J. Tiedemann, 2012, Parallel Data, Tools and Interfaces in OPUS)"


def _opus(rest: str, mirror: str) -> Origin:
    """`CORPUS:en-es` or `CORPUS:en-es:VERSION`."""
    corpus, pair, version = (*rest.split(":", 2), "", "")[:3]
    languages = _languages(pair, r"[A-Za-z_]{2,8}")
    asked = {"corpus": corpus, "source": languages[0], "target": languages[1], "preprocessing": "moses"}
    answer = get_json(f"{OPUS}?{urlencode({**asked, 'version': version or 'latest'})}", mirror=mirror)
    try:
        url = answer["corpora"][0]["url"]  # type: ignore[index]
    except (LookupError, TypeError):
        raise DataError(f"OPUS has no corpus {corpus} for {pair}", do=f"look for its name at {OPUS[:20]}") from None
    homepage = f"https://opus.nlpl.eu/{corpus}"
    return Origin(
        addresses=[str(url)],
        licence=f"not in the archive; see {homepage}",
        attribution=f"{corpus} {_OPUS_CREDIT}",
        homepage=homepage,
        languages=languages,
    )


def _opus_rows(packed: zipfile.ZipFile, origin: Origin) -> Iterator[str]:
    sides = [_lines(packed, f".{code}") for code in origin.languages]
    for pair in zip(*sides, strict=True):
        yield "\t".join(text.replace("\t", " ") for text in pair)


_SOURCES = {"tatoeba": (_tatoeba, _tatoeba_rows), "opus": (_opus, _opus_rows)}


# --- names and archives -----------------------------------------------------------------------------------------------


def _languages(text: str, code: str) -> list[str]:
    codes = text.split("-")
    if len(codes) != 2 or codes[0] == codes[1] or not all(re.fullmatch(code, one) for one in codes):
        do = "write them with a hyphen: eng-spa for tatoeba, en-es for opus"
        raise DataError(f"{text!r} names no two languages", do=do)
    return codes


def _lines(packed: zipfile.ZipFile, ending: str) -> Iterator[str]:
    """The lines of the one file in the archive whose name ends so."""
    names = [name for name in packed.namelist() if name.endswith(ending)]
    if len(names) != 1:
        found = ", ".join(packed.namelist()[:10])
        raise DataError(f"the archive does not hold one file that ends in {ending}", found=found)
    with packed.open(names[0]) as file:
        for line in file:
            yield line.decode(errors="replace").rstrip("\r\n")


def _licence(packed: zipfile.ZipFile) -> str:
    names = [name for name in packed.namelist() if name.rpartition("/")[2] == "LICENSE"]
    return "".join(packed.read(name).decode(errors="replace") for name in names).strip()[:_LONGEST_LICENCE]


def _write(path: Path, rows: Iterator[str]) -> int:
    """Write rows to a file, whole or not at all; how many there were."""
    part, count = path.with_name(f"{path.name}.part"), 0
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(row + "\n")
                count += 1
        part.replace(path)
    except ValueError:  # zip(strict=True), and lines without a tab
        found = f"one ends after {count:,} lines"
        raise DataError(f"the two sides of {path.name} have different lengths", found=found) from None
    except OSError as error:
        raise DataError(f"{path} cannot be written", found=str(error), do="make room, or write elsewhere") from None
    finally:
        part.unlink(missing_ok=True)
    return count
