"""Parts of a Parquet file: rows of its column `text`, which come back with columns more."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from vidrio.errors import DataError
from vidrio.model.json_text import json_text
from vidrio.wide.parts import File, Part

ROWS = 5_000  # in a part
COLUMN = "text"


@contextmanager
def _opened(file: File) -> Iterator[Any]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with file.source.system.open_input_file(file.source.path) as stream:
            yield ParquetFile(stream)
    except ArrowException as error:
        raise DataError(f"{file.source.name} is damaged, or not a Parquet file", found=str(error)) from None


def cut_rows(file: File) -> list[Part]:
    """Parts of so many rows, none of them in two row groups."""
    parts: list[Part] = []
    first, size = 1, file.source.size() or 0
    with _opened(file) as opened:
        schema = opened.schema_arrow
        if COLUMN not in schema.names or str(schema.field(COLUMN).type) not in ("string", "large_string"):
            found = ", ".join(f"{field.name} ({field.type})" for field in schema)
            raise DataError(f"{file.source.name} has no column {COLUMN!r} of texts", found=found, do="rename a column")
        for group in range(opened.num_row_groups):
            rows = opened.metadata.row_group(group).num_rows
            for start in range(0, rows, ROWS):
                count = min(ROWS, rows - start)
                share = size * count // opened.metadata.num_rows
                parts.append(Part(len(parts), start, share, first, count, group))
                first += count
    return parts


def texts_of(file: File, part: Part) -> Sequence[bytes]:
    """The texts of some rows, each as a JSON object in a line."""
    with _opened(file) as opened:
        table = opened.read_row_group(part.group, columns=[COLUMN])
    texts = table.column(COLUMN).slice(part.start, part.lines).to_pylist()
    return [json_text({"text": text}).encode() for text in texts]


def join_rows(file: File, parts: Sequence[Part]) -> None:
    """The file's own rows and row groups, with the fields of the answers as columns more."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    kinds = {"translation": pa.string(), "confidence": pa.float64(), "written": pa.string()}
    kinds |= {"class": pa.string(), "probability": pa.float64()}
    with _opened(file) as opened, file.target.writing() as stream:
        groups: dict[int, list[Part]] = {number: [] for number in range(opened.num_row_groups)}
        for part in parts:
            groups[part.group].append(part)
        there = {name for part in parts[:1] for line in file.answers(part).splitlines() for name in json.loads(line)}
        writer = None
        for number, mine in groups.items():
            table = opened.read_row_group(number)
            answers = [json.loads(line) for part in mine for line in file.answers(part).splitlines()]
            for name, kind in kinds.items():
                if name not in there:
                    continue
                column = pa.array([answer.get(name) for answer in answers], kind)
                at = table.schema.get_field_index(name)
                table = table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
            writer = writer or ParquetWriter(stream, table.schema)
            writer.write_table(table, max(1, table.num_rows))
        (writer or ParquetWriter(stream, opened.schema_arrow)).close()
