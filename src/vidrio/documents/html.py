"""HTML as tokens, by justhtml's parser: it says where tags, comments and scripts stand, as browsers do."""

import re
from collections.abc import Iterator
from html import unescape

from justhtml import JustHTML

from vidrio.documents.markup import Dialect, Kind, Plan, Token, names, plan


def _is_kept(token: Token) -> bool:
    """What its author does not want translated."""
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
RAW_TEXT = ("script", "style", "textarea", "title")  # nothing in them is a tag
DOCUMENT = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype|html|head|body)\b", re.IGNORECASE | re.DOTALL)
# What a parser passes over: comments, declarations, tags that make no sense where they stand.
PASSED = re.compile(r"<!--.*?(?:--!?>|\Z)|</?[A-Za-z][^>]*>?|<[!?/][^>]*>?", re.DOTALL)


def plan_html(source: str) -> Plan:
    """What to translate of a page, or a part of one."""
    return plan(list(tokens(source.replace("\x00", "\ufffd"))), HTML)


def tokens(source: str) -> Iterator[Token]:
    """The page in tokens that make it up again."""
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
    """What stands between two tags: text, and what the parser made nothing of."""
    at = 0
    for passed in () if raw_text else PASSED.finditer(raw):
        if passed.start() > at:
            yield Token("text", raw[at : passed.start()], text=unescape(raw[at : passed.start()]))
        yield Token("thing", passed[0])
        at = passed.end()
    if at < len(raw):
        yield Token("text", raw[at:], text=unescape(raw[at:]))


def _tags(source: str) -> list[tuple[int, int, Token]]:
    """Every tag that the parser took for one, with its place, in order."""
    document = JustHTML(source, fragment=not DOCUMENT.match(source), track_node_locations=True, sanitize=False)
    found: dict[int, tuple[int, int, Token]] = {}
    waiting = [document.root]
    while waiting:
        node = waiting.pop()
        waiting += getattr(node, "children", None) or ()
        waiting += [content] if (content := getattr(node, "template_content", None)) else []
        start, end = getattr(node, "_start_tag_start", None), getattr(node, "_start_tag_end", None)
        if start is not None and end is not None:
            attributes = {name: value or "" for name, value in (node.attrs or {}).items()}
            kind: Kind = "thing" if node.name in HTML.things else "start"
            found.setdefault(start, (start, end, Token(kind, "", node.name, attributes=attributes)))
        start, end = getattr(node, "_end_tag_start", None), getattr(node, "_end_tag_end", None)
        if start is not None and end is not None:
            found.setdefault(start, (start, end, Token("end", "", node.name)))
    return sorted(found.values(), key=lambda place: place[:2])
