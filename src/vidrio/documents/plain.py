"""Plain text in pieces."""

import re

# A long text is translated in pieces: none holds others up, and each can be sent when it is there. No sentence goes
# over an empty line, so what comes out is the same.
BREAK = re.compile(r"(?:[^\S\n]*\n){2,}")
PIECE = 1_000  # characters, from which on the next empty line ends a piece


def pieces(text: str, least: int = PIECE) -> list[str]:
    """A text cut at empty lines into pieces that make it up again."""
    found, start = [], 0
    for gap in BREAK.finditer(text) if len(text) > least else ():
        if gap.end() - start >= least:
            found.append(text[start : gap.end()])
            start = gap.end()
    return [*found, text[start:]] if start < len(text) or not found else found
