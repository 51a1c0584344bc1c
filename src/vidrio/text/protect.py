"""What must come through a translation whole: addresses, numbers, placeholders, tags, code, paths, emoji.

`spans` finds it, `came_through` says whether a translation has all of it and no more. A number may be written otherwise
on the way (1,234.5 is 1.234,5 in Spanish, €18.10 is 18,10 €) and counts by its digits; all else counts character for
character.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from vidrio.text.pattern import pattern

_TLDS = "com|org|net|edu|gov|mil|int|info|io|dev|app|ai|eu|uk|us|es|mx|ar|co|cl|pe|fr|de|it|pt|br|ch|nl|jp|cn|ru"
_FILES = (
    "py|js|ts|c|h|cpp|rs|go|java|rb|php|sh|html?|css|json|xml|ya?ml|toml|ini|cfg|csv|tsv|txt|md|rst|pdf|docx?|xlsx?|"
    "pptx?|odt|png|jpe?g|gif|svg|webp|mp[34]|wav|ogg|zip|gz|xz|zst|tar|exe|dll|so|log|po|ipynb|sql"
)
_QUOTES = '"“”«»`<>'
_MONEY = "€$£¥₹₽₩¢"
_CURRENCIES = {"€": "euro", "$": "d[oó]l+ar|peso", "£": "libra|pound", "¥": "yen|yuan"}  # $5 may become 5 dólares
_PICTURE = (
    "[\U0001f000-\U0001faff\u00a9\u00ae\u2100-\u214f\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299]"
)
_UNITS = "[kc]?m[²³]|km/h|km|cm|mm|kg|mg|ml|[kKMGT]B|[kMG]?Hz|kW|kWh"
_BBCODE = "b|i|u|s|url|img|quote|code|list|size|color|center|spoiler"
# Left to the model: 21st is XXI in one place and 21.º in another.
_ORDINAL = r"\.?(?:[ºª]|(?:st|nd|rd|th|er|r[oa]|d[oa]|t[oa]|m[oa]|v[oa]|n[oa])\b)"
_EMOJI = rf"{_PICTURE}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]*"

_STRING = r'"(?:[^"\\\n]|\\.){0,200}+"'
_FLAT = rf'\{{(?:{_STRING}|[^"{{}}\n]){{0,200}}+\}}'

# Signs without one of which no text has certain kinds; so most texts are not searched for most kinds.
_SIGNS = {
    "0": pattern(r"\d"),
    ".": pattern(r"\."),
    "-": pattern(r"[-+]"),
    ":": pattern(r":"),
    "(": pattern(r"\("),
    "%": pattern(r"[%$]"),
    "<": pattern("[`<>&{#@\\[/~\\\\_\u20e3]"),
    "☺": pattern("[\u00a9\u00ae\u2100-\U0010ffff]"),
    "\x1b": pattern("\x1b"),
}
# Kind, the signs of which it needs one, pattern. They are tried in this order at each place of the text. Each stops at
# white space or has a limit, so time grows with length.
_KINDS = (
    ("code", "\x1b", r"\x1b\[[\d;]{0,20}[A-Za-z]"),  # a terminal's colours
    ("code", "<", r"`[^`\n]{1,200}`"),
    ("url", "<", r"<(?:https?://|mailto:)[^\s<>]+>"),
    ("email", "<", r"<[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+>"),
    ("url", ":.", rf"(?:(?:https?|ftp|file)://|www\.)(?:[^\s(){_QUOTES}]|\([^\s(){_QUOTES}]*\))+(?<![.,;:!?…'’\]}}])"),
    ("email", "<", r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"),
    ("tag", "<", r"<!--(?:[^-]|-(?!->)){0,2000}-->|</?[A-Za-z][\w:.-]*(?:\s+[\w:@.-]+=[^<>]*)?\s*/?>"),
    ("tag", "<", rf"<[%?][^<>]{{0,200}}[%?]>|<[^\s<>]{{1,60}}>|\[/?(?:{_BBCODE})(?:=[^\[\]\s]{{1,200}})?\]"),
    ("tag", "<", r"&lt;/?[A-Za-z](?:[^&<>\s]|\s(?=[\w/])|&(?!gt;|lt;)){0,200}&gt;"),
    ("tag", "<", r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|\#[0-9]{1,7}|\#x[0-9A-Fa-f]{1,6});"),
    ("code", "<", rf'\{{\s?{_STRING}\s?:(?:{_STRING}|{_FLAT}|[^"{{}}\n]){{0,200}}+\}}'),  # JSON
    # {count, plural, one {# file} other {# files}} and {\an8} of subtitles
    ("placeholder", "<", r"\{\w{1,40},\s?(?:number|date|time|spellout|ordinal|duration)(?:,\s?[^{}\n]{1,60})?\}"),
    ("placeholder", "<", r"\{\w{1,40},\s?(?:plural|select|selectordinal),(?:[^{}]|\{[^{}]{0,200}\}){0,400}\}"),
    ("placeholder", "<", r"\{\\[^{}\n]{1,60}\}|(?<!\w)__[A-Z0-9_]{1,40}__(?!\w)"),
    ("placeholder", "<%", r"\#{2,3}\w{1,40}\#{2,3}|@@\w{1,40}@@|\$\$\w{1,40}\$\$|%%\w{1,40}%%"),
    ("placeholder", "<", r"\{{3}[^{}\n]{0,60}\}{3}|\{\{[^{}\n]{0,60}\}\}|[$\#%]\{[^{}\n]{1,60}\}"),
    ("placeholder", "<", r"\{[\w.:,!%<>^=+-]{0,40}\}|\[\[[^\[\]\n]{1,60}\]\]"),
    ("placeholder", "%", r"%\([\w.-]{1,60}\)[-+0\#]?\d{0,4}(?:\.\d{1,4})?[sdiufeEgGrxX]|%[A-Z_]{2,40}%"),
    ("placeholder", "%", r"(?<!\d)%(?:\d{1,2}\$)?[-+0\#]?\d{0,4}(?:\.\d{1,4})?l{0,2}[sdiufxXgcp@]"),
    ("placeholder", "%", r"(?<![\d%])%[aAbBcHIjmMpSUwWxXyYZ](?!\w)|\$[A-Za-z_]\w*|%%"),
    ("handle", "<", r"(?<![\w@/])@[A-Za-z_]\w+|(?<![\w\#&/])\#\w+"),
    ("emoji", "<", r"[0-9\#*]\ufe0f?\u20e3"),
    ("path", "<", r"(?<![\w/.:<])(?:~|\.{1,2})?/[\w@-][\w.@-]*(?:/[\w.@-]*)*(?<!\.)"),
    ("path", "<", r"(?<!\w)[A-Za-z]:\\[^\s\"<>|]+(?<![.,;:])"),
    ("path", ".", rf"(?<![\w.@-])[\w-]+(?:\.[\w-]+)*\.(?:{_FILES})(?![\w@])"),
    (
        "domain",
        ".",
        rf"(?<![\w.@-])[A-Za-z0-9][\w-]*(?:\.[\w-]+)*\.(?:{_TLDS})(?![\w@-])(?:/[^\s{_QUOTES}]*(?<![.,;:!?]))?",
    ),
    ("code", "<", r"[A-Z]{1,4}(?:&[A-Z]{1,4})+(?!\w)"),  # R&D
    ("code", "(☺", r"(?:\([cC]\)|©)\s?\d{4}(?:[-–]\d{4})?(?![\w.,-]*\d)"),  # whose year it is
    ("code", "(", r"\((?:[cC](?=\)\s?(?:\d|[A-Z]))|[rR]|tm|TM)\)"),
    ("code", "0", r"(?<![\w.,/-])\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?(?!\w)"),
    # --option, Ctrl+C, max_length, 550e8400-e29b-41d4-a716-446655440000, 4d94054, AB-9X7Z-QQ12, 42B
    ("code", "-", r"(?<![\w-])--[A-Za-z][\w-]*+|(?<!\w)(?:Ctrl|Alt|Shift|Cmd)(?:[+-]\w+)+"),
    ("code", "<", r"(?<!\w)_*[^\W_]+(?:_+[^\W_]+)+(?!\w)"),
    ("code", "-", r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])"),
    ("code", "0", r"(?<![\w-])(?=\d{0,40}[a-f])(?=[a-f]{0,40}\d)[0-9a-f]{7,40}(?![\w-])"),
    ("code", "-", r"(?<![\w-])(?=[0-9-]{0,40}[A-Z])(?=[A-Z-]{0,40}\d)[A-Z0-9]{2,20}(?:-[A-Z0-9]{2,20}){2,8}(?![\w-])"),
    ("code", "0", r"0[xX][0-9A-Fa-f]{1,32}(?!\w)"),
    ("code", "0", r"(?<![\w.,-])\d{1,6}(?![AP]M\b)[A-Z]{1,2}(?!\w)"),
    (
        "date",
        "0",
        r"(?<![\w.,/-])(?:\d{4}-\d\d?-\d\d?(?:T[\d:.]+Z?)?|\d\d?(?:/\d\d?/|\.\d\d?\.|-\d\d?-)\d{2,4})(?![\w/]|[.,-]\d)",
    ),
    ("time", ":", r"(?<![\w:])\d\d?:\d\d(?::\d\d)?(?![\w:])"),
    (
        "version",
        "0",  # but 1.234.567 is a number in Spanish
        r"(?<![\w.])(?:[vV]\d+(?:\.\d+)*|(?!\d{1,3}(?:\.\d{3}){2}(?!\.?\d))\d+(?:\.\d+){2,})"
        r"(?:[-+][A-Za-z][\w.]*)?(?!\w)(?<!\.)",
    ),
    (
        "number",
        "0",
        rf"(?<![\w.])(?:[{_MONEY}]\s?)?[-+−]?(?:\d{{1,3}}(?:[.,'’\u00a0\u202f ]\d{{3}})+(?!\d)|\d++)(?!{_ORDINAL})"
        rf"(?:[.,]\d+)?(?:\s?(?:°[CF](?!\w)|[{_MONEY}%‰°](?!%)|(?:{_UNITS})(?!\w)))?",
    ),
    ("emoji", "☺", rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}(?:\u200d{_EMOJI})*"),
)
# Within a word only these may begin; so most places of a text are passed over without a try.
_BEGINS = r"(?:(?<!\w)|(?!\w)|(?=https?:|ftp:|file:|www\.|[0-9]\ufe0f?\u20e3|[\u2460-\u24ff\u2776-\u2793]))"
# One of these must stand in a text, or nothing is there to be found. Most sentences have none, and this is quick.
_SIGN = pattern(
    "[\\d\x1b`@<>&{}$#%\\[/~\\\\_+\u00a9\u00ae\u2049-\U0010ffff]|[.](?<=\\w[.])(?=\\w)|-[-A-Z]|[(](?:[cCrR]|tm|TM)[)]"
)
_TRAILING = pattern(r"(?:[.]\d+)+")
_UNIT = pattern(rf"\d\s?({_UNITS})(?!\w)")
_BY_DIGITS = ("number", "date", "time", "version")


class Span(NamedTuple):
    """A place in a text, and what kind of thing stands there."""

    start: int
    end: int
    kind: str


class Protected(NamedTuple):
    """A text, and what of it must come through whole."""

    text: str
    spans: tuple[Span, ...] = ()

    def part(self, start: int, end: int) -> "Protected":
        """A part of it; what stands at its edges may then be read otherwise."""
        return protected(self.text[start:end])


def protected(text: str) -> Protected:
    """A text with its spans."""
    return Protected(text, spans(text))


def spans(text: str) -> tuple[Span, ...]:
    """Everything in a text that must come through whole, in order; nothing overlaps."""
    if not _SIGN.search(text):
        return ()
    search = _pattern("".join([sign for sign, there in _SIGNS.items() if there.search(text)]))
    return tuple([Span(*match.span(), str(match.lastgroup).partition("_")[0]) for match in search.finditer(text)])


@lru_cache
def _pattern(signs: str) -> re.Pattern[str]:
    """What finds all kinds that a text with these signs can hold."""
    kinds = [f"(?P<{kind}_{i}>{pattern})" for i, (kind, needs, pattern) in enumerate(_KINDS) if set(needs) & set(signs)]
    return re.compile(f"{_BEGINS}(?:{'|'.join(kinds) or '(?!)'})")


def touches(text: str, span: Span) -> bool:
    """Whether a letter or digit stands directly before or after."""
    return text[span.start - 1 : span.start].isalnum() or text[span.end : span.end + 1].isalnum()


def is_free(start: int, end: int, taken: Sequence[Span]) -> bool:
    """Whether no other place reaches into this one."""
    return not any(span.start < end and start < span.end for span in taken)


def came_through(source: Protected, translation: str) -> bool:
    """Whether all that is protected in a sentence is in its translation, as often, and words where it has some."""
    written = protected(translation)
    if has_words(source) and not has_words(written):
        return False
    things = {source.text[start:end] for start, end, kind in source.spans if kind not in _BY_DIGITS}
    things |= {translation[start:end] for start, end, kind in written.spans if kind == "handle"}  # 207 became #207
    return all(translation.count(thing) == source.text.count(thing) for thing in things) and (
        _same_numbers(source, written) and _same_measures(source, written)
    )


def has_words(text: Protected) -> bool:
    """Whether anything but what is protected has letters."""
    return any(map(str.isalpha, _unprotected(text)))


def _unprotected(text: Protected) -> str:
    ends, starts = [0, *(span.end for span in text.spans)], [*(span.start for span in text.spans), len(text.text)]
    return " ".join(text.text[end:start] for end, start in zip(ends, starts, strict=True))


def _same_numbers(source: Protected, written: Protected) -> bool:
    """Whether a translation has the numbers of the source, and no others; where that has none at all, one in the
    translation may have been a word."""
    wanted = Counter[str](_key(number, kind) for number, kind in _numbers(source))
    known = wanted | Counter[str](re.findall(r"\d+", _unprotected(source)))  # 21 is known from 21st
    keys = [{_key(number, kind) for kind in ("number", "date")} for number, _ in _numbers(written)]
    found = Counter[str](min(one & known.keys() or one) for one in keys)
    return not wanted or not (wanted - found or found - known)


def _same_measures(source: Protected, written: Protected) -> bool:
    """Whether the units of the source are in a translation, and its currencies, as signs or as words."""
    numbers = [source.text[start:end] for start, end, kind in source.spans if kind == "number"]
    units = Counter(unit for number in numbers for unit in _UNIT.findall(number))
    signs = Counter(sign for number in numbers for sign in number if sign in _MONEY)
    words = {sign: re.findall(_CURRENCIES.get(sign, "(?!)"), written.text, re.IGNORECASE) for sign in signs}
    return not units - Counter[str](_UNIT.findall(written.text)) and all(
        count <= written.text.count(sign) + len(words[sign]) for sign, count in signs.items()
    )


def _numbers(text: Protected) -> list[tuple[str, str]]:
    """What stands in a text as digits, and its kind; with digits that trail behind: $18.10.10."""
    ends = ((start, _TRAILING.match(text.text, end), end, kind) for start, end, kind in text.spans)
    return [
        (text.text[start : trailing.end() if trailing else end], kind)
        for start, trailing, end, kind in ends
        if kind in _BY_DIGITS
    ]


def _key(text: str, kind: str) -> str:
    """What a number is known by, however it is written. 9:30 may become 9.30, but not 930; 01.02.2023 may become
    01/02/2023. 1,234.5 and 1.234,5 are 1234.5, and not 12345: what stands after the last sign is a fraction, unless it
    could be thousands."""
    groups, signs = re.findall(r"\d+", text), re.findall(r"(?<=\d)\D(?=\d)", text)
    alike = len(set(signs)) == 1
    if kind != "number":
        return " ".join(groups) if len(set(signs)) < 2 and not (len(groups) > 2 and "," in signs) else text
    *first, last = groups
    if len(signs) < len(first):  # 1.200 $.000
        return text
    if (alike and len(signs) > 1 and len(last) != 3) or len(set(signs[:-1])) > 1:
        return text  # 1.250.00 is no number, nor is 1,25.0.00
    thousands = not first or (len(last) == 3 and alike)
    return "".join(first) + ("" if thousands else ".") + last
