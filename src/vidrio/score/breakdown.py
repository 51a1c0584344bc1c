"""Where a translator is good and where it is not: by sentence, by length, by how rare the words are.

chrF (sacreBLEU's, of one sentence or of some) compares letters, so it tells apart what is nearly right and what is not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vidrio.score.metrics import chrf_of_each, quick_scores

LENGTHS = (1, 6, 11, 16, 21, 31, 51)  # words of the source at which a group begins
SEEN = (0, 1, 2, 10, 100, 1000)  # times that training has seen a word, likewise
NUMBERS = {0: "never", 1: "once"}


@dataclass(frozen=True)
class Judged:
    """One held-out sentence, what should have come out, what did, and how alike the two are."""

    source: str
    reference: str
    translation: str
    chrf: float


@dataclass(frozen=True)
class Group:
    """Some of the sentences or words, with one figure about them."""

    name: str
    count: int
    value: float


def judged(sources: Sequence[str], references: Sequence[str], translations: Sequence[str]) -> list[Judged]:
    """Each sentence with its own chrF."""
    rows = zip(sources, references, translations, chrf_of_each(translations, references), strict=True)
    return [Judged(*row) for row in rows]


def by_length(sentences: Sequence[Judged]) -> list[Group]:
    """The chrF of sentences of about the same length, counted in words of the source."""
    groups: dict[str, list[Judged]] = {name: [] for name in _names(LENGTHS)}
    for sentence in sentences:
        groups[_group(max(1, len(sentence.source.split())), LENGTHS)].append(sentence)
    return [
        Group(name, len(some), quick_scores([s.translation for s in some], [s.reference for s in some])["chrf"])
        for name, some in groups.items()
        if some
    ]


def words(text: str) -> list[str]:
    """The words of a text: runs of letters and digits, in lower case."""
    return re.findall(r"\w+", text.lower())


def _group(value: int, starts: Sequence[int]) -> str:
    return _names(starts)[sum(value >= start for start in starts) - 1]


def _names(starts: Sequence[int]) -> list[str]:
    """`1–5`, `6–10`, …, `51 or more`; `never` and `once` for 0 and 1."""
    ranges = [NUMBERS.get(a, str(a)) if b == a + 1 else f"{a:,}–{b - 1:,}" for a, b in pairwise(starts)]
    return [*ranges, f"{starts[-1]:,} or more"]
