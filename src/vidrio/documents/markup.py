"""Extract the texts to translate from a marked-up document, and rebuild the document from their translations.

HTML, XHTML, the XML in DOCX and ODT, and Markdown's inline syntax are tokenised differently, and their elements have
different roles (see `Dialect`). This module contains the common code. Everything that is not translated is copied byte
for byte. For a given depth, every step takes time proportional to the number of tokens.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, Literal, NamedTuple, TypeVar

from vidrio.documents.aligned import Aligned
from vidrio.documents.inline import Element, Inline, Path, Piece, carry, unused_name, written
from vidrio.errors import DataError

Kind = Literal["text", "start", "end", "thing"]  # a "thing" is copied: a comment, an image, <code>
SPACES = re.compile(r"[ \t\r\n\f]+")
MARKER = re.compile("\x00(\\d+)\x00")  # stands for an inset
DEEPEST = 250  # maximum nesting of elements; the time per word grows with the depth
T = TypeVar("T")


class Token(NamedTuple):
    kind: Kind
    raw: str
    name: str = ""
    text: str = ""  # the content of a text token; a space for a thing that acts as a word
    attributes: Mapping[str, str] = {}


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def escape(text: str) -> str:
    """Escape text, so that nothing in a translation is parsed as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\u00a0", "&#160;")


@dataclass(frozen=True)
class Dialect:
    """The roles of elements in a document format. An element that is not listed begins and ends a block."""

    inline: frozenset[str] = frozenset()  # elements that occur within a sentence
    things: frozenset[str] = frozenset()  # elements without words that occur within a sentence
    kept: frozenset[str] = frozenset()  # elements that are not translated, but act as a word of the sentence: <code>
    untouched: frozenset[str] = frozenset()  # elements that are copied, including their contents
    insets: frozenset[str] = frozenset()  # elements that occur within a sentence, but contain separate blocks
    spaced: frozenset[str] = frozenset()  # elements in which every space is significant
    attributes: frozenset[str] = frozenset()  # attributes that are translated
    only_in: frozenset[str] = frozenset()  # if not empty, only text in these elements is translated
    escape: Callable[[str], str] = escape
    is_kept: Callable[[Token], bool] = field(default=lambda token: False)  # whether attributes forbid translation

    def is_left(self, token: Token) -> bool:
        """Return whether the element is left untranslated."""
        return token.name in self.untouched or token.name in self.kept or self.is_kept(token)

    def left(self, raw: str, start: Token) -> Token:
        """Turn an untranslated element into a thing, which acts as a word if it occurs within a sentence."""
        is_word = start.name in self.kept or (start.name in self.inline and self.is_kept(start))
        name = "" if is_word or start.name in self.untouched else start.name
        return Token("thing", raw, name, " " if is_word else "")

    def is_inline(self, token: Token) -> bool:
        """Return whether a token can occur within a sentence. Unnamed things, such as comments and scripts, can."""
        return token.kind == "text" or token.name in self.inline or token.name in self.things or not token.name


class Planned(NamedTuple, Generic[T]):
    """The texts of a document, and a function that renders the document from their translations."""

    texts: list[str]
    render: Callable[[Sequence[Aligned]], T]


Plan = Planned[str]
FilePlan = Planned[bytes]


def together(plans: Sequence[Planned[str]], put: Callable[[list[str]], T]) -> Planned[T]:
    """Combine the plans of several documents. `put` combines the rendered documents into one."""

    def render(found: Sequence[Aligned]) -> T:
        rest = iter(found)
        return put([one.render(list(islice(rest, len(one.texts)))) for one in plans])

    return Planned([text for one in plans for text in one.texts], render)


def joined(parts: Sequence[str | Plan]) -> Plan:
    """Combine the parts of a document into one plan. Strings are copied unchanged."""

    def put(texts: list[str]) -> str:
        rest = iter(texts)
        return "".join(part if isinstance(part, str) else next(rest) for part in parts)

    return together([part for part in parts if not isinstance(part, str)], put)


