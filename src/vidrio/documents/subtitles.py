"""Translate subtitles (SRT, VTT). Each cue is translated separately. Times, numbers, notes and styles are copied."""

import re
from bisect import bisect_left

from vidrio.documents.markup import Dialect, Plan, Token, joined, plan

TIME = r"[ \t]*(?:\d+[:.,])+\d+[ \t]*-->[ \t]*(?:\d+[:.,])+\d+(?!\d)"
NUMBER = r"[ \t]*\d+[^\S\n]*\n"
# A timing line and the text below it, up to a blank line or to the number and timing line of the next cue.
CUE = re.compile(
    rf"^{TIME}[^\n]*(?:\n|\Z)(?P<text>(?:(?!(?:{NUMBER})?{TIME})[^\S\n]*+\S[^\n]*(?:\n|\Z))*)", re.MULTILINE
)
NAMES = ("b", "i", "u", "s", "c", "v", "font", "lang", "ruby", "rt")
TAG = re.compile(rf"<(/?)({'|'.join(NAMES)})\b[^<>\n]*>|<[\d:.]+>|\{{\\[^{{}}\n]*\}}", re.IGNORECASE)
SUBTITLES = Dialect(inline=frozenset(NAMES), escape=str)


def plan_subtitles(source: str, target: str = "") -> Plan:
    """Return the plan of a subtitle file. Each cue has one or more texts."""
    parts: list[str | Plan] = []
    at = 0
    for cue in CUE.finditer(source):
        text = cue["text"].rstrip()
        parts += (source[at : cue.start("text")], _cue(text))
        at = cue.start("text") + len(text)
    return joined([*parts, source[at:]])


def _cue(text: str) -> Plan:
    """Plan a cue. Its number of lines is preserved. Lines of different speakers are translated separately."""
    lines = text.split("\n")
    if any(line.lstrip().startswith(("-", "–", "♪")) for line in lines):
        return joined([part for line in lines for part in (_cue(line) if len(lines) > 1 else _line(line), "\n")][:-1])
    inner = _line(text)
    return Plan(inner.texts, lambda found: wrapped(inner.render(found), len(lines)))


def _line(text: str) -> Plan:
    found, at = [], 0
    for tag in TAG.finditer(text):
        found.append(Token("text", text[at : tag.start()], text=text[at : tag.start()]))
        kind = "thing" if not tag[2] else "end" if tag[1] else "start"
        found.append(Token(kind, tag[0], (tag[2] or "").lower()))  # type: ignore[arg-type]
        at = tag.end()
    found.append(Token("text", text[at:], text=text[at:]))
    return plan([token for token in found if token.raw], SUBTITLES)


def wrapped(text: str, lines: int) -> str:
    """Wrap the text into `lines` lines of similar length, without splitting tags."""
    if lines < 2 or "\n" in text:
        return text
    outside = re.sub(r"<[^<>]*>|\{[^{}]*\}", lambda tag: "\x00" * len(tag[0]), text)
    spaces = [at for at, sign in enumerate(outside) if sign == " "]
    signs, next_space = list(text), 0
    for number in range(1, lines):
        wanted = number * len(text) / lines
        after = max(next_space, bisect_left(spaces, wanted))
        near = [space for space in range(max(next_space, after - 1), after + 1) if space < len(spaces)]
        if near:
            best = min(near, key=lambda space: abs(spaces[space] - wanted))
            signs[spaces[best]] = "\n"
            next_space = best + 1
    return "".join(signs)
