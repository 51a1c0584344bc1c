"""What must come through a translation whole: addresses, numbers, placeholders, tags, code, paths, emoji.

`spans` finds it; account.py says whether a translation has all of it and no more. A number may be written otherwise on
the way (1,234.5 is 1.234,5 in Spanish, €18.10 is 18,10 €) and counts by its digits; all else counts character for
character.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_ENDINGS = (  # of addresses and of files
    "com|org|net|edu|gov|mil|int|info|io|dev|app|ai|eu|uk|us|es|mx|ar|co|cl|pe|fr|de|it|pt|br|ch|nl|jp|cn|ru|"
    "py|js|ts|c|h|cpp|rs|go|java|rb|php|sh|html?|css|json|xml|ya?ml|toml|ini|cfg|csv|tsv|txt|md|rst|pdf|docx?|xlsx?|"
    "pptx?|odt|png|jpe?g|gif|svg|webp|mp[34]|wav|ogg|zip|gz|xz|zst|tar|exe|dll|so|log|po|ipynb|sql"
)
_QUOTES = '"“”«»`<>'
MONEY = "€$£¥₹₽₩¢"
UNITS = "[kc]?m[²³]|km/h|km|cm|mm|kg|mg|ml|[kKMGT]B|[kMG]?Hz|kW|kWh"
# Left to the model: 21st is XXI in one place and 21.º in another.
_ORDINAL = r"\.?(?:[ºª]|(?:st|nd|rd|th|er|r[oa]|d[oa]|t[oa]|m[oa]|v[oa]|n[oa])\b)"
_PICTURE = (
    "[\U0001f000-\U0001faff\u00a9\u00ae\u2100-\u214f\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299]"
)
_EMOJI = rf"{_PICTURE}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]*"

# Kinds and patterns, tried in this order at each place of a text. Each stops at white space or has a limit, so time
# grows with length.
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
    # --option, Ctrl+C, max_length, 550e8400-e29b-41d4-a716-446655440000, 4d94054, AB-9X7Z-QQ12, 42B
    ("code", r"(?<![\w-])--[A-Za-z][\w-]*+|(?<!\w)(?:Ctrl|Alt|Shift|Cmd)(?:[+-]\w+)+"),
    ("code", r"(?<!\w)_*[^\W_]+(?:_+[^\W_]+)+(?!\w)"),
    ("code", r"(?<![\w-])(?=[\d-]{0,40}[a-f])(?=[a-f-]{0,40}\d)[0-9a-f]{7,40}(?:-[0-9a-f]{4,12})*(?![\w-])"),
    ("code", r"(?<![\w-])(?=[0-9-]{0,40}[A-Z])(?=[A-Z-]{0,40}\d)[A-Z0-9]{2,20}(?:-[A-Z0-9]{2,20}){2,8}(?![\w-])"),
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
        rf"(?:[.,]\d+)?(?:\s?(?:°[CF](?!\w)|[{MONEY}%‰°](?!%)|(?:{UNITS})(?!\w)))?(?:\.\d+)*",
    ),
)
# Within a word only these may begin; so most places of a text are passed over without a try.
_BEGINS = r"(?:(?<!\w)|(?!\w)|(?=https?:|ftp:|file:|www\.|[0-9]\ufe0f?\u20e3|[\u2460-\u24ff\u2776-\u2793]))"
# One of these must stand in a text, or nothing is there to be found. Most sentences have none, and this is quick.
_SIGN = "[\\d`@<>&{$#%\\[/~\\\\_+\u00a9\u00ae\u20e3\u2100-\U0010ffff]|[.](?<=\\w[.])(?=\\w)|-[-A-Z]"
# The digits of a number up to its fraction: 1,234.5
LONG = 1_000  # characters; the places in a longer text are not remembered
_THOUSANDS = r"(?<!\d)\d{1,3}([.,'’\u00a0\u202f ])\d{3}(?:\1\d{3})*(?!\d)"


class Span(NamedTuple):
    """A place in a text, and what kind of thing stands there."""

    start: int
    end: int
    kind: str


def spans(text: str) -> tuple[Span, ...]:
    """Everything in a text that must come through whole, in order; nothing overlaps."""
    return _remembered(text) if len(text) <= LONG else _found(text)


def _found(text: str) -> tuple[Span, ...]:
    if not re.search(_SIGN, text):
        return ()
    return tuple([Span(*match.span(), str(match.lastgroup).partition("_")[0]) for match in _pattern().finditer(text)])


_remembered = lru_cache(4096)(_found)  # a sentence is asked about several times


@lru_cache
def _pattern() -> re.Pattern[str]:
    """What finds all kinds; compiled when it is first needed, since that takes a while."""
    kinds = (f"(?P<{kind}_{n}>{expression})" for n, (kind, expression) in enumerate(_KINDS))
    return re.compile(f"{_BEGINS}(?:{'|'.join(kinds)})")


def touches(text: str, span: Span) -> bool:
    """Whether a letter or digit stands directly before or after."""
    return text[span.start - 1 : span.start].isalnum() or text[span.end : span.end + 1].isalnum()


def is_free(start: int, end: int, taken: Sequence[Span]) -> bool:
    """Whether no other place reaches into this one."""
    return not any(span.start < end and start < span.end for span in taken)


def number_key(number: str) -> str:
    """What a number is known by, however it is written: its groups of digits, those of its thousands as one. 1,234.5
    and 1.234,5 are 1234.5, and not 12345; 9:30 and 9.30 are the same, and 01.02.2023 and 01/02/2023. What mixes signs
    (1.250.00, 01,02.2023) is known by itself alone."""
    thousands = re.search(_THOUSANDS, number)
    whole = number.replace(thousands[0], re.sub(r"\D", "", thousands[0]), 1) if thousands else number
    signs = set(re.findall(r"(?<=\d)\D(?=\d)", whole))
    mixed = len(signs) > 1 or (thousands and thousands[1] in signs)
    return number if mixed else ".".join(re.findall(r"\d+", whole))
