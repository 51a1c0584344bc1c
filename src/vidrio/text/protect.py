"""Find the spans that a translation must preserve: addresses, numbers, placeholders, tags, code, paths and emoji.

account.py checks that a translation contains the same spans. A number may be written differently (1,234.5 is 1.234,5 in
Spanish, and €18.10 is 18,10 €), so numbers are compared by their digits. All other spans are compared character by
character.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_ENDINGS = (  # endings of domain names and file names
    "com|org|net|edu|gov|mil|int|info|io|dev|app|ai|eu|uk|us|es|mx|ar|co|cl|pe|fr|de|it|pt|br|ch|nl|jp|cn|ru|"
    "py|js|ts|c|h|cpp|rs|go|java|rb|php|sh|html?|css|json|xml|ya?ml|toml|ini|cfg|csv|tsv|txt|md|rst|pdf|docx?|xlsx?|"
    "pptx?|odt|png|jpe?g|gif|svg|webp|mp[34]|wav|ogg|zip|gz|xz|zst|tar|exe|dll|so|log|po|ipynb|sql"
)
_QUOTES = '"“”«»`<>'
MONEY = "€$£¥₹₽₩¢"
UNITS = "[kc]?m[²³]|km/h|km|cm|mm|kg|mg|ml|[kKMGT]B|[kMG]?Hz|kW|kWh"
# Ordinals are left to the model: the translation of 21st may be XXI or 21.º.
_ORDINAL = r"\.?(?:[ºª]|(?:st|nd|rd|th|er|r[oa]|d[oa]|t[oa]|m[oa]|v[oa]|n[oa])\b)"
_PICTURE = (
    "[\U0001f000-\U0001faff\u00a9\u00ae\u2100-\u214f\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299]"
)
_EMOJI = rf"{_PICTURE}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]*"

# Kinds and their patterns, tried in this order at each position. Each pattern has a maximum length or ends at white
# space, < or >, so the search takes linear time.
_KINDS = (
    ("code", r"`[^`\n]{1,200}`"),
    ("url", rf"(?:(?:https?|ftp|file)://|www\.)(?:[^\s(){_QUOTES}]|\([^\s(){_QUOTES}]*\))+(?<![.,;:!?…'’\]}}])"),
    ("email", r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"),
    ("tag", r"<!--(?:[^-]|-(?!->)){0,2000}-->|</?[A-Za-z][\w:.-]*(?:\s+[\w:@.-]+=[^<>]*)?\s*/?>"),
    (
        "tag",
        r"<[%?][^<>]{0,200}[%?]>|<[^\s<>]{1,60}>|\[/?(?:b|i|u|s|url|img|quote|code|list|size|color)(?:=[^]\s]+)?\]",
    ),
    ("tag", r"&lt;/?[A-Za-z](?:[^&<>\s]|\s(?=[\w/])|&(?!gt;|lt;)){0,200}&gt;|&(?:[A-Za-z]\w{1,30}|\#\w{1,7});"),
    # {name}, {{ name }}, ${name}, {"of": "JSON"}, {count, plural, one {# file} other {# files}}
    (
        "placeholder",
        r"[$\#%]?\{(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]{0,200}+\}){0,200}+\}){0,200}+\}|\[\[[^][\n]{1,60}\]\]",
    ),
    ("placeholder", r"(?<!\w)__[A-Z0-9_]{1,40}__(?!\w)|(?P<edge>\#{2,3}|@@|\$\$|%%)\w{1,40}(?P=edge)"),
    # %s, %1$s, %(count)d, %.2f, %A %B, %PATH%, $HOME
    ("placeholder", r"%[A-Z_]{2,40}%|%\([\w.-]{1,60}\)[-+0\#]?\d{0,4}(?:\.\d{1,4})?[sdiufeEgGrxX]"),
    ("placeholder", r"(?<!\d)%(?:\d{1,2}\$)?[-+0\#]?\d{0,4}(?:\.\d{1,4})?l{0,2}(?:[sdiufxXgcp@]|[A-Za-z](?!\w))"),
    ("placeholder", r"\$[A-Za-z_]\w*|%%"),
    ("handle", r"(?<![\w@/])@[A-Za-z_]\w+|(?<![\w\#&/])\#\w+"),
    ("emoji", rf"(?:[0-9\#*]\ufe0f?\u20e3|{_EMOJI}\u200d?)+"),
    ("path", r"(?<![\w/.:<])(?:~|\.{1,2})?/[\w@-][\w.@-]*(?:/[\w.@-]*)*(?<!\.)"),
    ("path", r"(?<!\w)[A-Za-z]:\\[^\s\"<>|]+(?<![.,;:])"),
    ("domain", rf"(?<![\w.@-])[\w-]+(?:\.[\w-]+)*\.(?:{_ENDINGS})(?![\w@-])(?:/[^\s{_QUOTES}]*(?<![.,;:!?]))?"),
    # --option, Ctrl+C, max_length, 550e8400-e29b-41d4-a716-446655440000, 4d94054, AB-9X7Z-QQ12, BA2490, 42B
    ("code", r"(?<![\w-])--[A-Za-z][\w-]*+|(?<!\w)(?:Ctrl|Alt|Shift|Cmd)(?:[+-]\w+)+"),
    ("code", r"(?<!\w)_*[^\W_]+(?:_+[^\W_]+)+(?!\w)"),
    ("code", r"(?<![\w-])(?=[\d-]{0,40}[a-f])(?=[a-f-]{0,40}\d)[0-9a-f]{7,40}(?:-[0-9a-f]{4,12})*(?![\w-])"),
    ("code", r"(?<![\w-])(?=[0-9-]{0,40}[A-Z])(?=[A-Z-]{0,40}\d)[A-Z0-9]{2,20}(?:-[A-Z0-9]{2,20}){2,8}(?![\w-])"),
    ("code", r"(?<![\w-])[A-Z]{1,4}\d{2,6}(?![\w-])"),
    ("code", r"(?<![\w.,-])\d{1,6}(?![AP]M\b)[A-Z]{1,2}(?!\w)"),
    (
        "date",
        r"(?<![\w.,/-])(?:\d{4}-\d\d?-\d\d?(?:T[\d:.]+Z?)?|\d\d?(?:/\d\d?/|\.\d\d?\.|-\d\d?-)\d{2,4})(?![\w/]|[.,-]\d)",
    ),
    ("time", r"(?<![\w:])\d\d?:\d\d(?::\d\d)?(?![\w:])"),
    (
        "version",  # but 1.234.567 is a number in Spanish
        r"(?<![\w.])(?:[vV]\d+(?:\.\d+)*|(?!\d{1,3}(?:\.\d{3}){2}(?!\.?\d))\d+(?:\.\d+){2,})"
        r"(?:[-+][A-Za-z][\w.]*)?(?!\w)(?<!\.)",
    ),
    (
        "number",
        rf"(?<![\w.])(?:[{MONEY}]\s?)?[-+−]?(?:\d{{1,3}}(?:[.,'’\u00a0\u202f ]\d{{3}})+(?!\d)|\d++)(?!{_ORDINAL})"
        rf"(?:[.,]\d+)?(?:\s?±\s?\d+(?:[.,]\d+)?)?(?:\s?(?:°[CF](?!\w)|[{MONEY}%‰°](?!%)|(?:{UNITS})(?!\w)))?(?:\.\d+)*",
    ),
)
# Within a word, a span can begin only with one of these, so most positions are skipped.
_BEGINS = r"(?:(?<!\w)|(?!\w)|(?=https?:|ftp:|file:|www\.|[0-9]\ufe0f?\u20e3|[\u2460-\u24ff\u2776-\u2793]))"
# A text without any of these has no protected spans. For most sentences, this quick test is enough.
_SIGN = "[\\d`@<>&{$#%\\[/~\\\\_+\u00a9\u00ae\u20e3\u2100-\U0010ffff]|[.](?<=\\w[.])(?=\\w)|-[-A-Z]"
LONG = 1_000  # characters; the spans of longer texts are not cached
# A number with thousands separators, up to its fraction: 1,234 in 1,234.5.
_THOUSANDS = r"(?<!\d)\d{1,3}([.,'’\u00a0\u202f ])\d{3}(?:\1\d{3})*(?!\d)"


class Span(NamedTuple):
    """A span of a text and its kind."""

    start: int
    end: int
    kind: str


def spans(text: str) -> tuple[Span, ...]:
    """Return all protected spans of a text, in order and without overlap."""
    return _remembered(text) if len(text) <= LONG else _found(text)


def _found(text: str) -> tuple[Span, ...]:
    if not re.search(_SIGN, text):
        return ()
    return tuple([Span(*match.span(), str(match.lastgroup).partition("_")[0]) for match in _pattern().finditer(text)])


_remembered = lru_cache(4096)(_found)  # several functions need the spans of the same sentence


@lru_cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern for all kinds, which is compiled on first use because compiling it is slow."""
    kinds = (f"(?P<{kind}_{n}>{expression})" for n, (kind, expression) in enumerate(_KINDS))
    return re.compile(f"{_BEGINS}(?:{'|'.join(kinds)})")


