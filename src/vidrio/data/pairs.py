"""Sentence pairs from files: two aligned texts, TSV, CSV, JSON lines, Parquet, or a Hugging Face data set. And plain
texts, each as a pair with itself.

`corpora` recognises what the given names are; `read` streams one of them, pair by pair, in bounded memory. What cannot
be a pair is counted with its reason in the tally and skipped; what makes a whole file useless is a DataError.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from vidrio.data.clean import Tally
from vidrio.data.lines import Line, plain_name, problem, read_lines
from vidrio.data.progress import Work
from vidrio.data.records import csv_rows, dataset_rows, json_lines, parquet_rows
from vidrio.errors import DataError
from vidrio.model.json_text import json_text

_TABLES = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_READERS = {"jsonl": json_lines, "parquet": parquet_rows}
_SAMPLE = 300  # lines to recognise a layout from
_WEIGHT = re.compile(r"(.+)@(\d+(?:\.\d+)?)")
Column = int | str  # a number from 0, or a name; a name with a dot goes into a nested record: translation.en

_ATTRIBUTION = re.compile(r"CC[ -]BY|CC0|tatoeba\.org|attribution", re.IGNORECASE)
_ID = re.compile(r"\d+")
_LANGUAGE = re.compile(r"[a-z]{2,3}([_-][A-Za-z]{2,4})?")
_LABEL = re.compile(r"[\w.:/-]{1,60}")
_MOST_LABELS = 50
# Names of columns that no sentence would be.
_USUAL = (
    "id line source target src tgt trg source_text target_text input output text texts label labels class sentence "
    "translation original domain score en es de fr it pt nl ru zh ja eng spa deu fra ita por nld rus english spanish "
    "german french italian portuguese dutch russian chinese japanese"
)
_KNOWN = (("source", "target"), ("src", "tgt"), ("src", "trg"), ("source_text", "target_text"), ("input", "output"))


class Layout(NamedTuple):
    """Where the two sides of a pair are."""

    source: Column
    target: Column
    header: bool  # the first line names the columns
    words: str  # what was recognised, told to the user


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


def corpora(
    names: Sequence[str], *, columns: tuple[str, str] | None = None, languages: tuple[str, str] = ("", "")
) -> list[Corpus]:
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
            recognised.append(Corpus("hf", (), _layout(name, "hf", columns, languages), weight, name))
        elif wrong := problem(path):
            problems.append(wrong)
        elif form := _form(path):
            recognised.append(Corpus(form, (path,), _layout(str(path), form, columns, languages), weight))
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
    if corpus.form in ("aligned", "lines"):
        yield from _aligned(corpus, tally, work)
    elif corpus.form == "tsv":
        yield from _tsv(corpus, tally, work)
    else:
        for number, record in _records(corpus, tally, work):
            tally.read += 1
            source, target = (value_of(record, name) for name in corpus.layout[:2])
            if isinstance(source, str) and isinstance(target, str):
                yield Pair(source, target, number)
            else:
                tally.skip("column missing", f"{corpus.name}:{number}", _as_json(record))


def _aligned(corpus: Corpus, tally: Tally, work: Work | None) -> Iterator[Pair]:
    """Two files side by side; a faulty line takes its partner with it, and the files must end together."""
    sides: Iterator[tuple[Line | None, ...]] = zip_longest(*(read_lines(path, work) for path in corpus.paths))
    for first, *others in sides:
        source, target = first, others[0] if others else first
        if source is None or target is None:
            counts = [f"{path}: {sum(1 for _ in read_lines(path)):,}" for path in corpus.paths]
            raise DataError(
                "the two files do not have the same number of lines",
                found=", ".join(counts),
                do="align them again, line by line: an empty line keeps its place",
            )
        tally.read += 1
        if fault := source.fault or target.fault:
            tally.skip(fault, f"{corpus.paths[not source.fault]}:{source.number}", source.text, target.text)
        else:
            yield Pair(source.text, target.text, source.number)


def _tsv(corpus: Corpus, tally: Tally, work: Work | None) -> Iterator[Pair]:
    source, target = int(corpus.layout.source), int(corpus.layout.target)
    width = max(source, target) + 1
    for number, text, fault in read_lines(corpus.paths[0], work):
        if number == 1 and corpus.layout.header:
            continue
        if not text:
            continue  # a blank line, as at the end of many files
        tally.read += 1
        cells = text.split("\t")
        if fault or len(cells) < width:
            tally.skip(fault or "column missing", f"{corpus.name}:{number}", text)
        else:
            yield Pair(cells[source], cells[target], number)


def _records(corpus: Corpus, tally: Tally, work: Work | None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Records with named fields, of every form that has them."""
    if corpus.form == "hf":
        return enumerate(dataset_rows(corpus.dataset), 1)
    if corpus.form == "csv":
        return csv_rows(corpus.paths[0], tally, work, header=corpus.layout.header)
    return _READERS[corpus.form](corpus.paths[0], tally, work)


