"""Sentences with words that the pairs hardly have, translated by Apertium: clumsily, with the right words.

    python rare.py select CLEAN DATA LANGUAGE TO    # sentences, and the rare words in each
    python rare.py pairs SENTENCES TRANSLATED TO LANGUAGE    # pairs, those whose rare words were translated

Between the two, `apertium spa-eng < sentences` or `apertium eng-spa` (Debian's apertium-eng-spa, GPL; nothing of it is
in the package). The genuine side is what a model learns to write, the clumsy one what it learns to read; a model that
has seen *sastre* twice cannot translate it back, and a dictionary can.
"""

import random
import re
import sys
from collections import Counter
from pathlib import Path

from corpora import CORPORA, WORDS, monolingual, read

WORD = re.compile(r"[^\W\d_]{4,}")
RARE, OFTEN = 12, 6  # sentences with a word: fewer of the pairs, and as many of the language alone
EACH, MOST = 6, 100_000  # sentences for a word, and in all
SHORTEST, LONGEST = 20, 160  # characters
UNKNOWN = re.compile(r"[*@#]([^\W\d_]+)")  # as Apertium marks what it does not know, or cannot inflect


def select(clean: Path, data: Path, language: str, to: Path) -> None:
    side = 0 if language == "en" else 1
    paired: Counter[str] = Counter()
    for corpus in CORPORA:
        if corpus not in WORDS:
            for pair in read(clean / f"{corpus}.tsv"):
                paired.update(set(WORD.findall(pair[side])))
    sentences = [text for _, text in monolingual(data, language) if SHORTEST <= len(text) <= LONGEST]
    alone: Counter[str] = Counter()
    for text in sentences:
        alone.update(set(WORD.findall(text)))
    rare = {
        word
        for word, count in alone.items()
        if word.islower() and count >= OFTEN and paired[word] < RARE and count > 2 * alone[word.capitalize()]
    }
    random.Random(language).shuffle(sentences)
    taken: Counter[str] = Counter()
    chosen = []
    for text in sentences:
        if here := [word for word in set(WORD.findall(text)) if word in rare and taken[word] < EACH]:
            taken.update(here)
            chosen.append(f"{text}\t{' '.join(sorted(here))}\n")
    to.write_text("".join(chosen[:MOST]), encoding="utf-8")


def pairs(sentences: Path, translated: Path, to: Path, *, spanish: bool) -> None:
    with to.open("w", encoding="utf-8") as out, translated.open(encoding="utf-8") as clumsy:
        for (text, words), line in zip(read(sentences), clumsy, strict=True):
            unknown = {word.lower() for word in UNKNOWN.findall(line)}
            if unknown.issuperset(words.split()) or line.count("*") > 2 or "@" in line or "#" in line:
                continue
            other = re.sub(" +", " ", line.replace("*", "")).strip()
            print(*((other, text) if spanish else (text, other)), sep="\t", file=out)


if __name__ == "__main__":
    if sys.argv[1] == "select":
        select(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], Path(sys.argv[5]))
    else:
        pairs(*map(Path, sys.argv[2:5]), spanish=sys.argv[5] == "es")
