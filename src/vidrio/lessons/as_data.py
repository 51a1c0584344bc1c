"""What a lesson computed: by name for its page, and as JSON for programs and plots."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any

from vidrio.glass.numbers.trace import Trace
from vidrio.model import json_text as written


class Measured(SimpleNamespace):
    """What an experiment measured, by name; `page` has what its page names besides, and JSON does not."""

    def __init__(self, page: Mapping[str, Any] | None = None, /, **measured: Any) -> None:
        super().__init__(**measured)
        self.page = page or {}


def json_text(data: Any) -> str:
    return written.json_text(_runs_as_numbers(data), indent=1)


def _runs_as_numbers(value: Any) -> Any:
    """A run, wherever it is in the data, as its numbers by address; records as objects."""
    if isinstance(value, Trace):
        return value.values
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _runs_as_numbers(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Measured):
        return {name: _runs_as_numbers(part) for name, part in vars(value).items() if name != "page"}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):  # a named tuple: JSON would drop the names
        return _runs_as_numbers(value._asdict())
    if isinstance(value, Mapping):
        return {key: _runs_as_numbers(part) for key, part in value.items()}
    return [_runs_as_numbers(part) for part in value] if isinstance(value, list | tuple) else value
