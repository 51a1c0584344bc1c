"""Which of a server's languages a text is in, by py3langid."""

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

ENOUGH = 2_000  # characters that are looked at


class Detected(NamedTuple):
    language: str
    confidence: float  # 0 to 100


class Detector:
    """Tells these languages apart; those that the library does not know come last. Threads may share it."""

    def __init__(self, codes: Sequence[str]) -> None:
        self._codes, self._lock = {code.partition("-")[0]: code for code in reversed(codes)}, threading.Lock()
        self._all = list(codes)  # pt-BR and zh-Hans are pt and zh to the library

    def ranked(self, text: str) -> list[Detected]:
        """All languages, the likeliest first. A text without letters is in none: its confidence is 0."""
        found: dict[str, float] = {}
        if any(map(str.isalpha, text[:ENOUGH])) and self._identifier is not None:
            found = {self._codes[name]: round(100 * float(p), 1) for name, p in self._identifier.rank(text[:ENOUGH])}
        return [Detected(code, found.get(code, 0.0)) for code in (*found, *(c for c in self._all if c not in found))]

    @cached_property
    def _identifier(self) -> Any:
        """Loaded when first asked for; it takes most of a second."""
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        with self._lock:
            identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
            known = [short for short in self._codes if short in identifier.labels]
            if known:
                identifier.set_languages(known)
            return identifier if known else None