def _as_json(record: Mapping[str, Any]) -> str:
    """A record to show; Parquet's may hold what JSON cannot, such as dates."""
    try:
        return json_text(record)
    except TypeError:
        return str(record)


def _weighted(name: str) -> tuple[str, float]:
    """A name and its weight: `file.tsv@2` is two, `file.tsv` one."""
    match = _WEIGHT.fullmatch(name)
    return (match[1], float(match[2])) if match and not Path(name).exists() else (name, 1.0)


def _form(path: Path) -> str:
    """The form of a table, from its name or, for other text files, from tabs in its lines; empty if it is none."""
    form = _TABLES.get(plain_name(path).suffix.lower())
    if form:
        return form
    lines = [line.text for line in islice(read_lines(path), _SAMPLE) if line.text and not line.fault]
    return "tsv" if lines and all("\t" in line for line in lines) else ""


def _layout(name: str, form: str, columns: tuple[str, str] | None, languages: tuple[str, str]) -> Layout:
    """Where the sides are, as asked for or as recognised."""
    if form in ("tsv", "csv"):
        rows = _first_rows(Path(name), form)
        if not rows:
            raise DataError(f"{name} holds no sentence pairs", found="no line of text", do="give a file with pairs")
        names = form == "csv" and is_header(rows[0], columns or languages)
        if columns:
            layout = asked_layout(columns, rows[0])
            layout = layout and layout._replace(header=names or layout.header)
        else:
            header = {name: name for name in rows[0]}
            layout = layout_of_names(header, languages) if names else layout_of_rows(rows, languages)
        shown = " | ".join(rows[0])
    else:
        records = enumerate(dataset_rows(name)) if form == "hf" else _READERS[form](Path(name), Tally())
        _, record = next(records, (0, None))
        if record is None:
            found = "no line is a JSON object" if form == "jsonl" else "no record"
            raise DataError(f"{name} holds no sentence pairs", found=found, do="give a file with pairs")
        layout = _of_record(record, columns, languages)
        shown = ", ".join(record)
    if layout is None:
        asked = f"--columns {','.join(columns)}" if columns else "two columns, source and target"
        do = "name the columns: --columns source,target or --columns 1,2"
        shown = "".join(c if c.isprintable() else "·" for c in shown[:300])
        raise DataError(f"{name} does not have {asked}", found=shown, do=do)
    return layout


def _first_rows(path: Path, form: str) -> list[list[str]]:
    """The cells of the first lines of a table, those of its header too."""
    if form == "tsv":
        return [line.text.split("\t") for line in islice(read_lines(path), _SAMPLE) if line.text and not line.fault]
    return [list(record.values()) for _, record in islice(csv_rows(path, Tally(), header=False), _SAMPLE)]


def _of_record(record: Mapping[str, Any], columns: tuple[str, str] | None, languages: tuple[str, str]) -> Layout | None:
    if not columns:
        return layout_of_names({name: value for name, value in record.items() if not name.isdecimal()}, languages)
    layout = asked_layout(columns, None)
    if layout is None or any(value_of(record, name) is None for name in layout[:2]):
        return None
    return layout


# --- which columns ----------------------------------------------------------------------------------------------------
#
# Where nobody says so. What was recognised is always told in words, so that a wrong guess can be seen and corrected.


