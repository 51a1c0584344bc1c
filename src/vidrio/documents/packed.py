"""Translate archives of XML files (DOCX, ODT, EPUB). Parts with text are rewritten, and all other parts are copied."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from html import escape, unescape
from io import BytesIO
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.parsers import expat

from vidrio.documents import language
from vidrio.documents.html import HTML
from vidrio.documents.markup import (
    ATTRIBUTE,
    Dialect,
    FilePlan,
    Kind,
    Plan,
    Token,
    check_depth,
    ends_of,
    joined,
    names,
    plan,
    together,
)
from vidrio.errors import DataError

MAX_PARTS, LARGEST, MAX_TIMES = 20_000, 256 << 20, 200  # maximum parts, decompressed bytes and compression ratio
LARGEST_TEXT, MAX_TAGS = 64 << 20, 500_000  # maximum bytes and tags in all parts with text

DOCX_PARTS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml")

DOCX = Dialect(
    inline=names("w:r w:t w:hyperlink w:smartTag w:ins"),
    things=names(
        """
        w:bookmarkStart w:bookmarkEnd w:proofErr w:lastRenderedPageBreak w:commentRangeStart w:commentRangeEnd
        w:footnoteReference w:endnoteReference w:commentReference w:softHyphen
        """
    ),
    untouched=names("w:pPr w:del w:instrText w:sdtPr"),
    insets=names("w:drawing w:pict w:object mc:AlternateContent"),
    spaced=names("w:t"),
    only_in=names("w:t"),
)
ODT = Dialect(
    inline=names("text:span text:a text:meta"),
    things=names(
        """
        text:bookmark text:bookmark-start text:bookmark-end text:soft-page-break text:reference-mark
        text:reference-mark-start text:reference-mark-end text:change office:annotation-end
        """
    ),
    untouched=names("text:note-citation text:tracked-changes text:sequence text:page-number"),
    insets=names("text:note office:annotation draw:frame draw:custom-shape draw:g"),
    only_in=names("text:p text:h"),
)
ENCRYPTED = re.compile(rb"<(?:\w+:)?EncryptedData\b")
OBFUSCATED_FONT = re.compile(rb'Algorithm="(?:http://www\.idpf\.org/2008/embedding|http://ns\.adobe\.com/pdf/enc#RC)"')
PAGES = {"application/xhtml+xml": HTML, "application/x-dtbncx+xml": Dialect(only_in=names("text"))}  # parts of a book


def plan_docx(data: bytes, target: str) -> FilePlan:
    """Return the plan of a Word document."""
    parts = unpacked(data)
    _part(parts, "word/document.xml")
    read = _read(parts, list(filter(DOCX_PARTS.fullmatch, parts)))
    return packed(data, {name: plan([*_runs(found)], DOCX) for name, found in read.items()})


def _runs(found: Sequence[Token]) -> Iterator[Token]:
    """Merge the start tag of each run with its properties, and preserve the spaces around its text."""
    at, ends = 0, ends_of(found)
    while at < len(found):
        token, end = found[at], at
        if (token.kind, token.name) == ("start", "w:r") and [one.name for one in found[at + 1 : at + 2]] == ["w:rPr"]:
            end = ends[at + 1] if found[at + 1].kind == "start" else at + 1
            token = token._replace(raw="".join(one.raw for one in found[at : end + 1]))
        elif (token.kind, token.name) == ("start", "w:t"):
            token = token._replace(raw='<w:t xml:space="preserve">')
        yield token
        at = end + 1


def plan_odt(data: bytes, target: str) -> FilePlan:
    """Return the plan of an OpenDocument text."""
    parts = unpacked(data)
    if b"manifest:encryption-data" in parts.get("META-INF/manifest.xml", b""):
        raise DataError("this file is encrypted", do="save it without a password")
    read = _read(parts, ["content.xml", *({"styles.xml"} & parts.keys())])

    def spaces(token: Token) -> Token:
        return Token("text", token.raw, text=" ") if token.name == "text:s" and token.kind == "thing" else token

    return packed(data, {name: plan([*map(spaces, found)], ODT) for name, found in read.items()})


def plan_epub(data: bytes, target: str) -> FilePlan:
    """Return the plan of a book: its pages, table of contents and title."""
    parts = unpacked(data)
    locked = parts.get("META-INF/encryption.xml", b"")
    if len(ENCRYPTED.findall(locked)) > len(OBFUSCATED_FONT.findall(locked)):
        raise DataError("this book is encrypted", do="use one without copy protection")
    container = tokens(_part(parts, "META-INF/container.xml"), "container.xml")
    roots = (token.attributes.get("full-path") for token in container if token.name == "rootfile")
    packages = _read(parts, list(dict.fromkeys(filter(None, roots))))
    pages: dict[str, Dialect] = {}
    for root, package in packages.items():
        for item in package:
            dialect = PAGES.get(item.attributes.get("media-type", ""))
            name = normpath(join(dirname(root), unquote(item.attributes.get("href", ""))))
            if dialect and item.name.endswith("item") and name in parts and name not in packages:
                pages[name] = dialect
    plans = {root: _package(language.of_page(package, target), target) for root, package in packages.items()}
    for name, found in _read(parts, list(pages)).items():
        plans[name] = plan(language.of_page(found, target), pages[name])
    return packed(data, plans)


def plan_xhtml(data: bytes, target: str) -> FilePlan:
    """Return the plan of an XHTML page. It is parsed as XML, in which `<script/>` has no content."""
    [found] = _read({"this page": data}, ["this page"]).values()
    page = plan(language.of_page(found, target), HTML)
    return FilePlan(page.texts, lambda translations: page.render(translations).encode())


def _package(found: Sequence[Token], target: str) -> Plan:
    """Return the plan of a book's metadata. The title is translated and the language is replaced."""
    parts: list[str | Plan] = []
    inside = ""
    for token in found:
        if token.kind != "text":
            inside = token.name.rpartition(":")[2] if token.kind == "start" else ""
            parts.append(token.raw)
        elif inside == "language" and target:
            parts.append(escape(target))
        else:
            parts.append(plan([token], Dialect()) if inside == "title" else token.raw)
    return joined(parts)


