"""Which languages a server translates between, directly or through others."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

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
ALIASES = {"zh": "zh-Hans", "zt": "zh-Hant", "pb": "pt-BR"}

Pair = tuple[str, str]


class Language(NamedTuple):
    code: str
    name: str
    targets: tuple[str, ...]  # sorted, itself among them


def known(code: str, codes: Sequence[str]) -> str:
    """The code by which a server knows a language, or the one that was given."""
    if code in codes:
        return code
    others = [ALIASES.get(code, code), *(short for short, long in ALIASES.items() if long == code)]
    return next((other for other in others if other in codes), code)


def route(source: str, target: str, pairs: Sequence[Pair]) -> list[Pair] | None:
    """The pairs to go through, as few as possible; those that are named first come first. None: there is no way."""
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
    """Every language that can be translated from, or to."""
    codes = list(dict.fromkeys(code for pair in pairs for code in pair))
    return [
        Language(code, NAMES.get(code, code), tuple(sorted(t for t in codes if route(code, t, pairs) is not None)))
        for code in codes
    ]
