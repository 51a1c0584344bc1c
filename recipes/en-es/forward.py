"""Select a model's best translations as training data, so that the model learns to find them by greedy search.

    python forward.py SENTENCES TRANSLATIONS MODEL TO    # MODEL: en-es or es-en, the model of the opposite direction

The score of a translation is the probability that the model of the opposite direction gives to the original sentence.
This probability is low if the translation omits, repeats or invents words.
"""

import sys
from itertools import islice
from pathlib import Path

from vidrio.translate.translator import Translator

MOST, BEST = 75_000, 0.6  # number of sentences to score; fraction to keep
AT_ONCE = 4_000


def forward(sentences: Path, translations: Path, model: str, to: Path) -> None:
    judge = Translator.load(model)
    with sentences.open(encoding="utf-8") as sources, translations.open(encoding="utf-8") as targets:
        lines = ((source.strip(), target.strip()) for source, target in zip(sources, targets, strict=True))
        pairs = [pair for pair in islice(lines, MOST) if judge.fits(pair[1], pair[0])]
    costs: list[float] = []
    for start in range(0, len(pairs), AT_ONCE):
        swapped = [(target, source) for source, target in pairs[start : start + AT_ONCE]]
        costs += [-sum(log_probs) / len(log_probs) for log_probs in judge.score(swapped)]
    best = sorted(range(len(pairs)), key=costs.__getitem__)[: int(BEST * len(pairs))]
    with to.open("w", encoding="utf-8") as out:
        for n in sorted(best):
            print(*(pairs[n] if model == "es-en" else reversed(pairs[n])), sep="\t", file=out)


if __name__ == "__main__":
    forward(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
