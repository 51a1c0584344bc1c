"""Sentence pairs from files: two aligned texts, TSV, CSV, JSON lines, Parquet, or a Hugging Face data set.

`corpora` recognises what the given names are; `read` streams one of them, pair by pair, in bounded memory. What cannot
be a pair is counted with its reason in the tally and skipped; what makes a whole file useless is a DataError.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from vidrio.data import columns as layouts
from vidrio.data.columns import Layout
from vidrio.data.lines import plain_name, problem, read_lines
from vidrio.data.misalignment import parting
from vidrio.data.progress import Advance
from vidrio.data.records import csv_rows, dataset_rows, json_lines, parquet_rows
from vidrio.data.skipped import Tally
from vidrio.errors import DataError

_TABLES = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_READERS = {"jsonl": json_lines, "parquet": parquet_rows}
_SAMPLE = 300  # lines to recognise a layout from
_WEIGHT = re.compile(r"(.+)@(\d+(?:\.\d+)?)")


class Pair(NamedTuple):
    """A sentence and its translation, and the line (or row) where they stand."""

    source: str
    target: str
    line: int


@dataclass(frozen=True)
class Corpus:
    """A place that pairs are read from."""

    form: str  # aligned, tsv, csv, jsonl, parquet or hf
    paths: tuple[Path, ...]  # two if aligned
    layout: Layout
    weight: float = 1.0  # how often each pair is seen, beside those of other corpora
    dataset: str = ""  # a Hugging Face data set's name, where the form is hf

    @property
    def name(self) -> str:
        return self.dataset or " + ".join(map(str, self.paths))

    @property
    def bytes(self) -> int:
        """The files' size as `advance` counts it."""
        return sum(path.stat().st_size for path in self.paths)


def corpora(
    names: Sequence[str], *, columns: tuple[str, str] | None = None, languages: tuple[str, str] = ("", "")
) -> list[Corpus]:
    """What the names are. `file@2` has the weight 2; a plain text file is followed by its translation, line by line."""
    found: list[Corpus] = []
    problems: list[str] = []
    waiting = list(names)
    while waiting:
        name, weight = _weighted(waiting.pop(0))
        path = Path(name)
        if weight <= 0:
            problems.append(f"{name} has the weight {weight:g}, not above 0")
        elif name.startswith("hf:"):
            found.append(_dataset(name, weight, columns, languages))
        elif wrong := problem(path):
            problems.append(wrong)
        elif form := _form(path):
            found.append(Corpus(form, (path,), _layout(path, form, columns, languages), weight))
        else:
            other = Path(_weighted(waiting[0])[0]) if waiting else None
            if other is None or problem(other) or _form(other):
                problems.append(
                    f"{path} has one text a line (no tab), and no second file with the translations follows it"
                )
            else:
                weight *= _weighted(waiting.pop(0))[1]
                found.append(Corpus("aligned", (path, other), Layout(0, 1, False, "line by line"), weight))
    if problems or not found:
        raise DataError(
            "these sentence pairs cannot be read" if problems else "no sentence pairs are given",
            found="; ".join(problems),
            do="give a table with two columns (.tsv .csv .jsonl .parquet), or two files with aligned lines",
        )
    return found


def read(corpus: Corpus, tally: Tally, advance: Advance | None = None) -> Iterator[Pair]:
    """Every pair of a corpus, in its order; what cannot be read as a pair goes into the tally."""
    if corpus.form == "aligned":
        yield from _aligned(corpus, tally, advance)
    elif corpus.form == "tsv":
        yield from _tsv(corpus, tally, advance)
    else:
        for number, record in _records(corpus, tally, advance):
            tally.read += 1
            source, target = (layouts.field(record, name) for name in corpus.layout[:2])
            if isinstance(source, str) and isinstance(target, str):
                yield Pair(source, target, number)
            else:
                shown = json.dumps(record, ensure_ascii=False, default=str)
                tally.skip("column missing", f"{corpus.name}:{number}", shown)


