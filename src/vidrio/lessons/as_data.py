"""What a lesson computed: by name for its page, and as JSON for programs and plots."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from vidrio.glass.numbers.trace import Trace
from vidrio.model import json_text as written


class Measured(SimpleNamespace):
    """What an experiment measured, by name; `page` has what its page names besides, and JSON does not."""

    def __init__(self, page: Mapping[str, Any] | None = None, /, **measured: Any) -> None:
        super().__init__(**(page or {}), **measured)
        self._measured = measured


def json_text(data: Any) -> str:
    return written.json_text(_runs_as_numbers(data), indent=1)


def _runs_as_numbers(value: Any) -> Any:
    """A run, wherever it is in the data, as its numbers by address; what has names as an object."""
    if isinstance(value, Trace):
        return value.values
    if isinstance(value, Measured):
        value = value._measured
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):  # a named tuple: JSON would drop the names
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _runs_as_numbers(part) for key, part in value.items()}
    return [_runs_as_numbers(part) for part in value] if isinstance(value, list | tuple) else value
