"""Marked-up text as tokens → what of it is translated, and how it is put together again.

HTML, XHTML, the XML of DOCX and ODT and the inlines of Markdown differ in how they are cut into tokens and in what
their elements mean (a `Dialect`); the rest is here. What is not translated comes out byte for byte.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, Literal, NamedTuple, TypeVar

from vidrio.documents.aligned import Aligned
from vidrio.documents.inline import Element, Inline, Piece, carry, written

Kind = Literal["text", "start", "end", "thing"]  # a thing: a comment, an image, whatever has no text within
SPACES = re.compile(r"[ \t\r\n\f]+")
MARKER = re.compile("\x00(\\d+)\x00")  # where goes what is planned by itself
T = TypeVar("T")


class Token(NamedTuple):
    kind: Kind
    raw: str
    name: str = ""
    text: str = ""  # of a text: what it says
    attributes: Mapping[str, str] = {}


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def escape(text: str) -> str:
    """Text as markup has it: nothing in a translation becomes a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\u00a0", "&#160;")


@dataclass(frozen=True)
class Dialect:
    """What the elements of a kind of document mean. One that is not named here begins and ends a block."""

    inline: frozenset[str] = frozenset()  # within a sentence
    things: frozenset[str] = frozenset()  # within a sentence, without words
    kept: frozenset[str] = frozenset()  # the same, but the sentence needs a word in their place: <code>
    untouched: frozenset[str] = frozenset()  # with all that is in them
    insets: frozenset[str] = frozenset()  # with blocks of their own, though they stand in a sentence
    spaced: frozenset[str] = frozenset()  # every space in them counts
    attributes: frozenset[str] = frozenset()  # that are translated
    only_in: frozenset[str] = frozenset()  # if not empty: text counts in these elements only
    escape: Callable[[str], str] = escape
    is_kept: Callable[[Token], bool] = field(default=lambda token: False)  # by its attributes

    def is_left(self, token: Token) -> bool:
        """Whether it begins what is not translated."""
        return token.name in self.untouched or token.name in self.kept or self.is_kept(token)

    def left(self, raw: str, start: Token) -> Token:
        """What is not translated as a thing; one within a sentence has a place in it, as a word has."""
        is_word = start.name in self.kept or (start.name in self.inline and self.is_kept(start))
        name = "" if is_word or start.name in self.untouched else start.name
        return Token("thing", raw, name, " " if is_word else "")

    def is_inline(self, token: Token) -> bool:
        """Whether it stands within a sentence. Things without a name do: comments, scripts."""
        return token.kind == "text" or token.name in self.inline or token.name in self.things or not token.name


class Planned(NamedTuple, Generic[T]):
    """The texts of a document, and the document made from their translations."""

    texts: list[str]
    render: Callable[[Sequence[Aligned]], T]


Plan = Planned[str]
FilePlan = Planned[bytes]


def together(plans: Sequence[Planned[str]], put: Callable[[list[str]], T]) -> Planned[T]:
    """Several documents as one: what is put together of what each of them became."""

    def render(found: Sequence[Aligned]) -> T:
        rest = iter(found)
        return put([one.render(list(islice(rest, len(one.texts)))) for one in plans])

    return Planned([text for one in plans for text in one.texts], render)


def joined(parts: Sequence[str | Plan]) -> Plan:
    """A document of several parts; what is no plan comes out as it is."""

    def put(texts: list[str]) -> str:
        rest = iter(texts)
        return "".join(part if isinstance(part, str) else next(rest) for part in parts)

    return together([part for part in parts if not isinstance(part, str)], put)


def plan(tokens: Sequence[Token], dialect: Dialect) -> Plan:
    """What to translate of a document. What is set into it, a footnote, a text in a picture or an attribute's value, is
    planned by itself."""
    insets: list[Plan] = []
    parts: list[str | Plan] = []
    for run in _runs(list(_outside(tokens, dialect, insets)), dialect):
        parts += [run] if isinstance(run, str) else _parts(run, dialect)

    def put(texts: list[str]) -> str:
        whole, *inner = texts
        return MARKER.sub(lambda match: inner[int(match[1])], whole) if inner else whole

    return together([joined(parts), *insets], put)