def gaps(start: int, end: int, places: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield the parts from start to end that lie outside these sorted spans."""
    for place in places:
        yield start, place.start
        start = place.end
    yield start, end


def touches(text: str, span: Span) -> bool:
    """Return whether a letter or digit directly precedes or follows a span."""
    return text[span.start - 1 : span.start].isalnum() or text[span.end : span.end + 1].isalnum()


def is_free(start: int, end: int, taken: Sequence[Span]) -> bool:
    """Return whether the span from start to end does not overlap any taken span."""
    return not any(span.start < end and start < span.end for span in taken)


def reaches(places: Sequence[Span], start: int, end: int) -> bool:
    """Return whether one of these sorted spans overlaps the span from start to end."""
    before = bisect_left(places, (end,))
    return before > 0 and places[before - 1].end > start


def number_key(number: str) -> str:
    """Return a key for a number, whatever its notation: its groups of digits, without thousands separators. 1,234.5 and
    1.234,5 become 1234.5, not 12345; 9:30 and 9.30 have the same key, and so do 01.02.2023 and 01/02/2023. A number
    that mixes separators (1.250.00, 01,02.2023) is its own key."""
    thousands = re.search(_THOUSANDS, number)
    whole = number.replace(thousands[0], re.sub(r"\D", "", thousands[0]), 1) if thousands else number
    signs = set(re.findall(r"(?<=\d)\D(?=\d)", whole))
    mixed = len(signs) > 1 or (thousands and thousands[1] in signs)
    return number if mixed else ".".join(re.findall(r"\d+", whole))
