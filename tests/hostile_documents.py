"""Make hostile documents by changing small real ones in ways that suit their format. Each number gives one document."""

import io
import random
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from functools import cache

from sample_documents import MARKDOWN, PAGE, PO, SRT, VTT, archive, book, open_document, word_file

TEXTS = {
    ".txt": "The house is red.\n\nThe dog, 12 and 3.5, is old.\n",
    ".html": PAGE.partition("?>\n")[2],
    ".md": MARKDOWN,
    ".srt": SRT,
    ".vtt": VTT,
    ".po": PO,
}
SMALLEST = 6_000  # bytes: larger parts without text are left out, because they would only cost time
MOST = 20_000  # characters that one change may add

# The tags and marks that can be nested in each format, and strings that may occur anywhere.
PAIRS = {
    "html": "p div span b i a table td li ul code pre svg template select button title h1 font ruby details",
    ".docx": "w:p w:r w:t w:tbl w:tc w:hyperlink w:del w:ins w:rPr w:drawing w:pict w:txbxContent mc:AlternateContent",
    ".odt": "text:p text:span text:a text:note text:h draw:frame draw:g draw:text-box table:table office:annotation",
}
NESTED: dict[str, list[tuple[str, str]]] = {
    ".txt": [("(", ")")],
    ".md": [
        *(("*", "*"), ("**", "**"), ("[", "](x)"), ("> ", ""), ("- ", "\n"), ("`", "`"), ("$", "$"), ("~~", "~~")),
        *(
            ("<b>", "</b>"),
            ("<div>\n\n", "</div>"),
            ("![", "](y)"),
            (":::a\n", "\n:::"),
            ("| a ", "|"),
            ("$$\n", "\n$$"),
        ),
    ],
    ".srt": [("<i>", "</i>"), ("{\\an8", "}"), ("- ", "\n"), ('<font color="red">', "</font>")],
    ".vtt": [("<v Tom>", "</v>"), ("<c.x>", "</c>"), ("<00:01.000>", ""), ("<ruby>", "<rt></ruby>")],
    ".po": [('"', '"'), ('msgid "', '"\n'), ("#~ ", "\n"), ('msgstr[0] "', '"\n'), ("#, fuzzy\n", "")],
}
for _kind, _names in PAIRS.items():
    NESTED[_kind] = [(f"<{name}>", f"</{name}>") for name in _names.split()]
NESTED[".html"] = NESTED[".epub"] = NESTED["html"]
NESTED[".md"] += NESTED["html"]
BITS = [
    *(
        "\x00",
        "\x000\x00",
        "\r",
        "\x0b\x0c",
        "\u2028\x85",
        "\ufeff",
        "\uffff",
        "👍",
        "&amp;",
        "&#0;",
        "&#xD800;",
        "&lt",
        "&nbsp;",
    ),
    *("{k0}", "{x0} {k {k0_", "]]>", "-->", "<!--", "<", ">", '"', "'", "\\", "%s", "\n\n", "\t", " ", "\n", "x --> y"),
    *(
        "<![CDATA[x<y]]>",
        "<?php x ?>",
        "<!DOCTYPE html>",
        "<a b='c",
        '<a b="',
        "</p>",
        "</",
        "<a href=x title='y'>",
        "<br/>",
    ),
    *(
        "00:00:01,000 --> 00:00:02,000\n",
        "1\n",
        'msgid ""\n',
        "/etc/passwd",
        "../../x",
        "https://a.b/c",
        "<w:t/>",
        "<w:rPr>",
    ),
    *(
        "*",
        "**",
        "_",
        "`",
        "```\n",
        "~~~",
        "|",
        "|-|\n",
        "# ",
        "> ",
        "[a]: b\n",
        "[^1]",
        "$",
        "$$",
        ":::",
        "---\n",
        "    x\n",
    ),
]
BOMB = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;&b;">]>'
SUFFIXES = (*TEXTS, ".docx", ".odt", ".epub")

Tokens = list[str]


@cache
def parts_of(suffix: str) -> dict[str, bytes]:
    """Return the parts of a small archive in this format, except large parts without text."""
    whole = {".docx": word_file, ".odt": open_document, ".epub": book}[suffix]()
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    keep = ("word/document.xml", "content.xml")
    return {name: part for name, part in parts.items() if len(part) < SMALLEST or name in keep}