def _aligned(corpus: Corpus, tally: Tally, advance: Advance | None) -> Iterator[Pair]:
    """Two files side by side; a faulty line takes its partner with it, and the files must end together."""
    sources, targets = (read_lines(path, advance) for path in corpus.paths)
    while True:
        source, target = next(sources, None), next(targets, None)
        if source is None and target is None:
            return
        if source is None or target is None:
            raise parting(*corpus.paths)
        tally.read += 1
        if fault := source.fault or target.fault:
            tally.skip(fault, f"{corpus.paths[not source.fault]}:{source.number}", source.text, target.text)
        else:
            yield Pair(source.text, target.text, source.number)


def _tsv(corpus: Corpus, tally: Tally, advance: Advance | None) -> Iterator[Pair]:
    source, target = int(corpus.layout.source), int(corpus.layout.target)
    width = max(source, target) + 1
    for number, text, fault in read_lines(corpus.paths[0], advance):
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


def _records(corpus: Corpus, tally: Tally, advance: Advance | None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Records with named fields, of every form that has them."""
    if corpus.form == "hf":
        return enumerate(dataset_rows(corpus.dataset), 1)
    if corpus.form == "csv":
        return csv_rows(corpus.paths[0], tally, advance, header=corpus.layout.header)
    return _READERS[corpus.form](corpus.paths[0], tally, advance)


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


def _layout(path: Path, form: str, columns: tuple[str, str] | None, languages: tuple[str, str]) -> Layout:
    """Where the sides are, as asked for or as recognised."""
    if form in ("tsv", "csv"):
        rows = _first_rows(path, form)
        if not rows:
            raise DataError(f"{path} holds no sentence pairs", found="no line of text", do="give a file with pairs")
        names = form == "csv" and layouts.is_header(rows[0], columns or languages)
        if columns:
            layout = layouts.given(columns, rows[0])
            layout = layout and layout._replace(header=names or layout.header)
        else:
            header = {name: name for name in rows[0]}
            layout = layouts.of_names(header, languages) if names else layouts.of_rows(rows, languages)
        shown = " | ".join(rows[0])
    else:
        _, record = next(_READERS[form](path, Tally()), (0, None))
        if record is None:
            found = "no line is a JSON object" if form == "jsonl" else "no record"
            raise DataError(f"{path} holds no sentence pairs", found=found, do="give a file with pairs")
        layout = _of_record(record, columns, languages)
        shown = ", ".join(record)
    if layout is None:
        asked = f"--columns {','.join(columns)}" if columns else "two columns, source and target"
        do = "name the columns: --columns source,target or --columns 1,2"
        shown = "".join(c if c.isprintable() else "·" for c in shown[:300])
        raise DataError(f"{path} does not have {asked}", found=shown, do=do)
    return layout


def _first_rows(path: Path, form: str) -> list[list[str]]:
    """The cells of the first lines of a table, those of its header too."""
    if form == "tsv":
        return [line.text.split("\t") for line in islice(read_lines(path), _SAMPLE) if line.text and not line.fault]
    return [list(record.values()) for _, record in islice(csv_rows(path, Tally(), header=False), _SAMPLE)]


def _of_record(record: Mapping[str, Any], columns: tuple[str, str] | None, languages: tuple[str, str]) -> Layout | None:
    if not columns:
        return layouts.of_names({name: value for name, value in record.items() if not name.isdecimal()}, languages)
    layout = layouts.given(columns, None)
    if layout is None or any(layouts.field(record, name) is None for name in layout[:2]):
        return None
    return layout


def _dataset(name: str, weight: float, columns: tuple[str, str] | None, languages: tuple[str, str]) -> Corpus:
    record = next(iter(dataset_rows(name)), None)
    layout = _of_record(record, columns, languages) if record else None
    if layout is None:
        shown = ", ".join(record) if record else "no record"
        raise DataError(
            f"{name} does not have two columns, source and target", found=shown, do="name them: --columns a,b"
        )
    return Corpus("hf", (), layout, weight, name)
