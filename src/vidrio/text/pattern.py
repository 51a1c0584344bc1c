"""Regular expressions that are compiled when they are first used: it takes a while, and few texts need them all."""

import re
from typing import Any, cast


class _Pattern:
    """Has the methods of `re.Pattern`, each looked up once."""

    def __init__(self, expression: str, flags: int) -> None:
        self._expression, self._flags = expression, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._expression, self._flags), name)  # `re` keeps what it has compiled
        setattr(self, name, value)
        return value


def pattern(expression: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression."""
    return cast("re.Pattern[str]", _Pattern(expression, flags))
