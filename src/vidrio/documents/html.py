"""Tokenise HTML with the justhtml parser, which parses as browsers do and reports the positions of tags."""

import re
from collections.abc import Iterator
from html import unescape

from justhtml import JustHTML

from vidrio.documents import language
from vidrio.documents.markup import Dialect, Kind, Plan, Token, joined, names, plan
from vidrio.errors import DataError


def _is_kept(token: Token) -> bool:
    """Return whether the author excluded the element from translation."""
    attributes = token.attributes
    return attributes.get("translate", "").lower() == "no" or "notranslate" in attributes.get("class", "").split()


HTML = Dialect(
    inline=names(
        """
        a abbr acronym b bdi bdo big cite data del dfn em font i ins mark nobr q ruby rb rt rp s small span strike
        strong sub sup time tt u
        """
    ),
    things=names("img wbr input"),
    kept=names("code kbd samp var"),
    untouched=names("script style textarea template svg math iframe object noscript xmp plaintext"),
    spaced=names("pre"),
    attributes=names("alt title placeholder aria-label"),
    is_kept=_is_kept,
)
RAW_TEXT = ("script", "style", "textarea", "title")  # elements in which tags are not recognised
# How a page begins, as opposed to a fragment. A lookahead matches each comment in only one way, so the time is linear.
DOCUMENT = re.compile(
    r"\s*(?:(?:(?=(<!--.*?-->))\1|<\?[^>]*>)\s*)*<(?:!doctype|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
VOID = names("area base br col embed hr link meta param source track")  # elements without content
# Markup that the parser ignores: comments, declarations, misplaced tags.
PASSED = re.compile(r"<!--.*?(?:--!?>|\Z)|</?([A-Za-z][^\s/>]*)[^>]*>?|<[!?/][^>]*>?", re.DOTALL)
MAX_TAGS = 100_000  # each tag takes about 100 µs and 1 kB
# Formatting elements. The parser reopens them in every block until they are closed, so the tree can outgrow the page.
REOPENED = re.compile(r"<(/?)(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\b|<", re.IGNORECASE)


def plan_html(source: str, target: str = "") -> Plan:
    """Return the plan of a page or a fragment."""
    source = source.replace("\x00", "\ufffd")
    check_tags(source)
    page = source.lstrip("\ufeff")  # the parser does not count a byte-order mark
    mark = source[: len(source) - len(page)]
    return joined([mark, plan(language.of_page(list(tokens(page)), target), HTML)])


def check_tags(source: str) -> None:
    """Raise an error if parsing the page would take too much time or memory."""
    tags = source.count("<")
    if tags > MAX_TAGS:
        raise DataError("this page has too many tags", found=f"{tags:,}; at most {MAX_TAGS:,}", do="split it")
    opened = most = reopened = 0
    for tag in REOPENED.finditer(source):
        if tag[1] is not None:
            opened = max(0, opened + (-1 if tag[1] else 1))
            most = max(most, opened)
        reopened += opened
    if reopened > len(source) // 2 + 10_000:
        found = f"{most:,} tags such as <b> open at once"
        raise DataError("this page is nested too deeply", found=found, do="close its tags")


def tokens(source: str) -> Iterator[Token]:
    """Yield the tokens of a page. Concatenating them gives the original page."""
    at, raw_text = 0, False
    for start, end, token in _tags(source):
        if start < at:
            continue
        yield from _between(source[at:start], raw_text)
        raw_text = token.kind == "start" and token.name in RAW_TEXT
        yield token._replace(raw=source[start:end])
        at = end
    yield from _between(source[at:], raw_text)


def _between(raw: str, raw_text: bool) -> Iterator[Token]:
    """Yield the tokens between two tags: text, and markup that the parser ignored."""
    at = 0
    for passed in () if raw_text else PASSED.finditer(raw):
        yield from _text(raw[at : passed.start()])
        yield Token("thing", passed[0], (passed[1] or "").lower())  # the name determines whether a sentence ends here
        at = passed.end()
    yield from _text(raw[at:])


def _text(raw: str) -> list[Token]:
    return [Token("text", raw, text=unescape(raw))] if raw else []


def _tags(source: str) -> list[tuple[int, int, Token]]:
    """Return all tags that the parser recognised, in order, with their start and end positions."""
    document = JustHTML(source, fragment=not DOCUMENT.match(source), track_node_locations=True, sanitize=False)
    found: dict[int, tuple[int, int, Token]] = {}
    waiting = [document.root]
    while waiting:
        node = waiting.pop()
        waiting += getattr(node, "children", None) or ()
        waiting += [content] if (content := getattr(node, "template_content", None)) else []
        attributes = {name: value or "" for name, value in (getattr(node, "attrs", None) or {}).items()}
        for tag in ("start", "end"):
            start, end = getattr(node, f"_{tag}_tag_start", None), getattr(node, f"_{tag}_tag_end", None)
            if start is not None and end is not None:
                is_closed = tag == "start" and node.name in ("svg", "math") and source[end - 2] == "/"
                is_empty = node.name in HTML.things or node.name in VOID or is_closed
                kind: Kind = "end" if tag == "end" else "thing" if is_empty else "start"
                name = "" if is_closed else node.name  # a picture without a name can occur within a sentence
                found.setdefault(start, (start, end, Token(kind, "", name, attributes=attributes)))
    return sorted(found.values(), key=lambda place: place[:2])
