"""Measure how many of a language's most common words a model translates correctly in context, judged by dictionaries.

    python benchmarks/words_known.py --data ../shared/data/en-es [--words 10000] [--model FOLDER]

Word frequencies are taken from monolingual sentences (mono-2.LANGUAGE.xz). Each word is tested in the first sentence of
4 to 14 words that contains it, in a fixed random order. A word counts as known if any word of the translation starts
with the stem of a dictionary translation (all but its last two letters, but at least four letters, ignoring accents),
so that inflected forms are accepted. Irregular forms and good translations that are not in the dictionaries count as
wrong, so the figure is useful only for comparing models.
"""

import argparse
import json
import lzma
import random
import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

from vidrio.hypothesis import Options
from vidrio.translate.translator import Translator

WORD = re.compile(r"[^\W\d_]+")
DICTIONARIES = ("dictionary.tsv.xz", "dictionary-2.tsv.xz")
NOISY = {"omw-mcr30"}  # WordNet senses
SHORTEST, LONGEST = 4, 14  # words per sentence
COMMON = 40  # skip the most common words: they are function words, for which a dictionary is of little use


def plain(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))


def stem(word: str) -> str:
    return word[: max(4, len(word) - 2)]


def dictionary(data: Path, side: int) -> dict[str, set[str]]:
    """Return the stems of the translations of each word in one language."""
    stems: dict[str, set[str]] = defaultdict(set)
    for name in DICTIONARIES:
        with lzma.open(data / name, "rt", encoding="utf-8") as lines:
            for line in lines:
                source, *pair = line.rstrip("\n").split("\t")
                if source in NOISY or " " in pair[side].strip().removeprefix("to "):
                    continue
                word = plain(pair[side].strip().removeprefix("to "))
                for other in WORD.findall(plain(pair[1 - side]).removeprefix("to ")):
                    if len(other) > 2:
                        stems[word].add(stem(other))
    return stems


def sentences(data: Path, language: str, known: dict[str, set[str]], most: int) -> list[tuple[str, str]]:
    """Return the most common words that are in the dictionary, each with a sentence."""
    with lzma.open(data / f"mono-2.{language}.xz", "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n") for line in lines]
    random.Random(1).shuffle(texts)
    counts: Counter[str] = Counter()
    found: dict[str, str] = {}
    for text in texts:
        words = WORD.findall(text)
        counts.update(words)
        if SHORTEST <= len(words) <= LONGEST:
            for word in words:
                found.setdefault(word, text)
    common = [word for word, _ in counts.most_common() if len(word) > 2 and word.islower() and plain(word) in known]
    return [(word, found[word]) for word in common[COMMON:] if word in found][:most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--direction", choices=["en-es", "es-en"], action="append")
    parser.add_argument(
        "--model", action="append", help="a model folder or the name of a packaged model [same as the direction]"
    )
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--wrong", type=Path, help="write the unknown words and their sentences to this file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    all_wrong: list[tuple[str, ...]] = []
    for direction in options.direction or ["en-es", "es-en"]:
        language = direction[:2]
        known = dictionary(options.data, 0 if language == "en" else 1)
        tried = sentences(options.data, language, known, options.words)
        for name in options.model or [direction]:
            translator = Translator.load(name)
            results = translator.stream((text for _, text in tried), Options(beam=options.beam))
            wrong = []
            for (word, text), result in zip(tried, results, strict=True):
                begins = tuple(known[plain(word)])
                if not any(other.startswith(begins) for other in WORD.findall(plain(str(result)))):
                    wrong.append((word, text, str(result)))
            right = len(tried) - len(wrong)
            all_wrong += [(direction, name, *row) for row in wrong]
            if options.json:
                print(json.dumps({"direction": direction, "model": name, "right": right, "of": len(tried)}))
            else:
                share = right / len(tried)
                print(f"{direction}, {name}: {right:,} of {len(tried):,} words as in the dictionary ({share:.1%})")
    if options.wrong:
        options.wrong.write_text("".join("\t".join(row) + "\n" for row in all_wrong), encoding="utf-8")


if __name__ == "__main__":
    main()
