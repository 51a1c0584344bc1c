"""The languages that a server translates, directly or through others, and language detection."""

from collections import deque
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

NAMES = {
    **{"ar": "Arabic", "az": "Azerbaijani", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech"},
    **{"da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish"},
    **{"et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish"},
    **{"gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian"},
    **{"ja": "Japanese", "ko": "Korean", "ky": "Kyrgyz", "lt": "Lithuanian", "lv": "Latvian", "ms": "Malay"},
    **{"nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "pt-BR": "Portuguese (Brazil)"},
    **{"ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian"},
    **{"sv": "Swedish", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu"},
    **{"vi": "Vietnamese", "zh-Hans": "Chinese", "zh-Hant": "Chinese (traditional)"},
}
ENOUGH = 2_000  # characters from which a language is detected
# Words that people try first, too short for the detector.
GREETINGS = {"hola": "es", "hello": "en", "hallo": "de", "bonjour": "fr", "ciao": "it", "olá": "pt"}

Pair = tuple[str, str]


class Language(NamedTuple):
    code: str
    name: str
    targets: tuple[str, ...]  # sorted, including itself


def route(source: str, target: str, pairs: Sequence[Pair]) -> list[Pair] | None:
    """The shortest way from one language to another, as pairs; earlier models win ties. None if there is none."""
    ways: dict[str, list[Pair]] = {source: []}
    waiting = deque([source])
    while waiting:
        at = waiting.popleft()
        if at == target:
            return ways[at]
        for start, end in pairs:
            if start == at and end not in ways:
                ways[end] = [*ways[at], (start, end)]
                waiting.append(end)
    return None


def languages(pairs: Sequence[Pair]) -> list[Language]:
    """All source languages, or all target languages."""
    codes = list(dict.fromkeys(code for pair in pairs for code in pair))
    return [
        Language(code, NAMES.get(code, code), tuple(sorted(t for t in codes if route(code, t, pairs) is not None)))
        for code in codes
    ]


class Detected(NamedTuple):
    language: str
    confidence: float  # 0 to 100


class Detector:
    """Detects languages with py3langid; languages that it does not know come last. Threads may share one."""

    def __init__(self, codes: Sequence[str]) -> None:
        self._all = list(codes)
        self._codes = {code.partition("-")[0]: code for code in reversed(codes)}  # the library's name for pt-BR is pt

    def ranked(self, text: str) -> list[Detected]:
        """All languages, most probable first. A text without letters has confidence 0 in all."""
        found: dict[str, float] = {}
        greeting = self._codes.get(GREETINGS.get("".join(filter(str.isalpha, text[:ENOUGH])).casefold(), ""))
        if greeting is not None:
            found = {greeting: 100.0}
        elif any(map(str.isalpha, text[:ENOUGH])) and self._identifier is not None:
            # The spaces mark the start of the first word and the end of the last.
            ranked = self._identifier.rank(f" {text[:ENOUGH]} ")
            found = {self._codes[name]: round(100 * float(p), 1) for name, p in ranked}
        return [Detected(code, found.get(code, 0.0)) for code in (*found, *(c for c in self._all if c not in found))]

    @cached_property
    def _identifier(self) -> Any:
        """Loaded on first use, which takes most of a second."""
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = [short for short in self._codes if short in identifier.labels]
        if known:
            identifier.set_languages(known)
        return identifier if known else None
