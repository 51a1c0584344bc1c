"""Data as JSON that every reader of JSON can read: it has no number for NaN and infinities, so words stand for them."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def json_text(data: Any, *, indent: int | None = None) -> str:
    """In UTF-8's own letters where that can be: half a character (\\ud83d), which a field may hold, is escaped."""
    try:
        text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    except (TypeError, ValueError):  # arrays, records, NaN: rare, so that all else need not be copied
        text = json.dumps(plain(data), ensure_ascii=False, indent=indent, allow_nan=False)
    return text if text.isascii() or encodable(text) else json.dumps(plain(data), indent=indent, allow_nan=False)


def plain(value: Any) -> Any:
    """What JSON holds: arrays as lists, records as objects, "NaN", "inf" and "-inf" as words, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return plain(value.tolist()) if hasattr(value, "tolist") else value  # NumPy's arrays and numbers


def encodable(text: str) -> bool:
    """Whether it holds whole characters only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
