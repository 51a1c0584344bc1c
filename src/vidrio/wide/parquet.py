"""Parts of a Parquet file: rows of its column `text`, which come back as a column more."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from vidrio.errors import DataError
from vidrio.model.json_text import json_text
from vidrio.wide.parts import Cut, File, Part

ROWS = 5_000  # in a part
COLUMN = "text"
BLOCK = 1 << 20  # bytes
ANSWERS = ("translation", "alternatives", "confidence")  # the columns more


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

    checksum = sha256()
    with file.source.system.open_input_stream(file.source.path, compression=None) as stream:
        while block := stream.read(BLOCK):
            checksum.update(block)
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


def join_rows(file: File, cut: Cut) -> int:
    """The file's own rows and row groups, with what was answered as columns more."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    kinds = dict(zip(ANSWERS, (pa.string(), pa.list_(pa.string()), pa.float64()), strict=True))
    with _opened(file) as opened, file.target.writing() as stream:
        groups: list[list[Part]] = [[] for _ in range(opened.num_row_groups)]
        for part in cut.parts:
            groups[part.group].append(part)
        writer = None
        for number, parts in enumerate(groups):
            table = opened.read_row_group(number)
            answers = [json.loads(line) for part in parts for line in file.answers(part).splitlines()]
            for name in (name for name in ANSWERS if answers and name in answers[0]):
                column = pa.array([answer[name] for answer in answers], kinds[name])
                at = table.schema.get_field_index(name)
                table = table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
            writer = writer or ParquetWriter(stream, table.schema)
            writer.write_table(table, max(1, table.num_rows))
        writer = writer or ParquetWriter(stream, opened.schema_arrow)
        writer.close()
    file.finish()
    return sum(part.lines for part in cut.parts)
