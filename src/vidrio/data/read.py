"""Sentence pairs from files: two aligned texts, TSV, CSV or JSON lines. And plain texts, each as a pair with itself.

`corpora` recognises what the given names are; `read` streams one of them, pair by pair, in bounded memory. A row that
is not a pair is counted with its reason and skipped; a file that cannot be used at all is a DataError.
"""

import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from vidrio.data.clean import Tally
from vidrio.data.progress import Work
from vidrio.errors import DataError

LONGEST_LINE = 1_000_000  # bytes
_BUFFER = 1 << 20  # bytes
_ROUND = 4096  # lines between two updates of the progress
_SAMPLE = 300  # rows to recognise a layout from
_OPENERS = {".gz": gzip.open, ".xz": lzma.open}
_FORMS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_WEIGHT = re.compile(r"(.+)@(\d+(?:\.\d+)?)")
# Names that two columns may have in a header.
_KNOWN = (
    *(("source", "target"), ("src", "tgt"), ("src", "trg"), ("source_text", "target_text"), ("input", "output")),
    *(("english", "spanish"), ("text", "label"), ("text", "class")),
)

Column = int | str  # a number from 0, or a name; a field of a nested record is named translation.en
Names = tuple[str, str]
Row = Sequence[str] | Mapping[str, Any]  # cells by number, or fields by name
Rows = Iterator[tuple[int, Row]]  # with the number of the line or record


class Layout(NamedTuple):
    """Where the two sides of a pair are."""

    source: Column
    target: Column
    header: bool  # the first line names the columns
    words: str  # what was recognised, for the user


class Pair(NamedTuple):
    """A sentence and its translation, and the line (or row) that they come from."""

    source: str
    target: str
    line: int


@dataclass(frozen=True)
class Corpus:
    """A file, or two aligned ones, that pairs are read from."""

    form: str  # text (one file, or two aligned ones), tsv, csv or jsonl
    paths: tuple[Path, ...]
    layout: Layout
    weight: float = 1.0  # how often each pair is seen, beside those of other corpora

    @property
    def name(self) -> str:
        return " + ".join(map(str, self.paths))

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.paths)


def corpora(names: Sequence[str], *, columns: Names | None = None, languages: Names = ("", "")) -> list[Corpus]:
    """What the names are. `file@2` has the weight 2; a plain text file is followed by its translation, line by line."""
    recognised: list[Corpus] = []
    problems: list[str] = []
    waiting = list(names)
    while waiting:
        name, weight = _weighted(waiting.pop(0))
        path = Path(name)
        if weight <= 0:
            problems.append(f"{name} has the weight {weight:g}, not above 0")
        elif wrong := _problem(path):
            problems.append(wrong)
        elif form := _form(path):
            recognised.append(Corpus(form, (path,), _recognise(path, form, columns, languages), weight))
        else:
            other, factor = _weighted(waiting[0]) if waiting else ("", 1.0)
            if not other or _problem(Path(other)) or _form(Path(other)):
                problems.append(f"{path} has one text a line (no tab), and no file with the translations follows it")
            else:
                waiting.pop(0)
                layout = Layout(0, 1, False, "line by line")
                recognised.append(Corpus("text", (path, Path(other)), layout, weight * factor))
    if problems or not recognised:
        raise DataError(
            "these sentence pairs cannot be read" if problems else "no sentence pairs are given",
            found="; ".join(problems),
            do="give a table with two columns (.tsv .csv .jsonl), or two files with aligned lines",
        )
    return recognised


def texts(names: Sequence[str]) -> list[Corpus]:
    """Files of plain text, to learn to continue: one text a line."""
    if problems := [wrong for name in names if (wrong := _problem(Path(name)))]:
        raise DataError("these texts cannot be read", found="; ".join(problems), do="give files with one text a line")
    return [Corpus("text", (Path(name),), Layout(0, 0, False, "one text a line")) for name in names]


def read(corpus: Corpus, tally: Tally, work: Work | None = None) -> Iterator[Pair]:
    """Every pair of a corpus, in its order; what cannot be read as a pair goes into the tally."""
    source, target, header, _ = corpus.layout
    rows = _READERS[corpus.form](corpus.paths, tally, work)
    for number, row in islice(rows, int(header and corpus.form in ("tsv", "csv")), None):
        tally.read += 1
        pair = _cell(row, source), _cell(row, target)
        if isinstance(pair[0], str) and isinstance(pair[1], str):
            yield Pair(pair[0], pair[1], number)
        else:
            shown = str(dict(row)) if isinstance(row, Mapping) else "\t".join(row)
            tally.skip("column missing", f"{corpus.name}:{number}", shown)


