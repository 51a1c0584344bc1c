"""Measure the share of invented words in translations: words that occur neither in our corpora nor in the source.

    python benchmarks/invented_words.py --model en-es [--data FOLDER] [--test newstest2012] [--counts FILE]

Known words are those in all training pairs, monolingual sentences and dictionaries of the target language, ignoring
case. The test and dev sets are excluded. Real words that occur in none of these texts count as invented, too. To
estimate this error, the script prints the share of unknown words in the references.

Sentences with an invented word are counted by the frequency of their rarest source word. `--counts` caches the word
counts between runs.
"""

import argparse
import json
import lzma
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from shared import ENGLISH_SPANISH
from vidrio.translate.translator import Translator

WORD = re.compile(r"[^\W\d_]+")
SETS = {"tatoeba-test-v2020-07-28": "test", "newstest2012": "dev", "flores200-dev": "dev"}
SEEN = (0, 1, 5, 50, 500)  # minimum frequency of the rarest source word

Counts = dict[str, Counter[str]]


def words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def count_words(data: Path) -> Counts:
    """Count the words in the texts of each language."""
    counts: Counts = {"en": Counter(), "es": Counter()}
    for path in sorted(data.glob("*.tsv.xz")):
        alone = re.fullmatch(r"mono\.(en|es)\.tsv\.xz", path.name)
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                _, *texts = line.rstrip("\n").split("\t")
                for language, text in zip([alone[1]] if alone else ("en", "es"), texts, strict=False):
                    counts[language].update(words(text))
    return counts


def counted(data: Path, file: Path | None) -> Counts:
    if file and file.is_file():
        return {language: Counter(found) for language, found in json.loads(file.read_text("utf-8")).items()}
    counts = count_words(data)
    if file:
        file.write_text(json.dumps(counts, ensure_ascii=False), encoding="utf-8")
    return counts


def invented(source: str, text: str, known: Counter[str]) -> list[str]:
    """Return the words of a text that are neither known nor copied from its source."""
    there = set(words(source))
    return [word for word in words(text) if word not in known and word not in there]


def share(sources: Sequence[str], texts: Sequence[str], known: Counter[str]) -> tuple[int, int, list[list[str]]]:
    """Return the number of invented words, the total number of words, and the invented words in each text."""
    found = [invented(source, text, known) for source, text in zip(sources, texts, strict=True)]
    return sum(map(len, found)), sum(len(words(text)) for text in texts), found


def span(least: int, below: int) -> str:
    if below - least == 1:
        return "never"
    return f"{least} times or more" if below == sys.maxsize else f"{least} to {below - 1} times"


def main() -> int:
    parser = argparse.ArgumentParser(description="How many words of a model's translations are invented.")
    parser.add_argument("--model", default="en-es", help="a model folder or name")
    parser.add_argument("--data", type=Path, default=ENGLISH_SPANISH, help="folder that contains the pairs")
    parser.add_argument("--test", action="append", choices=SETS, help="use only this test set; repeatable")
    parser.add_argument("--counts", type=Path, help="file in which to cache the word counts")
    parser.add_argument("--examples", type=int, default=12)
    given = parser.parse_args()
    translator = Translator.load(given.model)
    source_language, target_language = translator.about.source_language, translator.about.target_language
    counts = counted(given.data, given.counts)
    known = counts[target_language]
    print(f"{translator.about.name}: {len(known):,} words are known of language {target_language}")
    for test in given.test or ("tatoeba-test-v2020-07-28", "newstest2012"):
        sides = [
            (given.data / SETS[test] / f"{test}.{language}").read_text("utf-8").splitlines()
            for language in (source_language, target_language)
        ]
        sources, references = sides
        translations = [one.text for one in translator.translate(sources)]
        new, total, found = share(sources, translations, known)
        right, in_all, _ = share(sources, references, known)
        with_one = sum(map(bool, found))
        print(
            f"{test}: {new:,} of {total:,} words are invented, {new / total:.2%} (references: {right / in_all:.2%});"
            f" {with_one:,} of {len(sources):,} sentences have one"
        )
        rarest = [min((counts[source_language][word] for word in words(text)), default=0) for text in sources]
        for least, below in zip(SEEN, (*SEEN[1:], sys.maxsize), strict=True):
            here = [bool(some) for some, seen in zip(found, rarest, strict=True) if least <= seen < below]
            if here:
                part = f"{sum(here):,} of {len(here):,}, {sum(here) / len(here):.1%}"
                print(f"  rarest source word seen {span(least, below)}: {part}")
        shown = [(some, source, text) for some, source, text in zip(found, sources, translations, strict=True) if some]
        for some, source, text in shown[:: max(1, len(shown) // max(1, given.examples))][: given.examples]:
            print(f"  {', '.join(some)}: {source} → {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
