"""Select what a teacher wrote for the training of a student.

    python taught.py DATA CLEAN SENTENCES SCORED LANGUAGE TO    # LANGUAGE: en or es, the language of SENTENCES

SCORED has one line for each sentence: the mean probability of a token, a tab, and the teacher's translation.
A translation is rejected if it contains a word that occurs neither in real texts nor in the source, if it loses or
invents a fact, such as a number, or if it belongs to the least probable fifth.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from corpora import monolingual, read
from vidrio.text.account import compare, facts
from vidrio.text.lexicon import lexicons

WORD = re.compile(r"[^\W\d_]+")
REJECTED = 0.2  # fraction of the translations to reject, from the least probable
OCCURRENCES = 2  # in real texts; a word that occurs less often may be a misspelling


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def known_words(data: Path, clean: Path, language: str) -> set[str]:
    """Return the words that occur in real texts of a language."""
    counts: Counter[str] = Counter()
    for _, sentence in monolingual(data, language):
        counts.update(words(sentence))
    for corpus in clean.glob("*.tsv"):
        for pair in read(corpus):
            counts.update(words(pair[language == "es"]))
    return {word for word, count in counts.items() if count >= OCCURRENCES}


def taught(data: Path, clean: Path, sentences: Path, scored: Path, language: str, to: Path) -> None:
    target = {"en": "es", "es": "en"}[language]
    known, (ours, theirs) = known_words(data, clean, target), lexicons(language, target)
    lines = [line.split("\t", 1) for line in scored.read_text(encoding="utf-8").split("\n")[:-1]]
    sources = sentences.read_text(encoding="utf-8").split("\n")[: len(lines)]
    least = sorted(float(score) for score, _ in lines)[int(REJECTED * len(lines))]
    rejected: Counter[str] = Counter()
    with to.open("w", encoding="utf-8") as out:
        for source, (score, translation) in zip(sources, lines, strict=True):
            if float(score) < least:
                rejected["improbable"] += 1
            elif set(words(translation)) - known - set(words(source)):
                rejected["unknown word"] += 1
            elif any(compare(facts(source, ours), facts(translation, theirs))):
                rejected["facts"] += 1
            else:
                print(*((source, translation) if language == "en" else (translation, source)), sep="\t", file=out)
    print(f"{language}: {len(lines):,} translations, rejected: {dict(rejected)}", file=sys.stderr)


if __name__ == "__main__":
    taught(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5], Path(sys.argv[6]))
