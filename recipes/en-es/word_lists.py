"""The words of English and Spanish and which translates which, for the files that lie with the packaged models:
words.txt and lexicon.tsv (translate/lexicon.py).

    python word_lists.py WORK DIRECTION MODEL

They are those of all that people have written in what the models learned from, and of numbers, not of what another rule
or a model has made.
Spanish verbs have more regular forms than any text has: they are made from infinitives and the forms that are there.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from corpora import read
from vidrio.translate.lexicon import WORDS, words_of, write, write_sorted
from word_translations import lexicon as translations

LANGUAGES = ("en", "es")
WORD = re.compile(r"[a-zß-öø-ÿœ]{2,24}")  # longer ones are names of programs, and words run together
STRETCHED = re.compile(r"(.)\1\1")

# What follows an infinitive: pronouns; future and conditional.
PRONOUNS = "me te se nos lo la le los las les"
FUTURE = "é ás á emos éis án ía ías íamos íais ían"
# What follows the stem of a verb, but for forms whose vowel may change (cuesta).
AR = "aba abas ábamos abais aban aste ó amos asteis aron ara aras áramos aran ase asen ando ado ada ados adas"
IMPERFECT = "ía ías íamos íais ían"
ER_IR = "í iste ió imos isteis ieron iera ieras iéramos ieran iese iesen iendo ido ida idos idas"
# Which verbs have them, of which forms the texts must have one.
STEMS = (("ar", "ó ando ado", AR), ("er ir", "ía iendo ió ido", IMPERFECT), ("er ir", "ió", ER_IR))
OTHER_FUTURE = "tener poner venir salir hacer decir poder querer saber haber caber valer"


def all_words(work: Path, language: str) -> set[str]:
    side = LANGUAGES.index(language)
    words: set[str] = set()
    for path in (*sorted((work / "clean").glob("*.tsv")), work / "train" / "counted.tsv"):
        for pair in read(path):
            words |= words_of(pair[side])
    words |= words_of((work / "alone" / f"{language}.txt").read_text(encoding="utf-8"))
    words = {word for word in words if WORD.fullmatch(word) and not STRETCHED.search(word)}
    if language == "es":
        words |= set(conjugated(words))
    return words


def conjugated(words: set[str]) -> Iterator[str]:
    """Regular forms of the verbs among the words; `hablase` makes no verb of `hablasar`, which no text has."""
    for verb in words:
        stem, ending = verb[:-2], verb[-2:]
        for endings, proofs, forms in STEMS:
            if len(verb) > 4 and ending in endings.split() and any(stem + proof in words for proof in proofs.split()):
                yield from (stem + form for form in forms.split())
                yield from (verb + form for form in PRONOUNS.split())
                if not verb.endswith(tuple(OTHER_FUTURE.split())):
                    yield from (verb + form for form in FUTURE.split())


def write_words(work: Path, direction: str, model: Path) -> None:
    write_sorted(model / WORDS, all_words(work, direction[-2:]))
    pairs = [pair for path in sorted((work / "clean").glob("*.tsv")) for pair in read(path)]
    write(model, translations(pairs if direction == "en-es" else [pair[::-1] for pair in pairs]))


if __name__ == "__main__":
    _, work, direction, model = sys.argv
    write_words(Path(work), direction, Path(model))