def plan(tokens: Sequence[Token], dialect: Dialect) -> Plan:
    """Return the plan of a document. Insets (footnotes, text boxes) and attribute values are planned separately from
    the surrounding text."""
    insets: list[Plan] = []  # inner insets come before outer ones
    opened: list[tuple[Token, int, list[Token]]] = []  # the enclosing insets: start tag, end index, preceding content
    content: list[Token] = []
    ends, left_to = ends_of(tokens), -1
    for at, token in enumerate(tokens):
        if at <= left_to:
            continue
        if opened and at == opened[-1][1]:
            start, _, before = opened.pop()
            inset = joined([start.raw, _blocks(content, dialect), token.raw])
            before.append(Token("thing", _marker(insets, inset)))
            content = before
        elif token.kind == "start" and token.name in dialect.insets:
            opened.append((token, ends[at], content))
            check_depth(len(opened))
            content = []
        else:
            token = _with_markers(token, dialect, insets)
            if token.kind == "start" and dialect.is_left(token):
                left_to = ends[at]
                if left_to == len(tokens) and token.name not in dialect.untouched:  # an optional end tag is missing
                    following = range(at + 1, len(tokens))
                    left_to = next((n for n in following if not dialect.is_inline(tokens[n])), left_to) - 1
                token = dialect.left(token.raw + _raw(tokens[at + 1 : left_to + 1]), token)
            content.append(token)

    def put(texts: list[str]) -> str:
        filled: list[str] = []
        for text in texts:
            filled.append(MARKER.sub(lambda match: filled[int(match[1])], text) if filled else text)
        return filled[-1]

    return together([*insets, _blocks(content, dialect)], put)


def _raw(tokens: Sequence[Token]) -> str:
    return "".join(token.raw for token in tokens)


def check_depth(depth: int) -> None:
    if depth > DEEPEST:
        found, do = f"more than {DEEPEST} nested elements", "remove elements that only wrap other elements"
        raise DataError("this document is nested too deeply", found=found, do=do)


def _marker(insets: list[Plan], inset: Plan) -> str:
    """Add an inset, and return the marker that represents it."""
    insets.append(inset)
    return f"\x00{len(insets) - 1}\x00"


