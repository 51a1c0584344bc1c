"""JSON that every reader of JSON can read: it has no number for NaN and infinities, and no halves of characters."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def json_text(data: Any, *, indent: int | None = None) -> str:
    """In UTF-8's own letters; half a character (\\ud83d), which a user's text may hold, is escaped."""
    try:
        text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    except (TypeError, ValueError):  # arrays, records, NaN: rare, so that all else need not be copied
        text = json.dumps(plain(data), ensure_ascii=False, indent=indent, allow_nan=False)
    return text.encode(errors="backslashreplace").decode()


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


def json_data(text: str | bytes) -> Any:
    """The data of a text that anybody may have written; ValueError if it is not JSON (Python's own reader takes more)
    or too deep for Python."""
    try:
        data = json.loads(text)
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return data
