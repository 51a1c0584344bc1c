"""Translate Markdown. markdown-it's tokens are located in the source text, where only the words are replaced."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline, autolink, backtick, image, link
from markdown_it.token import Token as Found

from vidrio.documents.aligned import Aligned
from vidrio.documents.html import HTML, VOID, plan_html
from vidrio.documents.markup import ATTRIBUTE, Dialect, Plan, Token, joined, plan
from vidrio.errors import DataError

FRONT_MATTER = re.compile(r"\A(---|\+\+\+)\n.*?\n\1\n", re.DOTALL)
TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)[^>]*?(/?)>", re.DOTALL)
BLOCK = re.compile(r"\s*(?:[#>+-]|\d+[.)])")  # starts a block if it is at the beginning of a line
# Inline syntax that CommonMark does not define: formulas, footnotes, alert markers. The lengths are bounded, because
# the pattern is tried at every position where such syntax could begin.
FORMULA = r"\$\$[^$]{1,2000}\$\$|\$(?!\s)(?:[^$\\]|\\[\s\S]){1,1000}?(?<!\s)\$(?!\w)"
BRACKETS = r"\\\((?P<inner>[\s\S]{1,1000}?)\\\)|\\\[(?P<display>[\s\S]{1,2000}?)\\\]"
KEPT = re.compile(rf"{FORMULA}|{BRACKETS}|\[\^[^\[\]\s]{{1,100}}\]|\[![A-Z]{{1,20}}\]\n?")
MATHS = re.compile(r"[\^_=]|\\[A-Za-z]")  # \[a link\] is not a formula
DIRECTIVE = re.compile(r":{3,}|(?:!!!|\?\?\?)\+? ")  # :::note, !!! note
FORMULA_LINES = 50
SPECIAL = "\\`*[]<_~"
MARKDOWN = Dialect(
    inline=frozenset(("em", "strong", "s", "link", *HTML.inline)),
    things=HTML.things,
    kept=HTML.kept,
    is_kept=HTML.is_kept,
)


def plan_markdown(source: str, target: str = "") -> Plan:
    """Return the plan of a Markdown document."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.core.ruler.disable("text_join")  # keep escapes and entities as separate tokens
    parser.inline.ruler.before("escape", "kept", _kept)
    for name, inline in (("link", link), ("image", image), ("backticks", backtick), ("autolink", autolink)):
        parser.inline.ruler.at(name, _located(inline))
    for name, rule in (("formula", _formula), ("directive", _directive)):
        parser.block.ruler.before("fence", name, rule, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    source = source.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "\ufffd")
    front = FRONT_MATTER.match(source)
    head, source = (front[0], source[front.end() :]) if front else ("", source)
    lines = list(accumulate((len(line) + 1 for line in source.split("\n")), initial=0))
    parts: list[str | Plan] = [head]
    at, in_cell = 0, False
    for found in parser.parse(source):
        in_cell = found.type in ("th_open", "td_open") or (in_cell and found.type == "inline")
        if found.map is None or found.type not in ("inline", "html_block"):
            continue
        first, last = lines[found.map[0]], lines[min(found.map[1], len(lines) - 1)]
        if found.type == "html_block":
            html = source[first:last]
            is_quoted = html.count(">") > found.content.count(">")  # each line begins with the > of a quotation
            parts += (source[at:first], html if is_quoted else plan_html(html))
            at = last
        elif found.content:
            content = found.content.replace("|", "\\|") if in_cell else found.content
            places = list(_places(source, content, max(at, first), last, in_cell=in_cell))
            after = source[places[0][1] + 1 : places[1][0]] if len(places) > 1 else ""
            parts += (source[at : places[0][0]], _inline(found, after, in_cell=in_cell))
            at = places[-1][1]
    return joined([*parts, source[at:]])


