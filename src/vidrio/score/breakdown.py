"""Where a translator is good and where it is not: by sentence and by length.

chrF (sacreBLEU's, of one sentence or of some) compares letters, so it tells apart what is nearly right and what is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vidrio.score.metrics import chrf_of_each, quick_scores

LENGTHS = (1, 6, 11, 16, 21, 31, 51)  # words of the source at which a group begins


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
    names = [*(f"{a}–{b - 1}" for a, b in pairwise(LENGTHS)), f"{LENGTHS[-1]} or more"]
    groups: dict[str, list[Judged]] = {name: [] for name in names}
    for sentence in sentences:
        words = max(1, len(sentence.source.split()))
        groups[names[sum(words >= start for start in LENGTHS) - 1]].append(sentence)
    return [
        Group(name, len(some), quick_scores([s.translation for s in some], [s.reference for s in some])["chrf"])
        for name, some in groups.items()
        if some
    ]
