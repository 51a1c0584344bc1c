"""What it is worth that a word or two are read in another way, too (src/vidrio/text/reading/capitals.py).

    python benchmarks/short_texts.py dictionary.tsv.xz [--columns 2,3] [--model MODEL] [--entries 2000]

Entries of one and of two words (a table, maybe compressed; its columns are counted from 1, and an entry may come
several times) are typed as they are, with a capital letter, As A Title and IN CAPITALS. A translation is right if it is
one of the entry's, whatever its letters. Right ones are counted as texts are read at first, and as they are read now.
"""

import argparse
import lzma
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from vidrio.translate.attempts import Attempts
from vidrio.translate.translator import Translator

WAYS: dict[str, Callable[[str], str]] = {
    "as they are": str,
    "a capital letter": str.capitalize,
    "a title": str.title,
    "capitals": str.upper,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--columns", default="2,3")
    parser.add_argument("--model", default="en-es")
    parser.add_argument("--entries", type=int, default=2000)
    given = parser.parse_args()
    source, target = (int(column) - 1 for column in given.columns.split(","))
    entries = read(given.table, source, target)
    translator = Translator.load(given.model)
    for words in (1, 2):
        some = [entry for entry in entries if len(entry.split()) == words]
        some = random.Random(1).sample(some, min(given.entries, len(some)))
        print(f"{len(some)} entries of {words} word{'s' * (words > 1)}, right\n{'typed':<20}read at first   read now")
        for name, way in WAYS.items():
            typed = [way(entry) for entry in some]
            with patch.object(Attempts, "_is_doubted", return_value=False):
                first = translator.translate(typed)
            both = [
                sum(plain(of.text) in entries[entry] for entry, of in zip(some, found, strict=True))
                for found in (first, translator.translate(typed))
            ]
            print(f"{name:<20}{both[0]:13}{both[1]:11}")


def read(table: Path, source: int, target: int) -> dict[str, set[str]]:
    """Of each entry of letters only, its translations."""
    text = lzma.decompress(table.read_bytes()) if table.suffix == ".xz" else table.read_bytes()
    found: dict[str, set[str]] = defaultdict(set)
    for line in text.decode().splitlines():
        columns = line.split("\t")
        if max(source, target) < len(columns) and columns[source].replace(" ", "").isalpha():
            found[columns[source]].add(plain(columns[target]))
    return {entry: translations for entry, translations in found.items() if entry.islower()}


def plain(text: str) -> str:
    return text.lower().strip().rstrip(".")


if __name__ == "__main__":
    main()
