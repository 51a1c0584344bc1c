"""What of a translation to check: a table on stderr, and marks in the translation where a terminal shows it."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vidrio.translate.confidence import Confidence
    from vidrio.translate.translation import Translation, Word

WIDTH = 80


class Doubts:
    """The table grows as translations come; `what` they are, lines or sentences, is its first column. In JSON there is
    no table: it tells all of this by itself."""

    def __init__(self, confidence: "Confidence", what: str, *, table: bool, on_stdout: bool) -> None:
        from vidrio.translate.confidence import DOUBTFUL

        self.number = 1  # of the next row
        self._table, self._doubtful = table, DOUBTFUL
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._marks = on_stdout and sys.stdout.isatty() and not plain
        click.echo(f"vidrio: {confidence.told()}", err=True)
        if table:
            click.echo(f"{what:>8}  confidence  to check: words with less than {DOUBTFUL:g}", err=True)

    def tell(self, confidence: float, words: Sequence["Word"]) -> None:
        """A row. Without words there is nothing to check, and no row."""
        from vidrio.look.writing import visible

        if self._table and words:
            doubts = [f"{visible(word.text)} {word.confidence:.2f}" for word in self._doubtful_of(words)]
            click.echo(fitting(f"{self.number:8}{confidence:12.2f}  ", doubts), err=True)
        self.number += 1

    def marked(self, translation: "Translation") -> str:
        """The translation with doubtful words underlined, if it goes to a terminal."""
        if not self._marks:
            return translation.text
        written: list[str] = []
        at = 0
        for word in self._doubtful_of(translation.words):
            written += (translation.text[at : word.start], click.style(word.text, underline=True))
            at = word.end
        return "".join((*written, translation.text[at:]))

    def _doubtful_of(self, words: Sequence["Word"]) -> list["Word"]:
        return [word for word in words if word.confidence is not None and word.confidence < self._doubtful]


def fitting(row: str, doubts: Sequence[str]) -> str:
    """The row with as many as fit, and how many more there are."""
    line = row
    for shown in range(len(doubts), -1, -1):
        more = f"{', ' if shown else ''}{len(doubts) - shown} more" if shown < len(doubts) else ""
        line = f"{row}{', '.join(doubts[:shown])}{more}"
        if len(line) <= WIDTH:
            break
    return line.rstrip()
