"""Read and write strict JSON, without NaN, infinities or lone surrogates."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def json_text(data: Any, *, indent: int | None = None) -> str:
    """Serialise `data` as JSON. Only lone surrogates (\\ud83d) are escaped."""
    try:
        text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
    except (TypeError, ValueError):  # rarely needed: arrays, dataclasses or NaN
        text = json.dumps(plain(data), ensure_ascii=False, indent=indent, allow_nan=False)
    return text.encode(errors="backslashreplace").decode()


def plain(value: Any) -> Any:
    """Convert arrays to lists, dataclasses to objects, and NaN and infinities to strings, recursively."""
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return plain(value.tolist()) if hasattr(value, "tolist") else value  # NumPy arrays and scalars


def json_data(text: str | bytes) -> Any:
    """Parse untrusted JSON. Raises ValueError if it is not strict JSON, or nested too deeply."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
        text.encode()  # raises UnicodeEncodeError, a ValueError, for a lone surrogate
        data = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if "\\u" in text:  # an escape may also be a lone surrogate
            json.dumps(data, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return data


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number