def layout_of_rows(rows: Sequence[Sequence[str]], languages: tuple[str, str]) -> Layout | None:
    """The layout of tab-separated rows (the first of a file); None if there is only one column."""
    width = min((len(row) for row in rows), default=0)
    if width < 2:
        return None
    first = [cell.strip().lower() for cell in rows[0]]
    for names in (*_KNOWN, languages):
        if all(names) and names[0] != names[1] and set(names) <= set(first):
            source, target = first.index(names[0]), first.index(names[1])
            return Layout(source, target, True, f"a header; source {rows[0][source]!r}, target {rows[0][target]!r}")
    columns = list(zip(*(row[:width] for row in rows), strict=True))
    if width >= 4 and _all(_ID, columns[0]) and _all(_ID, columns[2]):
        return Layout(1, 3, False, "Tatoeba's export: id, source, id, target")
    if width >= 4 and _all(_LANGUAGE, columns[0]) and _all(_LANGUAGE, columns[1]) and _few(columns[0] + columns[1]):
        return Layout(2, 3, False, "Tatoeba Challenge: language, language, source, target")
    if width == 2:
        return Layout(0, 1, False, "source, target")
    if sum(bool(_ATTRIBUTION.search(cell)) for cell in columns[2]) > len(rows) / 2:
        return Layout(0, 1, False, "ManyThings and Tatoeba: source, target, attribution")
    if _all(_LABEL, columns[0]) and (_few(columns[0]) or _all(_ID, columns[0])):
        return Layout(1, 2, False, "a label, source, target")
    return Layout(0, 1, False, f"the first two of {width} columns as source, target")


def is_header(row: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether the first row of a CSV file names its columns: by the names that are expected, or two usual ones, which
    are half of all. (`text,texto` is the first pair of a list of words.)"""
    cells = {cell.strip().lower() for cell in row}
    names = set(map(str.lower, filter(None, expected)))
    return (bool(names) and names <= cells) or len(cells & set(_USUAL.split())) >= max(2, len(cells) / 2)


def layout_of_names(record: Mapping[str, Any], languages: tuple[str, str]) -> Layout | None:
    """The layout of named fields, from the first record; None if it cannot be told."""
    texts = [name for name, value in _fields(record) if isinstance(value, str)]
    ends = {name.rpartition(".")[2].lower(): name for name in texts}
    for names in (languages, *_KNOWN):
        if all(names) and names[0] != names[1] and set(names) <= set(ends):
            return _named(ends[names[0]], ends[names[1]])
    nested = [name for name in texts if name.startswith("translation.")]
    if len(nested) == 2:
        return _named(*nested)
    return _named(*texts) if len(texts) == 2 else None


def asked_layout(columns: tuple[str, str], header: Sequence[str] | None) -> Layout | None:
    """The layout that the user asks for, by names or by numbers from 1; None if a name is not in the header."""
    if all(name.isdecimal() and int(name) > 0 for name in columns):
        source, target = (int(name) - 1 for name in columns)
        return Layout(source, target, False, f"columns {columns[0]} and {columns[1]}, as asked for")
    if header is None:
        return _named(*columns)
    if not set(columns) <= set(header):
        return None
    return Layout(
        header.index(columns[0]), header.index(columns[1]), True, f"columns {columns[0]!r} and {columns[1]!r}"
    )


def value_of(record: Any, name: Column) -> Any:
    """The value of a named field, in nested records too; None where there is none."""
    name = str(name)
    if not isinstance(record, Mapping):
        return None
    if name in record:
        return record[name]
    outer, _, inner = name.partition(".")
    return value_of(record.get(outer), inner) if inner else None


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values, of records inside the record too."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", text) for key, text in value.items())
        else:
            yield name, value


def _named(source: str, target: str) -> Layout:
    return Layout(source, target, True, f"source {source!r}, target {target!r}")


def _all(pattern: re.Pattern[str], cells: Sequence[str]) -> bool:
    return all(pattern.fullmatch(cell) for cell in cells)


def _few(cells: Sequence[str]) -> bool:
    """Few different values for so many rows: labels and not texts."""
    return len(set(cells)) <= min(_MOST_LABELS, max(1, len(cells) // 3))
