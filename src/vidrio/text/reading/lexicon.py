"""Which words translate which, in a file that lies with a model: it helps out where the model has no word of its own.

One entry on a line, source word, translation, probability, with tabs between and sorted by their bytes; the source word
in small letters. learn/lexicon.py finds them in sentence pairs; a line can be added, changed and taken out by hand.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from vidrio.text.reading.word_list import SortedLines, write_sorted

NAME = "lexicon.tsv"
REMEMBERED = 1 << 14  # words that were asked for
STEM, ENDING, LONGER = 4, 3, 5  # letters: a stem at least, an ending at most, and what another ending may differ by

Entry = tuple[str, str, float]  # a word, its translation, with what probability


def write(model: Path, entries: Iterable[Entry]) -> None:
    lines = (f"{word}\t{translation}\t{probability:.2f}" for word, translation, probability in entries)
    write_sorted(model / NAME, lines)


class Lexicon:
    """What a file has."""

    def __init__(self, path: Path) -> None:
        self._lines = SortedLines(path)
        self._found: dict[str, dict[str, float]] = {}

    @staticmethod
    def of(model: Path) -> "Lexicon | None":
        """A model's, if it has one."""
        path = model / NAME
        return Lexicon(path) if path.is_file() else None

    def __iter__(self) -> Iterator[Entry]:
        return (one for line in self._lines if (one := entry(line)))

    def translations(self, word: str) -> dict[str, float]:
        """Those of a word, each with its probability."""
        word = word.casefold()
        if (found := self._found.get(word)) is None:
            if len(self._found) > REMEMBERED:
                self._found = {}
            lines = list(self._lines.beginning(f"{word}\t"))
            found = self._found[word] = {one[1]: one[2] for one in map(entry, lines) if one}
        return found

    def of_its_kind(self, word: str) -> set[str]:
        """The translations of all words that begin as this one does and may be other forms of it."""
        word = word.casefold()
        entries = map(entry, self._lines.beginning(word[: max(STEM, len(word) - ENDING)]))
        return {one[1] for one in entries if one and abs(len(one[0]) - len(word)) <= LONGER}


def entry(line: str) -> Entry | None:
    """What a line says; a damaged one says nothing."""
    match line.split("\t"):
        case [word, translation, number] if translation:
            try:
                probability = float(number)
            except ValueError:
                return None
            return (word, translation, probability) if 0 < probability <= 1 else None
    return None
