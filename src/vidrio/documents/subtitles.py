"""Subtitles (SRT, VTT): times, numbers, notes and styles come through as they are; a cue is one text."""

import re

from vidrio.documents.markup import Dialect, Plan, Token, joined, plan

BLOCKS = re.compile(r"(\n[ \t]*(?:\n[ \t]*)+)")
TIMES = re.compile(r".*-->.*\n?")
NAMES = ("b", "i", "u", "s", "c", "v", "font", "lang", "ruby", "rt")
TAG = re.compile(rf"<(/?)({'|'.join(NAMES)})\b[^>\n]*>|<[\d:.]+>|\{{\\[^}}\n]*\}}", re.IGNORECASE)
SUBTITLES = Dialect(inline=frozenset(NAMES), escape=str)


def plan_subtitles(source: str) -> Plan:
    """What to translate of subtitles."""
    parts: list[str | Plan] = []
    for block in BLOCKS.split(source):
        times = list(TIMES.finditer(block))
        if not times:
            parts.append(block)
            continue
        cue = block[times[0].end() :]
        text = cue.rstrip()
        parts += (block[: times[0].end()], _cue(text), cue[len(text) :])
    return joined(parts)


def _cue(text: str) -> Plan:
    """The text of a cue in as many lines as it has; what several people say stays apart."""
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
    """In so many lines of about the same length; tags are not divided."""
    if lines < 2 or "\n" in text:
        return text
    outside = re.sub(r"<[^>]*>|\{[^}]*\}", lambda tag: "\x00" * len(tag[0]), text)
    spaces = [at for at, sign in enumerate(outside) if sign == " "]
    for number in range(1, lines):
        if spaces:
            wanted = number * len(text) / lines
            at = min(spaces, key=lambda space: abs(space - wanted))
            spaces.remove(at)
            text = f"{text[:at]}\n{text[at + 1 :]}"
    return text
