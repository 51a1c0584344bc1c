"""Sentence pairs from files: two aligned texts, TSV, CSV, JSON lines, Parquet, or a Hugging Face data set. And plain
texts, each as a pair with itself.

`corpora` recognises what the given names are; `read` streams one of them, pair by pair, in bounded memory. A row that
is not a pair is counted with its reason and skipped; a file that cannot be used at all is a DataError.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from vidrio.data.clean import Tally
from vidrio.data.lines import Line, plain_name, problem, read_lines
from vidrio.data.progress import Work
from vidrio.errors import DataError
from vidrio.model.json_text import json_text

_FORMS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_SAMPLE = 300  # rows to recognise a layout from
_WEIGHT = re.compile(r"(.+)@(\d+(?:\.\d+)?)")
Column = int | str  # a number from 0, or a name; a name with a dot goes into a nested record: translation.en
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
    """A sentence and its translation, and the line (or row) where they stand."""

    source: str
    target: str
    line: int


@dataclass(frozen=True)
class Corpus:
    """A place that pairs are read from."""

    form: str  # aligned, tsv, csv, jsonl, parquet, hf or lines
    paths: tuple[Path, ...]  # two if aligned
    layout: Layout
    weight: float = 1.0  # how often each pair is seen, beside those of other corpora
    dataset: str = ""  # a Hugging Face data set's name, where the form is hf

    @property
    def name(self) -> str:
        return self.dataset or " + ".join(map(str, self.paths))

    @property
    def bytes(self) -> int:
        """The files' size as `read` counts what is done of it."""
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
        elif name.startswith("hf:"):
            recognised.append(_table(name, "hf", columns, languages, weight))
        elif wrong := problem(path):
            problems.append(wrong)
        elif form := _form(path):
            recognised.append(_table(name, form, columns, languages, weight))
        else:
            other = Path(_weighted(waiting[0])[0]) if waiting else None
            if other is None or problem(other) or _form(other):
                problems.append(
                    f"{path} has one text a line (no tab), and no second file with the translations follows it"
                )
            else:
                weight *= _weighted(waiting.pop(0))[1]
                recognised.append(Corpus("aligned", (path, other), Layout(0, 1, False, "line by line"), weight))
    if problems or not recognised:
        raise DataError(
            "these sentence pairs cannot be read" if problems else "no sentence pairs are given",
            found="; ".join(problems),
            do="give a table with two columns (.tsv .csv .jsonl .parquet), or two files with aligned lines",
        )
    return recognised


def lines(names: Sequence[str]) -> list[Corpus]:
    """Files of plain text, to learn to write like: one text a line."""
    if problems := [wrong for name in names if (wrong := problem(Path(name)))]:
        raise DataError("these texts cannot be read", found="; ".join(problems), do="give files with one text a line")
    return [Corpus("lines", (Path(name),), Layout(0, 0, False, "one text a line")) for name in names]


def read(corpus: Corpus, tally: Tally, work: Work | None = None) -> Iterator[Pair]:
    """Every pair of a corpus, in its order; what cannot be read as a pair goes into the tally."""
    layout = corpus.layout
    for number, row in islice(_rows(corpus, tally, work), int(layout.header and corpus.form in ("tsv", "csv")), None):
        tally.read += 1
        source, target = value_of(row, layout.source), value_of(row, layout.target)
        if isinstance(source, str) and isinstance(target, str):
            yield Pair(source, target, number)
        else:
            tally.skip("column missing", f"{corpus.name}:{number}", _shown(row))


# --- rows of every form -----------------------------------------------------------------------------------------------


def _rows(corpus: Corpus, tally: Tally, work: Work | None = None) -> Rows:
    if corpus.form == "hf":
        return enumerate(_dataset(corpus.dataset), 1)
    if corpus.form in ("aligned", "lines"):
        return _aligned(corpus.paths, tally, work)
    readers: dict[str, Callable[[Path, Tally, Work | None], Rows]] = {
        "tsv": _tsv,
        "csv": _csv,
        "jsonl": _json_lines,
        "parquet": _parquet,
    }
    return readers[corpus.form](corpus.paths[0], tally, work)


