"""Marked-up text as tokens → what of it is translated, and how it is put together again.

HTML, XHTML, the XML of DOCX and ODT and the inlines of Markdown differ in how they are cut into tokens and in what
their elements mean (a `Dialect`); the rest is here. What is not translated comes out byte for byte.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from vidrio.documents.aligned import Aligned, Ask
from vidrio.documents.inline import Element, Inline, Piece, carry, written

Kind = Literal["text", "start", "end", "thing"]  # a thing: a comment, an image, whatever has no text within
SPACES = re.compile(r"[ \t\r\n\f]+")
INSET = re.compile("\x01(\\d+)\x01")
MARKER = re.compile("\x00(\\d+)\x00")  # where the translation of an attribute goes


class Token(NamedTuple):
    kind: Kind
    raw: str
    name: str = ""
    text: str = ""  # of a text: what it says
    attributes: Mapping[str, str] = {}


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


class Plan(NamedTuple):
    """The texts of a document, and the document made from their translations."""

    asks: list[Ask]
    render: Callable[[Sequence[Aligned]], str]


class FilePlan(NamedTuple):
    """The same for a file."""

    asks: list[Ask]
    render: Callable[[Sequence[Aligned]], bytes]


def plan(tokens: Sequence[Token], dialect: Dialect) -> Plan:
    """What to translate of a document. What is set into it, a footnote or a text in a picture, is planned by itself."""
    insets: list[Plan] = []
    outer = _plan(list(_outside(tokens, dialect, insets)), dialect)
    inner = joined(insets)
    if not insets:
        return outer

    def render(found: Sequence[Aligned]) -> str:
        texts, at = [], len(outer.asks)
        for inset in insets:
            texts.append(inset.render(found[at : at + len(inset.asks)]))
            at += len(inset.asks)
        return INSET.sub(lambda match: texts[int(match[1])], outer.render(found[: len(outer.asks)]))

    return Plan([*outer.asks, *inner.asks], render)


def _outside(tokens: Sequence[Token], dialect: Dialect, insets: list[Plan]) -> Iterator[Token]:
    """The tokens with things in place of what is set into the document."""
    at = 0
    while at < len(tokens):
        token, end = tokens[at], at
        if token.kind == "start" and token.name in dialect.insets:
            end = _end_of(tokens, at)
            insets.append(joined([token.raw, plan(tokens[at + 1 : end], dialect), tokens[end].raw]))
            token = Token("thing", f"\x01{len(insets) - 1}\x01")
        yield token
        at = end + 1


def _plan(tokens: Sequence[Token], dialect: Dialect) -> Plan:
    attributes: list[str] = []
    parts: list[str | Inline] = []
    for run in _runs([_with_markers(token, dialect, attributes) for token in tokens], dialect):
        parts += [run] if isinstance(run, str) else _parts(run, dialect)
    segments = [part for part in parts if isinstance(part, Inline)]
    asks = [Ask(segment.text, segment.marked) for segment in segments]

    def render(found: Sequence[Aligned]) -> str:
        texts, values = iter(found[: len(segments)]), found[len(segments) :]
        whole = "".join(part if isinstance(part, str) else _rendered(part, next(texts), dialect) for part in parts)
        return MARKER.sub(lambda match: dialect.escape(values[int(match[1])].text).replace('"', "&quot;"), whole)

    return Plan([*asks, *map(Ask, attributes)], render)


def _rendered(source: Inline, found: Aligned, dialect: Dialect) -> str:
    if found.text == source.text:
        return source.raw
    return written(carry(source, found), source.elements, dialect.escape)


def joined(parts: Sequence[str | Plan]) -> Plan:
    """A document of several parts; what is no plan comes out as it is."""
    asks = [ask for part in parts if isinstance(part, Plan) for ask in part.asks]

    def render(found: Sequence[Aligned]) -> str:
        answers = iter(found)
        return "".join(
            part if isinstance(part, str) else part.render(list(islice(answers, len(part.asks)))) for part in parts
        )

    return Plan(asks, render)


ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>]+))?""")


def _with_markers(token: Token, dialect: Dialect, found: list[str]) -> Token:
    """With a marker in place of each attribute that is translated."""
    wanted = dialect.attributes & token.attributes.keys()
    if not wanted or token.kind == "end" or dialect.is_kept(token):
        return token

    def marked(match: re.Match[str]) -> str:
        name, written_value = match[1].lower(), match[2]
        value = token.attributes.get(name, "")
        if name not in wanted or not written_value or not any(map(str.isalpha, value)):
            return match[0]
        found.append(value)
        return f'{match[0][: match.start(2) - match.start()]}"\x00{len(found) - 1}\x00"'

    name_end = len(token.name) + 1
    return token._replace(raw=token.raw[:name_end] + ATTRIBUTE.sub(marked, token.raw[name_end:]))


def _runs(tokens: Sequence[Token], dialect: Dialect) -> Iterator[str | list[Token]]:
    """Blocks: what stands between them, and the tokens within each."""
    run: list[Token] = []
    within: Counter[str] = Counter()  # the elements that are open, of those that tell how text is read
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


def _parts(run: Sequence[Token], dialect: Dialect) -> Iterator[str | Inline]:
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
    yield from _segment(run)


def _unmatched(run: Sequence[Token]) -> set[int]:
    lone: set[int] = set()
    opened: list[tuple[str, int]] = []
    count: Counter[str] = Counter()
    for number, token in enumerate(run):
        if token.kind == "start":
            opened.append((token.name, number))
            count[token.name] += 1
        elif token.kind == "end":
            if not count[token.name]:
                lone.add(number)
                continue
            while True:
                name, start = opened.pop()
                count[name] -= 1
                if name == token.name:
                    break
                lone.add(start)
    return lone | {number for _, number in opened}


def _segment(run: Sequence[Token]) -> Iterator[str | Inline]:
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
    yield Inline(tuple(pieces), tuple(elements), "".join(token.raw for token in run))
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
