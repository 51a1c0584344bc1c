"""What is in files of sentence pairs, before any training: counts, lengths, scripts, and what cleaning leaves out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vidrio.data.clean import Tally, script
from vidrio.data.pairs import Corpus
from vidrio.data.prepare import Wishes, select
from vidrio.data.progress import Progress

BINS = (2, 5, 10, 20, 40, 80)  # words: the last length of each bin of the histogram; one more bin for what is longer
_SAMPLES = 5


@dataclass
class Side:
    """The clean sentences of one language."""

    words: int = 0
    characters: int = 0
    longest: int = 0  # characters
    lengths: list[int] = field(default_factory=lambda: [0] * (len(BINS) + 1))
    scripts: Counter[str] = field(default_factory=Counter)  # letters of each

    def add(self, text: str) -> None:
        words = len(text.split())
        self.words += words
        self.characters += len(text)
        self.longest = max(self.longest, len(text))
        self.lengths[sum(words > last for last in BINS)] += 1
        if text.isascii():
            self.scripts["LATIN"] += sum(map(str.isalpha, text))
        else:
            self.scripts.update(script(letter) for letter in text if letter.isalpha())


@dataclass
class Survey:
    """All that `vidrio data inspect` shows."""

    corpora: Sequence[Corpus]
    tally: Tally = field(default_factory=Tally)
    kept: list[int] = field(default_factory=list)  # of each corpus
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)
    samples: list[tuple[str, str]] = field(default_factory=list)  # of what is kept, evenly spread

    def to_json(self) -> dict[str, Any]:
        corpora = [
            {"name": corpus.name, "layout": corpus.layout.words, "weight": corpus.weight, "kept": kept}
            for corpus, kept in zip(self.corpora, self.kept, strict=True)
        ]
        sides = {name: vars(side) for name, side in (("source", self.source), ("target", self.target))}
        return {"corpora": corpora, **self.tally.to_json(), "bins": list(BINS), **sides, "kept_samples": self.samples}


def survey(corpora: Sequence[Corpus], wishes: Wishes, progress: Progress) -> Survey:
    """Read and select everything, keep nothing but the figures."""
    figures = Survey(corpora, kept=[0] * len(corpora))
    step = 1  # every step-th pair is a sample
    with TemporaryDirectory() as folder:
        kept = select(corpora, wishes, figures.tally, Path(folder) / "pairs", progress)
        for number, (source, target, _, corpus) in enumerate(kept):
            figures.kept[corpus] += 1
            figures.source.add(source)
            figures.target.add(target)
            if number % step == 0:
                figures.samples.append((source, target))
            if len(figures.samples) == 2 * _SAMPLES:
                figures.samples, step = figures.samples[::2], 2 * step
    figures.samples = figures.samples[:_SAMPLES]
    return figures