def _outside(tokens: Sequence[Token], dialect: Dialect, insets: list[Plan]) -> Iterator[Token]:
    """The tokens with markers in place of what is set into the document."""
    at = 0
    while at < len(tokens):
        token, end = tokens[at], at
        if token.kind == "start" and token.name in dialect.insets:
            end = _end_of(tokens, at)
            insets.append(joined([token.raw, plan(tokens[at + 1 : end], dialect), tokens[end].raw]))
            yield Token("thing", f"\x00{len(insets) - 1}\x00")
        else:
            yield _with_markers(token, dialect, insets)
        at = end + 1


ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>]+))?""")


def _with_markers(token: Token, dialect: Dialect, insets: list[Plan]) -> Token:
    """With a marker in place of each attribute that is translated."""
    wanted = dialect.attributes & token.attributes.keys()
    if not wanted or token.kind == "end" or dialect.is_kept(token):
        return token

    def quoted(found: Sequence[Aligned]) -> str:
        return dialect.escape(found[0].text).replace('"', "&quot;")

    def marked(match: re.Match[str]) -> str:
        name, written_value = match[1].lower(), match[2]
        value = token.attributes.get(name, "")
        if name not in wanted or not written_value or not any(map(str.isalpha, value)):
            return match[0]
        insets.append(Plan([value], quoted))
        return f'{match[0][: match.start(2) - match.start()]}"\x00{len(insets) - 1}\x00"'

    name_end = len(token.name) + 1
    return token._replace(raw=token.raw[:name_end] + ATTRIBUTE.sub(marked, token.raw[name_end:]))


def _runs(tokens: Sequence[Token], dialect: Dialect) -> Iterator[str | list[Token]]:
    """Blocks: what stands between them, and the tokens within each."""
    run: list[Token] = []
    within: Counter[str] = Counter()  # the elements that are open, of those that say how text is read
    at = 0
    while at < len(tokens):
        token, end = tokens[at], at
        if token.kind == "start" and dialect.is_left(token):
            end = _end_of(tokens, at)
            token = dialect.left("".join(one.raw for one in tokens[at : end + 1]), token)
        elif token.name in dialect.spaced | dialect.only_in:
            within[token.name] += {"start": 1, "end": -1}.get(token.kind, 0)
        elif token.kind == "text" and dialect.only_in and not any(within[name] > 0 for name in dialect.only_in):
            token = Token("thing", token.raw, "" if token.text.isspace() else "a text that does not count")
        elif token.kind == "text" and not any(within[name] > 0 for name in dialect.spaced):
            token = token._replace(text=SPACES.sub(" ", token.text))
        if dialect.is_inline(token):
            run.append(token)
        else:
            yield from (run, token.raw)
            run = []
        at = end + 1
    yield run


def _end_of(tokens: Sequence[Token], at: int) -> int:
    """The number of the token that ends the element which begins at `at`."""
    name, depth = tokens[at].name, 0
    for number in range(at, len(tokens)):
        if tokens[number].name == name and tokens[number].kind in ("start", "end"):
            depth += 1 if tokens[number].kind == "start" else -1
            if not depth:
                return number
    return len(tokens) - 1


def _parts(run: Sequence[Token], dialect: Dialect) -> Iterator[str | Plan]:
    """The segments of a block, cut where an element begins or ends that does not do both in it."""
    lone = _unmatched(run)
    if lone:
        at = 0
        for number in (*sorted(lone), len(run)):
            yield from _parts(run[at:number], dialect)
            yield "".join(token.raw for token in run[number : number + 1])
            at = number + 1
        return
    if not any(map(str.isalpha, "".join(token.text for token in run if token.kind == "text"))):
        yield "".join(token.raw for token in run)
        return
    yield from _segment(run, dialect)


def _unmatched(run: Sequence[Token]) -> set[int]:
    """The tokens of this run that begin or end an element and have no partner in it, or in the wrong order."""
    lone: set[int] = set()
    opened: list[int] = []
    for number, token in enumerate(run):
        if token.kind == "start":
            opened.append(number)
        elif token.kind == "end":
            if opened and run[opened[-1]].name == token.name:
                opened.pop()
            else:
                lone.add(number)
    return lone | set(opened)


def _segment(run: Sequence[Token], dialect: Dialect) -> Iterator[str | Plan]:
    """A run whose elements all end in it. What has no text stands around it as it is."""
    run = _without_empty(run)
    after: list[str] = []
    while True:
        first, last = run[0], run[-1]
        if _is_blank(first):
            yield first.raw
            run = run[1:]
        elif _is_blank(last):
            after.append(last.raw)
            run = run[:-1]
        elif first.kind == "start" and _end_of(run, 0) == len(run) - 1:
            yield first.raw
            after.append(last.raw)
            run = run[1:-1]
        else:
            break
    text = "".join(token.text for token in run)
    name = next(name for name in ("k", "x", *(f"k{n}_" for n in range(len(text) + 1))) if f"{{{name}" not in text)
    elements: list[Element] = []
    pieces: list[Piece] = []
    path: tuple[int, ...] = ()
    for token in run:
        if token.kind == "start":
            path = (*path, len(elements))
            elements.append(Element(token.raw, ""))
        elif token.kind == "end":
            elements[path[-1]] = elements[path[-1]]._replace(end=token.raw)
            path = path[:-1]
        elif token.kind == "text":
            pieces.append(Piece(path, token.text))
        else:
            pieces.append(Piece(path, f"{{{name}{len(pieces)}}}" if token.text else "", token.raw))
    source = Inline(tuple(pieces), tuple(elements))
    raw = "".join(token.raw for token in run)

    def render(found: Sequence[Aligned]) -> str:
        return raw if found[0].text == source.text else written(carry(source, found[0]), elements, dialect.escape)

    yield Plan([source.text], render)
    yield "".join(reversed(after))


def _is_blank(token: Token) -> bool:
    return token.kind in ("text", "thing") and not token.text.strip() and not (token.kind == "thing" and token.text)


def _without_empty(run: Sequence[Token]) -> list[Token]:
    """Elements with nothing in them as things: <a id="top"></a>."""
    found: list[Token] = []
    for token in run:
        if token.kind == "end" and found and found[-1].kind == "start":
            found[-1] = Token("thing", found[-1].raw + token.raw)
        else:
            found.append(token)
    return found
