"""What an experiment measured, by name: what a lesson's page names."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any


class Measured(SimpleNamespace):
    """What an experiment measured; `page` has what its page names besides."""

    def __init__(self, page: Mapping[str, Any] | None = None, /, **measured: Any) -> None:
        super().__init__(**(page or {}), **measured)