def _kept(state: StateInline, silent: bool) -> bool:
    """Parse formulas, footnote references and alert markers."""
    found = KEPT.match(state.src, state.pos) if state.src[state.pos] in "$\\[" else None
    if not found or not MATHS.search(found["inner"] or found["display"] or "="):
        return False
    if not silent:
        state.push("kept" if found[0][0] != "[" else "mark", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _located(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Wrap a parser rule so that its tokens record their end position in the source."""

    def located(state: StateInline, silent: bool) -> bool:
        count = len(state.tokens)
        found = rule(state, silent)
        for token in state.tokens[count:] if found else ():
            token.meta.setdefault("end", state.pos)
        return found

    return located


def _formula(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Parse the lines of a formula, from $$ to $$, as one block."""
    if not _line(state, first).startswith("$$"):
        return False
    for end in range(first, min(last, first + FORMULA_LINES)):
        line = _line(state, end).strip()
        if not line:
            return False
        if line.endswith("$$") and (end > first or len(line) > 3):
            return _is_block(state, first, end + 1, silent)
    return False


def _directive(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Parse a line that begins or ends a block in another Markdown dialect."""
    return bool(DIRECTIVE.match(_line(state, first))) and _is_block(state, first, first + 1, silent)


def _is_block(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    if not silent:
        state.line = end
        state.push("kept", "", 0).map = [first, end]
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _places(source: str, content: str, start: int, end: int, *, in_cell: bool) -> Iterator[tuple[int, int]]:
    """Yield the source span of each line of a block. Each line is at the end of its source line, after any >, 1. or
    spaces."""
    for line in content.split("\n"):
        line_end = source.find("\n", start, end)
        stop = line_end if line_end >= 0 else end
        at = -1 if in_cell else source.rfind(line, start, stop)
        if at < 0 and not in_cell and (at := source.rfind(line.lstrip(" "), start, stop)) >= 0:
            line = line.lstrip(" ")  # the parser has replaced a tab by spaces
        if at < 0:
            at = source.find(line, start, end)
        if at < 0:
            raise DataError("this Markdown cannot be parsed", found=line[:80], do="simplify this line")
        yield at, at + len(line)
        start = at + len(line) + (not in_cell)  # skip the line break


def _inline(found: Found, line_start: str, *, in_cell: bool) -> Plan:
    """Plan the text of a block. `line_start` is the prefix of all lines after the first."""
    tokens = list(_tokens(found))
    plain = "".join(token.raw for token in tokens if token.kind == "text" and token.raw == token.text)
    special = str.maketrans({sign: f"\\{sign}" for sign in SPECIAL if sign not in plain})
    inner = plan(tokens, replace(MARKDOWN, escape=lambda text: text.translate(special)))

    def render(answers: Sequence[Aligned]) -> str:
        text = inner.render(answers)
        if in_cell:  # restore the backslash that the parser removed from every \|
            return text.replace("|", "\\|")
        if BLOCK.match(text) and not BLOCK.match(found.content):
            text = f"\\{text}" if text[:1] in "#>+-" else text.replace(".", "\\.", 1)
        return text.replace("\n", f"\n{line_start}")

    return Plan(inner.texts, render)


def _tokens(found: Found) -> Iterator[Token]:
    """Yield the inline tokens of a block, with their raw source text."""
    content, at, in_autolink = found.content, 0, False

    def passed(begin: str, end: int = 0) -> str:
        """Consume the source up to the end of the next `begin`, or up to `end` if it is given."""
        nonlocal at
        start = content.index(begin, at)
        at = end or start + len(begin)
        return content[start:at]

    for child in found.children or ():
        kind, markup, end = child.type, child.markup, child.meta.get("end", 0)
        if in_autolink:
            in_autolink = kind != "link_close"
        elif kind == "link_open" and markup == "autolink":
            yield Token("thing", passed("<", end), text=" ")
            in_autolink = True
        elif kind == "text" and child.content:
            yield Token("text", passed(child.content), text=child.content)
        elif kind == "text_special":
            yield Token("text", passed(markup), text=child.content)
        elif kind in ("kept", "mark"):
            yield Token("thing", passed(child.content), text=" " if kind == "kept" else "")
        elif kind == "softbreak":
            yield Token("text", passed("\n"), text=" ")
        elif kind == "hardbreak":
            yield Token("thing", passed(content[at : content.index("\n", at) + 1]), "br")
        elif kind in ("code_inline", "image"):
            yield Token("thing", passed(markup or "![", end), text=" ")
        elif kind == "link_open":
            yield Token("start", passed("["), "link")
        elif kind == "link_close":
            yield Token("end", passed("]", end), "link")
        elif kind == "html_inline":
            yield _tag(passed(child.content))
        elif markup and kind.endswith(("_open", "_close")):
            yield Token("start" if kind.endswith("_open") else "end", passed(markup), kind.partition("_")[0])


def _tag(raw: str) -> Token:
    tag = TAG.fullmatch(raw)
    if not tag or tag[3] or tag[2].lower() in HTML.things | VOID:
        return Token("thing", raw, "br" if tag and tag[2].lower() == "br" else "")
    attributes = {one[1].lower(): (one[2] or "").strip("\"'") for one in ATTRIBUTE.finditer(raw[len(tag[2]) + 1 :])}
    return Token("end" if tag[1] else "start", raw, tag[2].lower(), attributes=attributes)