def _blocks(tokens: Sequence[Token], dialect: Dialect) -> Plan:
    """Plan the blocks of a document, divided into segments, and the markup between them."""
    parts: list[str | Plan] = []
    for run in _runs(tokens, dialect):
        parts += [run] if isinstance(run, str) else _parts(run, dialect)
    return joined(parts)


ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>]+))?""")


def with_values(token: Token, values: Mapping[str, str]) -> Token:
    """Return the tag with new values for some of its attributes."""

    def put(match: re.Match[str]) -> str:
        value = values.get(match[1].lower())
        if value is None or not match[2]:
            return match[0]
        return f'{match[0][: match.start(2) - match.start()]}"{value}"'

    name_end = len(token.name) + 1
    return token._replace(raw=token.raw[:name_end] + ATTRIBUTE.sub(put, token.raw[name_end:]))


def _with_markers(token: Token, dialect: Dialect, insets: list[Plan]) -> Token:
    """Return the tag with each translated attribute replaced by a marker."""

    def quoted(found: Sequence[Aligned]) -> str:
        return dialect.escape(found[0].text).replace('"', "&quot;")

    wanted = {name: value for name, value in token.attributes.items() if name in dialect.attributes}
    if token.kind == "end" or not any(map(has_letters, wanted.values())) or dialect.is_kept(token):
        return token
    plans = {name: Plan([value], quoted) for name, value in wanted.items() if has_letters(value)}
    return with_values(token, {name: _marker(insets, value) for name, value in plans.items()})


def _runs(tokens: Sequence[Token], dialect: Dialect) -> Iterator[str | list[Token]]:
    """Yield the tokens of each block, and the markup between blocks."""
    run: list[Token] = []
    within: Counter[str] = Counter()  # the number of open elements of each kind that affects the handling of text
    for token in tokens:
        if token.name in dialect.spaced or token.name in dialect.only_in:
            within[token.name] += {"start": 1, "end": -1}.get(token.kind, 0)
        elif token.kind == "text" and dialect.only_in and not any(within[name] > 0 for name in dialect.only_in):
            token = Token("thing", token.raw, "" if token.text.isspace() else "ignored text")
        elif token.kind == "text" and not any(within[name] > 0 for name in dialect.spaced):
            token = token._replace(text=SPACES.sub(" ", token.text))
        if dialect.is_inline(token):
            run.append(token)
        else:
            yield from (run, token.raw)
            run = []
    yield run


def ends_of(tokens: Sequence[Token]) -> list[int]:
    """Return, for each token, the index of the token that closes its element, or the number of tokens if there is
    none."""
    ends = [len(tokens)] * len(tokens)
    opened: dict[str, list[int]] = defaultdict(list)
    for number, token in enumerate(tokens):
        if token.kind == "start":
            opened[token.name].append(number)
        elif token.kind == "end" and opened[token.name]:
            ends[opened[token.name].pop()] = number
    return ends


def _parts(run: Sequence[Token], dialect: Dialect) -> Iterator[str | Plan]:
    """Yield the segments of a block, which is divided at every unmatched tag."""
    at = 0
    for number in (*_unmatched(run), len(run)):
        part = run[at:number]
        if any(token.kind == "text" and has_letters(token.text) for token in part):
            yield from _segment(part, dialect)
        else:
            yield _raw(part)
        yield _raw(run[number : number + 1])
        at = number + 1


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _unmatched(run: Sequence[Token]) -> list[int]:
    """Return the indices of tags that have no matching tag in this run, or that enclose such a tag."""
    lone: list[int] = []
    opened: list[int] = []
    for number, token in enumerate(run):
        if token.kind == "start":
            opened.append(number)
        elif token.kind == "end" and opened and run[opened[-1]].name == token.name:
            opened.pop()
        elif token.kind == "end":
            lone += (*opened, number)
            opened = []
    return lone + opened


def _segment(run: Sequence[Token], dialect: Dialect) -> Iterator[str | Plan]:
    """Plan a run in which all elements are closed. The markup around its text is copied."""
    run = _without_empty(run)
    ends = ends_of(run)
    first, last = 0, len(run) - 1
    while True:
        if _is_blank(run[first]):
            first += 1
        elif _is_blank(run[last]):
            last -= 1
        elif run[first].kind == "start" and ends[first] == last:
            first, last = first + 1, last - 1
        else:
            break
    core = run[first : last + 1]
    source, raw = _inline_of(core), _raw(core)

    def render(found: Sequence[Aligned]) -> str:
        return (
            raw if found[0].text == source.text else written(carry(source, found[0]), source.elements, dialect.escape)
        )

    yield _raw(run[:first])
    yield Plan([source.text], render)
    yield _raw(run[last + 1 :])


def _inline_of(run: Sequence[Token]) -> Inline:
    name = unused_name("".join(token.text for token in run), "k", "x")
    elements: list[Element] = []
    pieces: list[Piece] = []
    path: Path = ()
    for token in run:
        if token.kind == "start":
            path = (*path, len(elements))
            check_depth(len(path))
            elements.append(Element(token.raw, ""))
        elif token.kind == "end":
            elements[path[-1]] = elements[path[-1]]._replace(end=token.raw)
            path = path[:-1]
        elif token.kind == "text":
            pieces.append(Piece(path, token.text))
        else:
            pieces.append(Piece(path, f"{{{name}{len(pieces)}}}" if token.text else "", token.raw))
    return Inline(tuple(pieces), tuple(elements))


def _is_blank(token: Token) -> bool:
    return (token.kind == "text" and not token.text.strip()) or (token.kind == "thing" and not token.text)


NOTES = ("a", "sup")  # these elements mark a note if they contain no letters and directly follow a word


def _without_empty(run: Sequence[Token]) -> list[Token]:
    """Turn elements without words into things: <a id="top"></a>, or the 1 in night.<a href="#n1"><sup>1</sup></a>."""
    found: list[Token] = []
    for token in run:
        found.append(token)
        size = 2 if token.kind == "end" and found[-2:-1] and found[-2].kind == "start" else 0
        if not size and token.kind == "end" and token.name in NOTES and len(found) > 3 and found[-3].kind == "start":
            before = next((one.text for one in reversed(found[-9:-3]) if one.text), " ")
            size = 0 if has_letters(found[-2].text) or before[-1].isspace() else 3
        if size:
            found[-size:] = [Token("thing", _raw(found[-size:]))]
    return found