def _aligned(paths: Sequence[Path], tally: Tally, work: Work | None) -> Rows:
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


def _tsv(path: Path, tally: Tally, work: Work | None) -> Rows:
    for line in read_lines(path, work):
        if line.fault:
            _skip(tally, path, line)
        elif line.text:  # many files end with a blank line
            yield line.number, line.text.split("\t")


def _csv(path: Path, tally: Tally, work: Work | None) -> Rows:
    """Rows of a CSV file; one may reach over several lines. The delimiter is what the first line has most of."""
    faulty: list[Line] = []

    def texts() -> Iterator[str]:
        for line in read_lines(path, work):
            if line.fault:
                faulty.append(line)
            yield line.text + "\n"  # a faulty one too, for the quotation marks in it

    delimiter = max(",;\t|", key=next(read_lines(path), Line(1, "")).text.count)
    rows = csv.reader(texts(), delimiter=delimiter)
    try:
        for cells in rows:
            if faulty:
                _skip(tally, path, faulty[0])
                faulty.clear()
            elif cells:
                yield rows.line_num, cells
    except csv.Error as error:
        found = f"line {rows.line_num}: {error}"
        raise DataError(f"{path} is no CSV file", found=found, do="look for an unpaired quotation mark") from None


def _json_lines(path: Path, tally: Tally, work: Work | None) -> Rows:
    for line in read_lines(path, work):
        try:
            record = None if line.fault else json.loads(line.text.strip() or "{}")
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            _skip(tally, path, line if line.fault else line._replace(fault="not JSON"))
        elif line.text.strip():
            yield line.number, record


def _parquet(path: Path, tally: Tally, work: Work | None) -> Rows:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        do = "pip install pyarrow, or convert it to .tsv or .jsonl"
        raise DataError(f"{path} is a Parquet file", do=do) from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=10_000):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
                if work:
                    work.done += path.stat().st_size * batch.num_rows // max(1, file.metadata.num_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is damaged, or no Parquet file", found=f"after {number:,} rows: {error}") from None


def _dataset(name: str) -> Iterable[Mapping[str, Any]]:
    """The rows of `hf:NAME` or `hf:NAME:CONFIGURATION`, its part `train`, streamed."""
    try:
        from datasets import load_dataset
    except ModuleNotFoundError:
        raise DataError(f"{name} needs Hugging Face's library", do="pip install datasets, or give files") from None
    _, dataset, configuration = (*name.split(":", 2), None)[:3]
    try:
        return load_dataset(dataset, configuration, split="train", streaming=True)
    except Exception as error:  # network, names, formats: the library raises whatever lies below
        raise DataError(f"the data set {name} cannot be loaded", found=str(error)[:300], do="check its name") from None


def _skip(tally: Tally, path: Path, line: Line) -> None:
    tally.read += 1
    tally.skip(line.fault, f"{path}:{line.number}", line.text)


def _shown(row: Row) -> str:
    """A row to show; Parquet's may hold what JSON cannot, such as dates."""
    if not isinstance(row, Mapping):
        return "\t".join(row)
    try:
        return json_text(row)
    except TypeError:
        return str(row)


# --- which columns ----------------------------------------------------------------------------------------------------
#
# What was recognised is always shown in words, so that a wrong guess can be seen and corrected with --columns.

# Names that two columns may have in a header.
_KNOWN = (
    *(("source", "target"), ("src", "tgt"), ("src", "trg"), ("source_text", "target_text"), ("input", "output")),
    *(("english", "spanish"), ("text", "label"), ("text", "class")),
)


def _weighted(name: str) -> tuple[str, float]:
    """A name and its weight: `file.tsv@2` is two, `file.tsv` one."""
    match = _WEIGHT.fullmatch(name)
    return (match[1], float(match[2])) if match and not Path(name).exists() else (name, 1.0)


