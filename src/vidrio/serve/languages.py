"""List the languages that the server can translate, directly or via others, and detect the language of a text."""

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
ENOUGH = 2_000  # the number of characters used to detect a language
# Words that users often try first, but that are too short for the detector.
GREETINGS = {"hola": "es", "hello": "en", "hallo": "de", "bonjour": "fr", "ciao": "it", "olá": "pt"}

Pair = tuple[str, str]


class Language(NamedTuple):
    code: str
    name: str
    targets: tuple[str, ...]  # the codes of all targets, sorted, including the language itself


def route(source: str, target: str, pairs: Sequence[Pair]) -> list[Pair] | None:
    """Return the shortest chain of pairs from source to target, or None. In a tie, earlier pairs win."""
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
    """Return all languages that are the source or the target of a pair."""
    codes = list(dict.fromkeys(code for pair in pairs for code in pair))
    return [
        Language(code, NAMES.get(code, code), tuple(sorted(t for t in codes if route(code, t, pairs) is not None)))
        for code in codes
    ]


class Detected(NamedTuple):
    language: str
    confidence: float  # 0 to 100


class Detector:
    """Detects languages with py3langid. Threads can share a detector."""

    def __init__(self, codes: Sequence[str]) -> None:
        self._all = list(codes)
        self._codes = {code.partition("-")[0]: code for code in reversed(codes)}  # the library uses pt for pt-BR

    def ranked(self, text: str) -> list[Detected]:
        """Return all languages, most probable first, followed by languages unknown to the library. If the text has no
        letters, every confidence is 0."""
        found: dict[str, float] = {}
        greeting = self._codes.get(GREETINGS.get("".join(filter(str.isalpha, text[:ENOUGH])).casefold(), ""))
        if greeting is not None:
            found = {greeting: 100.0}
        elif any(map(str.isalpha, text[:ENOUGH])) and self._identifier is not None:
            # The spaces mark the start of the first word and the end of the last word.
            ranked = self._identifier.rank(f" {text[:ENOUGH]} ")
            found = {self._codes[name]: round(100 * float(p), 1) for name, p in ranked}
        return [Detected(code, found.get(code, 0.0)) for code in (*found, *(c for c in self._all if c not in found))]

    @cached_property
    def _identifier(self) -> Any:
        """The library's detector. Loading it takes most of a second."""
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = [short for short in self._codes if short in identifier.labels]
        if known:
            identifier.set_languages(known)
            identifier._full_model = None  # the tables of all other languages, 27 MB, for choosing others later
        return identifier if known else None