def _part(parts: dict[str, bytes], name: str) -> bytes:
    if name not in parts:
        raise DataError("this archive does not match its extension", found=f"no {name}", do="rename it")
    return parts[name]


def _read(parts: dict[str, bytes], names: Sequence[str]) -> dict[str, list[Token]]:
    """Return the tokens of several parts. The size limits are checked before any part is parsed."""
    texts = [_part(parts, name) for name in names]
    size, tags = sum(map(len, texts)), sum(text.count(b"<") for text in texts)
    if size > LARGEST_TEXT or tags > MAX_TAGS:
        found = f"{size:,} bytes of text with {tags:,} tags; at most {LARGEST_TEXT:,} with {MAX_TAGS:,}"
        raise DataError("this document is too large", found=found, do="split it")
    return {name: tokens(text, name) for name, text in zip(names, texts, strict=True)}


def unpacked(data: bytes) -> dict[str, bytes]:
    """Return the parts of an archive by name. Raise DataError if they exceed the size limits or have unsafe names."""
    found: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            infos = archive.infolist()
            size = sum(info.file_size for info in infos)
            if len(infos) > MAX_PARTS or size > min(LARGEST, MAX_TIMES * len(data) + (1 << 20)):
                parts = f"{len(infos)} parts, {size:,} bytes"
                raise DataError("this archive is too large when unpacked", found=parts, do="split it")
            for info in infos:
                name = info.filename
                if name.startswith(("/", "\\")) or ".." in name.split("/") or name in found or "\\" in name:
                    raise DataError("a part of this archive has an unsafe name", found=name[:80], do="save it again")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    what = "a part of this archive has an unusual compression"
                    raise DataError(what, found=name[:80], do="save it again")
                found[name] = _content(archive, info)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise DataError("this archive cannot be read", found=f"{error!s:.200}", do="save it again") from None
    return found


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return a part. Unlike `ZipFile.read`, this never decompresses more than the declared size."""
    with archive.open(info) as part:
        return part.read(info.file_size or 1)


def packed(data: bytes, plans: dict[str, Plan]) -> FilePlan:
    """Return the plan of an archive. Parts with a plan are rewritten, and all others are copied."""

    def put(texts: list[str]) -> bytes:
        new, out = dict(zip(plans, texts, strict=True)), BytesIO()
        with zipfile.ZipFile(BytesIO(data)) as source, zipfile.ZipFile(out, "w") as archive:
            for info in source.infolist():  # keep the order: the media type must be the first part of a book
                archive.writestr(info, new.get(info.filename) or _content(source, info))
        return out.getvalue()

    return together(list(plans.values()), put)


# --- XML --------------------------------------------------------------------------------------------------------------

# Matches one token of a document that is known to be well formed and to have no declarations.
TOKEN = re.compile(
    r"""<!--.*?--> | <\?.*?\?> | <!\[CDATA\[.*?\]\]> | <!DOCTYPE(?:"[^"]*"|'[^']*'|[^>"'])*>
    | <(?P<ends>/?)(?P<name>[^\s/>]+)(?P<attributes>(?:"[^"]*"|'[^']*'|[^>"'])*?)(?P<is_empty>/?)> | [^<]+""",
    re.DOTALL | re.VERBOSE,
)


def tokens(data: bytes, what: str) -> list[Token]:
    """Split an XML file into tokens that concatenate to the file. `what` names the file in error messages.

    Declarations are rejected, because entities can expand without limit. Documents repeat many tokens, so equal tokens
    share one object.
    """

    def doctype(name: str, system: str | None, public: str | None, has_declarations: int) -> None:
        if has_declarations:
            declared = f"<!DOCTYPE {name[:60]} […]>"
            raise DataError(f"{what} declares entities or attributes", found=declared, do="remove it")

    def declaration(version: str, encoding: str | None, standalone: int) -> None:
        if encoding and encoding.lower() not in ("utf-8", "utf8"):
            raise DataError(f"{what} is not XML in UTF-8", found=f"{encoding[:40]}", do="save it in UTF-8")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler, parser.XmlDeclHandler = doctype, declaration
    try:
        source = data.decode("utf-8")
        parser.Parse(data, True)
    except (expat.ExpatError, UnicodeDecodeError, LookupError, ValueError) as error:
        raise DataError(f"{what} is not XML in UTF-8", found=str(error), do="save it again") from None
    known: dict[str, Token] = {}
    found, depth = [], 0
    for match in TOKEN.finditer(source):
        token = known.get(match[0]) or known.setdefault(match[0], _token(match))
        depth += {"start": 1, "end": -1}.get(token.kind, 0)
        check_depth(depth)
        found.append(token)
    return found


def _token(found: re.Match[str]) -> Token:
    raw, name = found[0], found["name"]
    if not raw.startswith("<"):
        return Token("text", raw, text=unescape(raw))
    if not name:
        return Token("thing", raw)
    attributes = {one[1]: unescape(one[2][1:-1]) for one in ATTRIBUTE.finditer(found["attributes"])}
    kind: Kind = "end" if found["ends"] else "thing" if found["is_empty"] else "start"
    return Token(kind, raw, name, attributes=attributes)
