"""Records with named fields: CSV, JSON lines, Parquet, and Hugging Face data sets.

Each reader yields the number of the line or row, and the record. What is no record goes into the tally.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vidrio.data.clean import Tally
from vidrio.data.lines import Line, read_lines
from vidrio.data.progress import Work
from vidrio.errors import DataError

Records = Iterator[tuple[int, Mapping[str, Any]]]


def json_lines(path: Path, tally: Tally, work: Work | None = None) -> Records:
    for number, text, fault in read_lines(path, work):
        if not fault and not text.strip():
            continue
        try:
            record = None if fault else json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield number, record
        else:
            tally.read += 1
            tally.skip(fault or "not JSON", f"{path}:{number}", text)


def csv_rows(path: Path, tally: Tally, work: Work | None = None, *, header: bool = True) -> Records:
    """Records of a CSV file, by the names in its header if it has one, and by numbers from 0; one may reach over
    several lines."""
    faults: list[Line] = []

    def lines() -> Iterator[str]:
        for line in read_lines(path, work):
            if line.fault:
                faults.append(line)
            yield line.text + "\n"  # a faulty one too, for the quotation marks in it

    rows = csv.reader(lines(), delimiter=_delimiter(path))
    names = next(rows, []) if header else []
    try:
        for cells in rows:
            if faults:
                tally.read += 1
                tally.skip(faults[0].fault, f"{path}:{faults[0].number}", faults[0].text)
                faults.clear()
            elif cells:
                named = dict(zip(names, cells, strict=False))
                numbered = {str(i): cell for i, cell in enumerate(cells)}
                yield rows.line_num, numbered | named
    except csv.Error as error:
        found = f"line {rows.line_num}: {error}"
        raise DataError(
            f"{path} is no CSV file", found=found, do="look for a quotation mark without its partner"
        ) from None


def _delimiter(path: Path) -> str:
    """The sign that parts the columns: the one that the first line has most of."""
    first = next(read_lines(path), Line(1, "")).text
    return max(",;\t|", key=first.count)


def parquet_rows(path: Path, tally: Tally, work: Work | None = None) -> Records:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise DataError(
            f"{path} is a Parquet file", do="pip install pyarrow, or convert it to .tsv or .jsonl"
        ) from None
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


def dataset_rows(name: str) -> Iterable[Mapping[str, Any]]:
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
