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
    """Knows one language from the others that it is given; what it does not know comes last. Threads may share it."""

    def __init__(self, codes: Sequence[str]) -> None:
        self._codes, self._lock = list(codes), threading.Lock()

    def ranked(self, text: str) -> list[Detected]:
        """All languages, the likeliest first. A text without letters is in none: its confidence is 0."""
        if not any(map(str.isalpha, text[:ENOUGH])) or self._identifier is None:
            return [Detected(code, 0.0) for code in self._codes]
        ranked = [(self._code(name), float(p)) for name, p in self._identifier.rank(text[:ENOUGH])]
        found = [Detected(code, round(100 * p, 1)) for code, p in ranked]
        return found + [Detected(code, 0.0) for code in self._codes if code not in dict(ranked)]

    @cached_property
    def _identifier(self) -> Any:
        """Loaded when first asked for; it takes most of a second."""
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        with self._lock:
            identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
            known = [_short(code) for code in self._codes if _short(code) in identifier.labels]
            if not known:
                return None
            identifier.set_languages(known)
            return identifier

    def _code(self, short: str) -> str:
        return next(code for code in self._codes if _short(code) == short)


def _short(code: str) -> str:
    """pt-BR and zh-Hans are pt and zh to the library."""
    return code.partition("-")[0]