def _cell(row: Any, column: Column) -> Any:
    """A cell by its number, or a field by its name; None where there is none."""
    if isinstance(column, int):
        return row[column] if column < len(row) else None
    return row.get(column)


def _weighted(name: str) -> tuple[str, float]:
    """A name and its weight: `file.tsv@2` is two, `file.tsv` one."""
    match = _WEIGHT.fullmatch(name)
    return (match[1], float(match[2])) if match and not Path(name).exists() else (name, 1.0)


def _problem(path: Path) -> str:
    """Why a file cannot be read at all; empty if it can."""
    try:
        if path.is_dir():
            return f"{path} is not a file"
        path.open("rb").close()
    except FileNotFoundError:
        return f"there is no file {path}"
    except OSError as error:
        return f"{path} cannot be opened: {error.strerror}"
    return ""


def _form(path: Path) -> str:
    """The form of a table, from its name or, for other text files, from tabs in its lines; empty if it is none."""
    plain = path.with_suffix("") if path.suffix in (*_OPENERS, ".zst") else path
    if form := _FORMS.get(plain.suffix.lower()):
        return form
    some = [line.text for line in islice(read_lines(path), _SAMPLE) if line.text and not line.fault]
    return "tsv" if some and all("\t" in text for text in some) else ""


# --- lines ------------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line and its number, from 1. With a fault it is not text, and only good for showing; it keeps its number, so
    that aligned files stay in step."""

    number: int
    text: str
    fault: str = ""


def read_lines(path: Path, work: Work | None = None) -> Iterator[Line]:
    """Every line of a file, plain or compressed. Progress is counted in bytes of the file as it lies on disk."""
    number = counted = 0
    if path.suffix == ".zst":
        raise DataError(f"{path} is compressed with zstd", do="unpack it first: zstd -d")
    opener: Any = _OPENERS.get(path.suffix)
    try:
        with path.open("rb") as raw, io.BufferedReader(opener(raw) if opener else raw, _BUFFER) as file:
            if file.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
                found = "the byte-order mark of UTF-16 or UTF-32"
                raise DataError(f"{path} is not UTF-8", found=found, do="convert it, with iconv or an editor")
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                yield _line(number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
                while len(line) > LONGEST_LINE and not line.endswith(b"\n"):  # the rest of a line that is too long
                    line = file.readline(LONGEST_LINE + 1) or b"\n"
                if work and number % _ROUND == 0:
                    counted, before = raw.tell(), counted
                    work.done += counted - before
            if work:
                work.done += raw.tell() - counted
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        found = f"after {number:,} lines: {error}"
        raise DataError(f"{path} cannot be read", found=found, do="fetch or pack it again") from None


def _line(number: int, line: bytes) -> Line:
    if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
        return Line(number, line[:1000].decode(errors="replace"), "line too long")
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Line(number, line.decode(errors="replace"), "invalid UTF-8")
    return Line(number, text, "NUL character" if "\0" in text else "")


# --- rows of every form -----------------------------------------------------------------------------------------------


def _text(paths: Sequence[Path], tally: Tally, work: Work | None) -> Rows:
    """Files side by side; a faulty line takes its partner with it, and the files must end together."""
    for side_by_side in zip_longest(*(read_lines(path, work) for path in paths)):
        if None in side_by_side:
            counts = [f"{path}: {sum(1 for _ in read_lines(path)):,}" for path in paths]
            raise DataError(
                "the two files do not have the same number of lines",
                found=", ".join(counts),
                do="align them again, line by line: an empty line keeps its place",
            )
        faulty = [(path, line) for path, line in zip(paths, side_by_side, strict=True) if line.fault]
        if faulty:
            _skip(tally, *faulty[0])
        else:
            yield side_by_side[0].number, [line.text for line in side_by_side]


def _tsv(paths: Sequence[Path], tally: Tally, work: Work | None) -> Rows:
    [path] = paths
    for line in read_lines(path, work):
        if line.fault:
            _skip(tally, path, line)
        elif line.text:  # many files end with a blank line
            yield line.number, line.text.split("\t")


def _csv(paths: Sequence[Path], tally: Tally, work: Work | None) -> Rows:
    """Rows of a CSV file; one may reach over several lines. The delimiter is what the first line has most of."""
    [path] = paths
    faulty: list[Line] = []

    def lines() -> Iterator[str]:
        for line in read_lines(path, work):
            if line.fault:
                faulty.append(line)
            yield line.text + "\n"  # a faulty one too, for the quotation marks in it

    delimiter = max(",;\t|", key=next(read_lines(path), Line(1, "")).text.count)
    rows = csv.reader(lines(), delimiter=delimiter)
    try:
        for cells in rows:
            if faulty:
                _skip(tally, path, faulty[0])
                faulty.clear()
            elif cells:
                yield rows.line_num, cells
    except csv.Error as error:
        found = f"line {rows.line_num}: {error}"
        raise DataError(f"{path} is not a CSV file", found=found, do="look for an unpaired quotation mark") from None


def _json_lines(paths: Sequence[Path], tally: Tally, work: Work | None) -> Rows:
    [path] = paths
    for line in read_lines(path, work):
        try:
            record = None if line.fault else json.loads(line.text.strip() or "{}")
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            _skip(tally, path, line if line.fault else line._replace(fault="not JSON"))
        elif line.text.strip():
            yield line.number, _flat(record)


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record; those of a record inside it as `translation.en`."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        inner = value if isinstance(value, Mapping) else {}
        flat |= {f"{name}.{key}": part for key, part in inner.items()} or {name: value}
    return flat


def _skip(tally: Tally, path: Path, line: Line) -> None:
    tally.read += 1
    tally.skip(line.fault, f"{path}:{line.number}", line.text)


_READERS: dict[str, Callable[[Sequence[Path], Tally, Work | None], Rows]] = {
    "text": _text,
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _json_lines,
}

# --- which columns ----------------------------------------------------------------------------------------------------
#
# What was recognised is always shown in words, so that a wrong guess can be seen and corrected with --columns.


def _recognise(path: Path, form: str, columns: Names | None, languages: Names) -> Layout:
    """Where a table's pairs are: as asked for, or as its first rows show."""
    first_rows = islice(_READERS[form]([path], Tally(), None), _SAMPLE if form in ("tsv", "csv") else 1)
    rows = [row for _, row in first_rows]
    if not rows:
        found = "no line is a JSON object" if form == "jsonl" else "no row"
        raise DataError(f"{path} holds no sentence pairs", found=found, do="give a file with pairs")
    usual = [*([languages] if all(languages) and languages[0] != languages[1] else []), *_KNOWN]
    first: Any = rows[0]
    if isinstance(first, Mapping):
        layout, shown = _layout_of_record(first, columns, usual), ", ".join(first)
    else:
        layout, shown = _layout_of_cells(rows, columns, usual), " | ".join(first)
    if layout is None:
        asked = f"--columns {','.join(columns)}" if columns else "two columns, source and target"
        do = "name the columns: --columns source,target or --columns 1,2"
        shown = "".join(c if c.isprintable() else "·" for c in shown[:300])
        raise DataError(f"{path} does not have {asked}", found=shown, do=do)
    return layout


