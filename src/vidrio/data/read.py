"""Read sentence pairs from tables (TSV, CSV) or aligned text files, and single texts from plain text files.

`corpora` detects the format of files, and `read` streams the pairs of a corpus. Rows that lack a column are counted
and skipped. Bytes that are not valid UTF-8 become U+FFFD, which clean.py rejects. Unusable files raise DataError.
"""

import csv
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from vidrio.data.clean import Tally
from vidrio.data.progress import Work
from vidrio.errors import DataError

_ROUND = 4096  # lines between progress updates
_SAMPLE = 300  # number of rows from which the columns are detected
_LABELS = 4  # a column contains labels if it has this many times fewer distinct values than the most varied column
_SHOWN = 60  # maximum number of characters of a text to display
LARGEST_WEIGHT = 1000  # the maximum number of times that a pair is used per epoch
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
_WEIGHT = re.compile(r"(.+)@(\d+(?:\.\d+)?)")
# The column names that identify a header.
_KNOWN = (
    *(("source", "target"), ("src", "tgt"), ("src", "trg"), ("source_text", "target_text"), ("input", "output")),
    *(("english", "spanish"), ("text", "label"), ("text", "class")),
)

Names = tuple[str, str]
Rows = Iterator[tuple[int, list[str]]]  # pairs of line number and cells


class Layout(NamedTuple):
    """The columns that contain the source and the target."""

    source: int  # zero-based index
    target: int
    header: bool  # whether the first line is a header
    words: str  # description for the user


class Pair(NamedTuple):
    """A sentence, its translation and their line number."""

    source: str
    target: str
    line: int


@dataclass(frozen=True)
class Corpus:
    """A corpus in one file, or in two aligned files."""

    form: str  # text (one or two aligned files), tsv or csv
    paths: tuple[Path, ...]
    layout: Layout
    weight: float = 1.0  # number of times that each pair is used per epoch

    @property
    def name(self) -> str:
        return " + ".join(map(str, self.paths))

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.paths)


def corpora(names: Sequence[str], *, columns: Names | None = None, languages: Names = ("", "")) -> list[Corpus]:
    """Detect the format of files, and return their corpora. `file@2` has weight 2. A plain text file must be followed
    by the file that contains its translation, line by line."""
    recognised: list[Corpus] = []
    waiting = list(names)
    while waiting:
        path, weight = _weighted(waiting.pop(0))
        paths: tuple[Path, ...] = (path,)
        form = _form(path)
        if form == "text":
            other, factor = _weighted(waiting.pop(0)) if waiting else (path, 1.0)
            if other == path or _form(other) != "text":
                raise DataError(
                    f"{path} is not a table, because some lines contain no tab; no file of translations follows it",
                    do="use a table with two columns (.tsv or .csv, optionally .gz or .xz), or two aligned files",
                )
            paths, weight = (path, other), weight * factor
        layout = Layout(0, 1, False, "line by line") if form == "text" else _layout(path, form, columns, languages)
        recognised.append(Corpus(form, paths, layout, weight))
    return recognised


def texts(names: Sequence[str]) -> list[Corpus]:
    """Return corpora for plain text files with one text per line."""
    layout = Layout(0, 0, False, "one text per line")
    return [Corpus("text", (path,), layout, weight) for path, weight in map(_weighted, names)]


def read(corpus: Corpus, tally: Tally, work: Work | None = None) -> Iterator[Pair]:
    """Yield all pairs in a corpus, in order. Rows that lack a column are only counted in the tally."""
    source, target, header, _ = corpus.layout
    for number, row in islice(_rows(corpus.form, corpus.paths, work), int(header), None):
        tally.read += 1
        if max(source, target) < len(row):
            yield Pair(row[source], row[target], number)
        else:
            tally.skip("column missing", f"{corpus.name}:{number}", "\t".join(row))


def described(corpus: Corpus, pairs: int) -> list[str]:
    """Describe the detected columns and show the first pairs, so that users notice a wrong guess."""
    sides = 1 if corpus.layout.source == corpus.layout.target else 2
    texts = (
        " → ".join(map(shown, (pair.source, pair.target)[:sides])) for pair in islice(read(corpus, Tally()), pairs)
    )
    return [f"{corpus.name}: {corpus.layout.words}", *(f"  {text}" for text in texts)]


def shown(text: str, most: int = _SHOWN) -> str:
    """Return the start of a text on one line, without control characters."""
    visible = "".join(c if c.isprintable() else "·" for c in text[: most + 1])
    return visible if len(visible) <= most else f"{visible[:most]}…"


def _weighted(name: str) -> tuple[Path, float]:
    """Parse a file name with an optional weight: `file.tsv@2` has weight 2, and `file.tsv` has weight 1."""
    match = _WEIGHT.fullmatch(name)
    if not match or Path(name).exists():
        return Path(name), 1.0
    weight = float(match[2])
    if not 0 < weight <= LARGEST_WEIGHT:
        do = f"use a weight above 0, up to {LARGEST_WEIGHT}, or omit the file"
        raise DataError(f"{match[1]} has the weight {weight:g}", do=do)
    return Path(match[1]), weight