def _form(path: Path) -> str:
    """The form of a table, from its name or, for other text files, from tabs in its lines; empty if it is none."""
    if form := _FORMS.get(plain_name(path).suffix.lower()):
        return form
    texts = [line.text for line in islice(read_lines(path), _SAMPLE) if line.text and not line.fault]
    return "tsv" if texts and all("\t" in text for text in texts) else ""


def _table(name: str, form: str, columns: Names | None, languages: Names, weight: float) -> Corpus:
    """A corpus with its columns, as asked for or as recognised."""
    paths, dataset = ((), name) if form == "hf" else ((Path(name),), "")
    unknown = Corpus(form, paths, Layout(0, 1, False, ""), weight, dataset)
    rows = [row for _, row in islice(_rows(unknown, Tally()), _SAMPLE if form in ("tsv", "csv") else 1)]
    if not rows:
        found = "no line is a JSON object" if form == "jsonl" else "no row"
        raise DataError(f"{name} holds no sentence pairs", found=found, do="give a file with pairs")
    first: Any = rows[0]
    if isinstance(first, Mapping):
        layout, shown = _layout_of_record(first, columns, languages), ", ".join(first)
    else:
        layout, shown = _layout_of_cells(rows, columns, languages), " | ".join(first)
    if layout is None:
        asked = f"--columns {','.join(columns)}" if columns else "two columns, source and target"
        do = "name the columns: --columns source,target or --columns 1,2"
        shown = "".join(c if c.isprintable() else "·" for c in shown[:300])
        raise DataError(f"{name} does not have {asked}", found=shown, do=do)
    return Corpus(form, paths, layout, weight, dataset)


def _layout_of_cells(rows: Sequence[Any], columns: Names | None, languages: Names) -> Layout | None:
    """The layout of a table's first rows; None if it has no two columns, or not those asked for."""
    first, width = [cell.strip().lower() for cell in rows[0]], min(map(len, rows))
    header = next((names for names in _usual_names(languages) if set(names) <= set(first)), None)
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
    texts = [n for n, cells in enumerate(by_column) if len(cells) > 1 and not all(map(str.isdecimal, cells))]
    source, target = texts[:2] if len(texts) > 1 else (0, 1)
    return Layout(source, target, False, f"of {width} columns {source + 1} as source, {target + 1} as target")


def _layout_of_record(record: Mapping[str, Any], columns: Names | None, languages: Names) -> Layout | None:
    """The layout of named fields, from the first record; None if it is not clear."""
    if columns:
        there = all(value_of(record, name) is not None for name in columns)
        return Layout(*columns, True, f"source {columns[0]!r}, target {columns[1]!r}") if there else None
    texts = [name for name, value in _fields(record) if isinstance(value, str)]
    by_name = {name.rpartition(".")[2].lower(): name for name in texts}
    known = [(by_name[a], by_name[b]) for a, b in _usual_names(languages) if a in by_name and b in by_name]
    nested = [name for name in texts if name.startswith("translation.")]
    for names in (*known, nested, texts):
        if len(names) == 2:
            return Layout(names[0], names[1], True, f"source {names[0]!r}, target {names[1]!r}")
    return None


def _usual_names(languages: Names) -> list[Names]:
    """Names that two columns of text may have."""
    return [*([languages] if all(languages) and languages[0] != languages[1] else []), *_KNOWN]


def value_of(row: Any, column: Column) -> Any:
    """A cell by its number, or a field by its name, in nested records too; None where there is none."""
    if isinstance(column, int):
        return row[column] if column < len(row) else None
    if not isinstance(row, Mapping):
        return None
    if column in row:
        return row[column]
    outer, _, inner = column.partition(".")
    return value_of(row.get(outer), inner) if inner else None


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values, of records inside the record too."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", text) for key, text in value.items())
        else:
            yield name, value
