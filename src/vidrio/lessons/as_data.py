"""What a lesson computed, as JSON, for programs and plots."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from vidrio.glass.numbers.trace import Trace


def json_text(data: Any) -> str:
    return json.dumps(plain(data), ensure_ascii=False, indent=1, allow_nan=False)


def plain(value: Any) -> Any:
    """Arrays as lists, records as objects, a run as its numbers by address. JSON has no NaN and no ∞: those as text."""
    if isinstance(value, Trace):
        return plain(value.values)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
