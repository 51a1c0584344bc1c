"""Which columns of a table are the source and the target, where nobody says so.

What was recognised is always told in words, so that a wrong guess can be seen and corrected with `--columns`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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


def of_rows(rows: Sequence[Sequence[str]], languages: tuple[str, str]) -> Layout | None:
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
    """Whether the first row of a CSV file names its columns: by the names that are expected, or usual ones."""
    cells = {cell.strip().lower() for cell in row}
    return set(map(str.lower, filter(None, expected))) & cells != set() or 2 * len(cells & set(_USUAL.split())) >= len(
        cells
    )


def of_names(record: Mapping[str, Any], languages: tuple[str, str]) -> Layout | None:
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


def given(columns: tuple[str, str], header: Sequence[str] | None) -> Layout | None:
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


def field(record: Any, name: Column) -> Any:
    """The value of a named field, in nested records too; None where there is none."""
    name = str(name)
    if not isinstance(record, Mapping):
        return None
    if name in record:
        return record[name]
    outer, _, inner = name.partition(".")
    return field(record.get(outer), inner) if inner else None


def _fields(record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and values, of records inside the record too."""
    found: list[tuple[str, Any]] = []
    for name, value in record.items():
        inner = value.items() if isinstance(value, Mapping) else None
        found += [(name, value)] if inner is None else [(f"{name}.{key}", text) for key, text in inner]
    return found


def _named(source: str, target: str) -> Layout:
    return Layout(source, target, True, f"source {source!r}, target {target!r}")


def _all(pattern: re.Pattern[str], cells: Sequence[str]) -> bool:
    return all(pattern.fullmatch(cell) for cell in cells)


def _few(cells: Sequence[str]) -> bool:
    """Few different values for so many rows: labels and not texts."""
    return len(set(cells)) <= min(_MOST_LABELS, max(1, len(cells) // 3))