def _form(path: Path) -> str:
    """Return the format of a file, based on its extension or, failing that, on whether its first lines contain tabs."""
    plain = path.with_suffix("") if path.suffix in _OPENERS else path
    if plain.suffix.lower() in (".tsv", ".csv"):
        return plain.suffix.lower()[1:]
    some = [line for line in islice(read_lines(path), _SAMPLE) if line]
    return "tsv" if some and all("\t" in line for line in some) else "text"


# --- lines and rows ---------------------------------------------------------------------------------------------------


def read_lines(path: Path, work: Work | None = None) -> Iterator[str]:
    """Yield the lines of a plain or compressed file. Progress is measured in bytes read from disk."""
    opener, counted = _OPENERS.get(path.suffix), 0
    try:
        with path.open("rb") as raw, opener(raw) if opener else raw as file:
            for number, line in enumerate(file):
                if number == 0:
                    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                        found = "the byte-order mark of UTF-16 or UTF-32"
                        raise DataError(f"{path} is not UTF-8", found=found, do="convert it to UTF-8, e.g. with iconv")
                    line = line.removeprefix(b"\xef\xbb\xbf")
                yield line.decode(errors="replace").removesuffix("\n").removesuffix("\r")
                if work and number % _ROUND == 0:
                    work.done, counted = work.done + raw.tell() - counted, raw.tell()
    except FileNotFoundError:
        raise DataError(f"there is no file {path}", do="use a table with two columns, or two aligned files") from None
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        do = "use a readable file, uncompressed or compressed with gzip or xz"
        raise DataError(f"{path} cannot be read", found=str(error), do=do) from None


def _rows(form: str, paths: Sequence[Path], work: Work | None = None) -> Rows:
    """Yield the rows of a table, or the lines of one or two text files."""
    lines = read_lines(paths[0], work)
    if form == "csv":
        yield from _csv_rows(paths[0], lines)
    elif form == "tsv":  # many files end with a blank line
        yield from ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line)
    elif len(paths) == 1:
        yield from ((number, [line]) for number, line in enumerate(lines, 1))
    else:
        for number, (line, other) in enumerate(zip_longest(lines, read_lines(paths[1], work)), 1):
            if line is None or other is None:
                counts = [f"{path}: {sum(1 for _ in read_lines(path)):,}" for path in paths]
                raise DataError(
                    "the two files do not have the same number of lines",
                    found=", ".join(counts),
                    do="align them line by line, and keep empty lines",
                )
            yield number, [line, other]


def _csv_rows(path: Path, lines: Iterator[str]) -> Rows:
    """Yield CSV rows, which may span several lines. The delimiter is the most frequent candidate in the first line."""
    delimiter = max(",;\t|", key=next(read_lines(path), "").count)
    rows = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    try:
        yield from ((rows.line_num, row) for row in rows if row)
    except csv.Error as error:
        found = f"line {rows.line_num}: {error}"
        raise DataError(f"{path} is not a CSV file", found=found, do="look for an unpaired quotation mark") from None


# --- columns ----------------------------------------------------------------------------------------------------------


def _layout(path: Path, form: str, columns: Names | None, languages: Names) -> Layout:
    """Find the columns that hold the pairs: those requested, those named in the header, or the first two with text."""
    rows = [row for _, row in islice(_rows(form, [path]), _SAMPLE)]
    if not rows:
        raise DataError(f"{path} contains no sentence pairs", found="no rows", do="use a file with sentence pairs")
    first, width = rows[0], min(map(len, rows))
    usual = [*([languages] if all(languages) and languages[0] != languages[1] else []), *_KNOWN]
    cells = [cell.strip().lower() for cell in first]
    header = next((names for names in usual if {*names} <= {*cells}), None)
    if columns and all(name.isdecimal() and int(name) > 0 for name in columns):
        words = f"columns {columns[0]} and {columns[1]}, as requested"
        return Layout(int(columns[0]) - 1, int(columns[1]) - 1, header is not None, words)
    names = [cell.strip() for cell in first]
    if columns and {*columns} <= {*names}:
        words = f"columns {columns[0]!r} and {columns[1]!r}"
        return Layout(names.index(columns[0]), names.index(columns[1]), True, words)
    if columns or width < 2:
        wanted = f"--columns {','.join(columns)}" if columns else "two columns, source and target"
        do = "specify the columns: --columns source,target or --columns 1,2"
        raise DataError(f"{path} does not have {wanted}", found=shown(" | ".join(first), 300), do=do)
    if header:
        source, target = map(cells.index, header)
        return Layout(source, target, True, f"a header; source {first[source]!r}, target {first[target]!r}")
    if width == 2:
        return Layout(0, 1, False, "source, target")
    # Skip columns of numbers, and columns of labels, which have few distinct values.
    values = [set(column) for column in zip(*rows, strict=False)]
    least = max(map(len, values)) / _LABELS
    found = [n for n, some in enumerate(values) if len(some) > max(1, least) and not all(map(str.isdecimal, some))]
    source, target = found[:2] if len(found) > 1 else (0, 1)
    return Layout(source, target, False, f"of {width} columns, {source + 1} as source, {target + 1} as target")