def hostile(suffix: str, number: int) -> bytes:
    rng = random.Random(f"{suffix} {number}")
    if suffix in TEXTS:
        return _bytes(rng, _changed(rng, TEXTS[suffix], suffix))
    parts = dict(parts_of(suffix))
    if rng.random() < 0.85:
        names = [name for name in parts if name.endswith((".xml", ".xhtml", ".opf", ".ncx"))]
        main = [name for name in names if name.endswith(("document.xml", "content.xml", "one.xhtml"))]
        name = rng.choice(main + names[: 1 + len(names) // 2])
        parts[name] = _bytes(rng, _changed(rng, parts[name].decode(), suffix))
    return rng.choice(ARCHIVES)(rng, parts) if rng.random() < 0.35 else archive(dict(parts))


# --- text -------------------------------------------------------------------------------------------------------------


def _changed(rng: random.Random, text: str, suffix: str) -> str:
    if suffix == ".po" and rng.random() < 0.7:  # in a string, because most other changes are rejected immediately
        strings = list(re.finditer(r'(?<=msgid ")[^"\n]+(?=")', text))
        chosen = rng.choice(strings)
        inner = _changed(rng, chosen[0], "html")
        for sign, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
            inner = inner.replace(sign, escape)
        return text[: chosen.start()] + inner + text[chosen.end() :]
    tokens: Tokens = re.findall(r"<[^<>]*>|\s+|[^<\s]+|<", text)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        tokens = rng.choice(CHANGES)(rng, tokens, suffix)
    return "".join(tokens)


def _some(rng: random.Random, tokens: Tokens) -> tuple[int, int]:
    """Return the bounds of a random stretch of the document, usually a short one."""
    begin = rng.randrange(len(tokens) + 1)
    return begin, min(len(tokens), begin + int(2 ** rng.uniform(0, 6)))


def _often(rng: random.Random, length: int) -> int:
    return max(1, min(int(2 ** rng.uniform(0, 12)), MOST // max(1, length)))


def _nested(rng: random.Random, tokens: Tokens, suffix: str) -> Tokens:
    """Nest part of the document. Some end tags are missing or in the wrong order."""
    begin, end = _some(rng, tokens)
    pairs = [rng.choice(NESTED[suffix]) for _ in range(rng.choice((1, 1, 2)))]
    times = _often(rng, sum(len(one) + len(other) for one, other in pairs))
    if rng.random() < 0.7:
        times = min(times, 60)
    opened, closed = [one for one, _ in pairs] * times, [other for _, other in reversed(pairs)] * times
    closed = rng.choice((closed, closed, closed[: len(closed) // 2], [], sorted(closed)))
    return [*tokens[:begin], *opened, *tokens[begin:end], *closed, *tokens[end:]]


def _repeated(rng: random.Random, tokens: Tokens, suffix: str) -> Tokens:
    begin, end = _some(rng, tokens)
    some = tokens[begin:end]
    return [*tokens[:begin], *some * _often(rng, sum(map(len, some))), *tokens[begin:]]


def _without(rng: random.Random, tokens: Tokens, suffix: str) -> Tokens:
    begin, end = _some(rng, tokens)
    return tokens[:begin] + tokens[end:]


def _without_an_end(rng: random.Random, tokens: Tokens, suffix: str) -> Tokens:
    ends = [at for at, token in enumerate(tokens) if token.startswith("</")] or [0]
    at = rng.choice(ends)
    return tokens[:at] + tokens[at + 1 :]


def _swapped(rng: random.Random, tokens: Tokens, suffix: str) -> Tokens:
    begin, end = _some(rng, tokens)
    other, last = _some(rng, tokens)
    return [*tokens[:begin], *tokens[other:last], *tokens[end:]]


def _with_bits(rng: random.Random, tokens: Tokens, suffix: str) -> Tokens:
    tokens = list(tokens)
    for _ in range(rng.choice((1, 2, 4, 8))):
        bit = rng.choice(BITS)
        tokens.insert(rng.randrange(len(tokens) + 1), bit * (_often(rng, len(bit)) if rng.random() < 0.1 else 1))
    return tokens


def _with_a_huge_one(rng: random.Random, tokens: Tokens, suffix: str) -> Tokens:
    """Insert a huge attribute, many attributes, a huge word or a long line."""
    size = rng.randrange(1, MOST)
    huge = rng.choice(
        (
            f'<a x="{"y" * size}">',
            f"<a {' '.join(f'x{n}=y' for n in range(size // 8))}>",
            f"<a {'x=y ' * (size // 4)}>",
            "y" * size,
            "y " * (size // 2),
            " " * size,
            "\n" * size,
            "1" * size,
        )
    )
    at = rng.randrange(len(tokens) + 1)
    return [*tokens[:at], huge, *tokens[at:]]


def _with_a_bomb(rng: random.Random, tokens: Tokens, suffix: str) -> Tokens:
    return [BOMB, *tokens, rng.choice(("", "&c;"))]


CHANGES: tuple[Callable[[random.Random, Tokens, str], Tokens], ...] = (
    *(_nested, _nested, _nested, _repeated, _repeated, _without, _without_an_end, _swapped, _with_bits, _with_bits),
    *(_with_a_huge_one, _with_a_bomb),
)


def _bytes(rng: random.Random, text: str) -> bytes:
    """Encode a text, usually as valid UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    kind = rng.random()
    if kind < 0.03:
        return text.encode(rng.choice(("utf-16", "latin-1", "utf-32", "utf-7")), "replace")
    if kind < 0.06:
        return data[: rng.randrange(len(data) + 1)]
    if kind < 0.1:
        broken = bytearray(data or b"x")
        for _ in range(rng.choice((1, 3, 20))):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        return bytes(broken)
    return b"\xef\xbb\xbf" + data if kind < 0.13 else data


# --- archives ---------------------------------------------------------------------------------------------------------

Parts = dict[str, bytes]


def _unsafe(rng: random.Random, parts: Parts) -> bytes:
    names = ("../x", "/etc/x", "a/../../x", "..\\x", "C:\\x", "word/../../x", "a\x00b", "./x", "x" * 5_000)
    return archive({**parts, rng.choice(names): b"x"})


def _twice(rng: random.Random, parts: Parts) -> bytes:
    """Store a part twice. Some parts may be marked as symbolic links."""
    data = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(data, "w") as file:
        warnings.simplefilter("ignore")
        for name, part in (*parts.items(), rng.choice(list(parts.items()))):
            info = zipfile.ZipInfo(name)
            info.external_attr = rng.choice((0, 0o120777 << 16))
            file.writestr(info, part)
    return data.getvalue()


def _blown(rng: random.Random, parts: Parts) -> bytes:
    """Add a part that is far larger once it is unpacked."""
    name = rng.choice([*parts, "x.xml"])
    return archive({**parts, name: rng.choice((b"\0", b"<w:p/>", b"<a>")) * rng.choice((100, 100_000, 500_000))})


def _lying(rng: random.Random, parts: Parts) -> bytes:
    """Falsify sizes, methods, flags or offsets in the archive's directory."""
    data = bytearray(archive(dict(parts)))
    entries = [match.start() for match in re.finditer(b"PK\x01\x02", data)]
    for _ in range(rng.choice((1, 2))):
        at = rng.choice(entries) + rng.choice((8, 10, 12, 20, 24, 28, 30, 34, 38, 42))
        struct.pack_into("<H", data, at, rng.choice((0, 1, 9, 12, 14, 255, 65_535)))
    return bytes(data)


def _broken(rng: random.Random, parts: Parts) -> bytes:
    data = bytearray(archive(dict(parts)))
    for _ in range(rng.choice((1, 1, 5, 50))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.choice((None, rng.randrange(len(data))))])


def _missing(rng: random.Random, parts: Parts) -> bytes:
    left = rng.choice(list(parts))
    return archive({name: part for name, part in parts.items() if name != left})


def _many(rng: random.Random, parts: Parts) -> bytes:
    return archive({**parts, **{f"x{number}": b"" for number in range(rng.choice((10, 300)))}})


def _within(rng: random.Random, parts: Parts) -> bytes:
    """Put the archive into another archive, or after other data."""
    inner = archive(dict(parts))
    return rng.choice((archive({rng.choice(list(parts)): inner}), b"x" * 100 + inner, inner + inner))


ARCHIVES: tuple[Callable[[random.Random, Parts], bytes], ...] = (
    *(_unsafe, _twice, _blown, _lying, _lying, _broken, _broken, _missing, _many, _within),
)
