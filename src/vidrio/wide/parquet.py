"""Parts of a Parquet file: rows of its column `text`, which come back with columns more."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import file_digest
from typing import Any

from vidrio.errors import DataError
from vidrio.model.json_text import json_text
from vidrio.wide.parts import Cut, File, Part

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
        raise DataError(f"{file.source.name} is damaged, or no Parquet file", found=str(error)) from None


def cut_rows(file: File) -> Cut:
    """Parts of so many rows, none of them in two row groups."""
    import pyarrow.types

    with file.source.system.open_input_stream(file.source.path, compression=None) as stream:
        checksum = file_digest(stream, "sha256")
    parts: list[Part] = []
    first, size = 1, file.source.size() or 0
    with _opened(file) as opened:
        schema = opened.schema_arrow
        kind = schema.field(COLUMN).type if COLUMN in schema.names else None
        if kind is None or not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            found = ", ".join(f"{field.name} ({field.type})" for field in schema)
            raise DataError(f"{file.source.name} has no column {COLUMN!r} of texts", found=found, do="rename a column")
        for group in range(opened.num_row_groups):
            rows = opened.metadata.row_group(group).num_rows
            for start in range(0, rows, ROWS):
                count = min(ROWS, rows - start)
                share = size * count // opened.metadata.num_rows
                parts.append(Part(len(parts), start, share, first, count, group))
                first += count
    return Cut(parts, sum(part.bytes for part in parts), checksum.hexdigest())


def texts_of(file: File, part: Part) -> Sequence[bytes]:
    """The texts of some rows, each as a JSON object in a line."""
    with _opened(file) as opened:
        table = opened.read_row_group(part.group, columns=[COLUMN])
    texts = table.column(COLUMN).slice(part.start, part.lines).to_pylist()
    return [json_text({"text": text}).encode() for text in texts]


def kinds_of(columns: Sequence[str]) -> dict[str, Any]:
    """What columns of answers hold."""
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    written = pa.struct([("written", text), ("log_prob", number), ("score", number)])
    kinds = {
        "translation": text,
        "confidence": number,
        "class": text,
        "probability": number,
        "classes": pa.map_(text, number),
        "written": text,
        "alternatives": pa.list_(written if "written" in columns else text),
    }
    return {name: kinds[name] for name in columns}


def join_rows(file: File, cut: Cut, columns: Sequence[str]) -> int:
    """The file's own rows and row groups, with these columns more."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    with _opened(file) as opened, file.target.writing() as stream:
        groups: list[list[Part]] = [[] for _ in range(opened.num_row_groups)]
        for part in cut.parts:
            groups[part.group].append(part)
        writer = None
        for number, parts in enumerate(groups):
            table = opened.read_row_group(number)
            answers = [json.loads(line) for part in parts for line in file.answers(part).splitlines()]
            for name, kind in kinds_of(columns).items():
                column = pa.array([answer.get(name) for answer in answers], kind)
                at = table.schema.get_field_index(name)
                table = table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
            writer = writer or ParquetWriter(stream, table.schema)
            writer.write_table(table, max(1, table.num_rows))
        writer = writer or ParquetWriter(stream, opened.schema_arrow)
        writer.close()
    file.finish()
    return sum(part.lines for part in cut.parts)