def _layout_of_cells(rows: Sequence[Any], columns: Names | None, usual: Sequence[Names]) -> Layout | None:
    """The layout of a table's first rows; None if it has no two columns, or not those asked for."""
    first, width = [cell.strip().lower() for cell in rows[0]], min(map(len, rows))
    header = next((names for names in usual if set(names) <= set(first)), None)
    if columns and all(name.isdecimal() and int(name) > 0 for name in columns):
        source, target = (int(name) - 1 for name in columns)
        return Layout(source, target, header is not None, f"columns {columns[0]} and {columns[1]}, as asked for")
    if columns:
        if not set(columns) <= set(rows[0]):
            return None
        source, target = map(rows[0].index, columns)
        return Layout(source, target, True, f"columns {columns[0]!r} and {columns[1]!r}")
    if width < 2:
        return None
    if header:
        source, target = map(first.index, header)
        return Layout(source, target, True, f"a header; source {rows[0][source]!r}, target {rows[0][target]!r}")
    if width == 2:
        return Layout(0, 1, False, "source, target")
    # Of three columns or more the first two texts; numbers, or the same word in every row, are none.
    by_column = [set(cells) for cells in zip(*rows, strict=False)]
    found = [n for n, cells in enumerate(by_column) if len(cells) > 1 and not all(map(str.isdecimal, cells))]
    source, target = found[:2] if len(found) > 1 else (0, 1)
    return Layout(source, target, False, f"of {width} columns {source + 1} as source, {target + 1} as target")


def _layout_of_record(record: Mapping[str, Any], columns: Names | None, usual: Sequence[Names]) -> Layout | None:
    """The layout of named fields, from the first record; None if it is not clear."""
    fields = [name for name, value in record.items() if isinstance(value, str)]
    by_name = {name.rpartition(".")[2].lower(): name for name in fields}
    known = [(by_name[a], by_name[b]) for a, b in usual if a in by_name and b in by_name]
    nested = [name for name in fields if name.startswith("translation.")]
    for names in [columns] if columns else [*known, nested, fields]:
        if len(names) == 2 and set(names) <= set(fields):
            return Layout(names[0], names[1], True, f"source {names[0]!r}, target {names[1]!r}")
    return None
