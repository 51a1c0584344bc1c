"""Train the tokenizer that the English–Spanish models share across languages and directions.

    python tokens.py TRAIN ALONE TO    # TRAIN: pairs; ALONE: monolingual sentences; TO: a tokenizer.json

The most representative corpora, Tatoeba and the written pairs, count twice. SYMBOLS and the tag for back-translations
are repeated often enough to become tokens. The tokenizer has case tokens.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from corpora import SYMBOLS, TRANSLATED, read
from vidrio.text.tokens.tokenizer import Tokenizer

SIZE = 8_000
TWICE = ("tatoeba", "written")
ONCE = ("general", "books", "stories", "more", "talk", "voices", "dictionary", "terms", "light")
ALONE = 120_000  # sentences per language


def texts(train: Path, alone: Path) -> Iterator[str]:
    for corpus in (*TWICE, *TWICE, *ONCE):
        for pair in read(train / f"{corpus}.tsv"):
            yield from pair
    for language in ("en", "es"):
        sentences = (alone / f"{language}.txt").read_text(encoding="utf-8").splitlines()
        yield from random.Random(language).sample(sentences, min(len(sentences), ALONE))
    yield from [" ".join([*SYMBOLS, TRANSLATED])] * 2_000


if __name__ == "__main__":
    train, alone, to = map(Path, sys.argv[1:])
    Tokenizer.learn(texts(train, alone), size=SIZE, case_tokens=True, coverage=0.99995).save(to)
