"""Sentence pairs → which word translates which, and with what probability: the first model of Brown et al. 1993, "The
Mathematics of Statistical Machine Translation", §4.1, for the words that are rare enough for a model to miss.

Each word of a translation came from one of the source's words, from s with the chance p(t | s) / Σ p(t | s'). Counting
by these chances gives new p, and so on: words that explain a translation better take it from their neighbours.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from vidrio.translate.lexicon import LETTERS, Entry

FREQUENT = 0.02  # of the pairs: a word in more of them is known, and everybody's companion
LONG = 60  # words that are not frequent, in a sentence; a longer one tells little
TOGETHER, ALIKE = 2, 0.02  # pairs that a word and its translation have in common; Dice's coefficient of the two
ROUNDS = 6
NOTHING = 1e-3  # the chance that a word came from none of the source's
DOUBT = 0.5  # counts that no translation has: what was seen once or twice is less sure
PROBABLE, COUNTED, MOST = 0.03, 1.5, 6  # of a translation that is kept: probability, counts; for one word
AT_ONCE = 20_000  # pairs

Grid = tuple[np.ndarray, np.ndarray]  # of each meeting of two words the number of the two; and of the target's place


def lexicon(pairs: Sequence[tuple[str, str]]) -> list[Entry]:
    """The translations of each word."""
    sources, targets = (_Side([pair[column] for pair in pairs]) for column in (0, 1))
    chunks = [slice(start, start + AT_ONCE) for start in range(0, len(pairs), AT_ONCE)]

    # Which words meet, and how often.
    codes, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for chunk in chunks:
        new, how_often = np.unique(_meetings(sources, targets, chunk)[0], return_counts=True)
        codes, inverse = np.unique(np.concatenate([codes, new]), return_inverse=True)
        counts = np.bincount(inverse, np.concatenate([counts, how_often]), len(codes)).astype(np.int64)
    source_C, target_C = np.divmod(codes, len(targets.words))
    dice_C = 2 * counts / (sources.counts[source_C] + targets.counts[target_C])
    kept = (counts >= TOGETHER) & (dice_C >= ALIKE)
    codes, source_C, target_C = codes[kept], source_C[kept], target_C[kept]
    if not len(codes):
        return []

    # Of those that are kept: every meeting, its two words and the place in the target that one source word explains.
    number_M, place_M = _joined(_kept(_meetings(sources, targets, chunk), codes) for chunk in chunks)
    probability_C, count_C = dice_C[kept], counts[kept].astype(float)
    for _ in range(ROUNDS):
        share_M = probability_C[number_M]
        of_place_P = np.bincount(place_M, share_M) + NOTHING
        count_C = np.bincount(number_M, share_M / of_place_P[place_M], len(codes))
        of_word_S = np.bincount(source_C, count_C, len(sources.words)) + DOUBT
        probability_C = count_C / of_word_S[source_C]

    entries: dict[int, list[Entry]] = {}
    for c in np.argsort(-probability_C, kind="stable"):
        of_word = entries.setdefault(int(source_C[c]), [])
        if probability_C[c] >= PROBABLE and count_C[c] >= COUNTED and len(of_word) < MOST:
            written = targets.written(int(target_C[c]))
            of_word.append((sources.words[source_C[c]], written, float(probability_C[c])))
    return [entry for of_word in entries.values() for entry in of_word]


class _Side:
    """The words of one side of the pairs, numbered, in small letters."""

    def __init__(self, texts: Iterable[str]) -> None:
        numbers: dict[str, int] = {}
        self._forms: dict[int, Counter[str]] = {}
        self.sentences: list[np.ndarray] = []  # the words of each, once and in order
        for text in texts:
            written = LETTERS.findall(text)
            here = [numbers.setdefault(word.casefold(), len(numbers)) for word in written]
            for place, (number, word) in enumerate(zip(here, written, strict=True)):
                self._forms.setdefault(number, Counter())[word] += place > 0  # the first has a capital letter anyway
            self.sentences.append(np.unique(np.array(here, np.int64)))
        self.words = list(numbers)
        every = np.concatenate([np.zeros(0, np.int64), *self.sentences])
        self.counts = np.bincount(every, minlength=len(numbers))
        most = max(TOGETHER, FREQUENT * len(self.sentences))
        self.rare = (self.counts >= TOGETHER) & (self.counts <= most)

    def written(self, number: int) -> str:
        """A word as it is mostly written."""
        (form, times), *_ = self._forms[number].most_common(1)
        return form if times else self.words[number]


def _meetings(sources: _Side, targets: _Side, chunk: slice) -> Grid:
    """Every rare word of a source with every one of its target, pair after pair."""
    codes, places, at = [], [], 0
    for source, target in zip(sources.sentences[chunk], targets.sentences[chunk], strict=True):
        source_S, target_T = source[sources.rare[source]], target[targets.rare[target]]
        if len(source_S) < LONG and len(target_T) < LONG:
            codes.append(np.add.outer(source_S * len(targets.words), target_T).ravel())
            places.append(np.tile(np.arange(at, at + len(target_T)), len(source_S)))
            at += len(target_T)
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *codes]), np.concatenate([none, *places])


def _kept(grid: Grid, codes: np.ndarray) -> Grid:
    """Of meetings those whose code is among these, which are sorted; the place of each code among them."""
    found = np.minimum(np.searchsorted(codes, grid[0]), len(codes) - 1)
    there = codes[found] == grid[0]
    return found[there].astype(np.int32), grid[1][there].astype(np.int32)


def _joined(grids: Iterable[Grid]) -> Grid:
    """Of several, their places in a row."""
    numbers, places, at = [], [], 0
    for number_M, place_M in grids:
        numbers.append(number_M)
        places.append(place_M + at)
        at += int(place_M.max(initial=-1)) + 1
    return np.concatenate(numbers), np.concatenate(places)
